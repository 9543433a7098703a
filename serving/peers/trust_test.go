package peers

import (
	"net/http"
	"testing"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/topics"
)

func TestCheckAddress(t *testing.T) {
	plain, https, insecure := Config{}, Config{HTTPS: true}, Config{Insecure: true}
	allow := Config{HTTPS: true, AllowedAddresses: []string{"10.1.0.0/16", "fd00::/8", "pools-1", ".pods.example.com"}}
	for _, c := range []struct {
		cfg     Config
		address string
		want    string // part of the error; "": the address is allowed
	}{
		{plain, "127.0.0.1:80", ""},
		{plain, "[::1]:80", ""},
		{plain, "localhost:80", ""},
		{plain, "10.1.2.3:80", "peers.https, or peers.insecure"},
		{plain, "127.0.0.1.example.com:80", "peers.https"},
		{plain, "169.254.169.254:80", "peers.https"},
		{insecure, "pools-1:80", ""},
		{https, "pools-1:80", ""},
		{https, "pools-1", "not host:port"},
		{allow, "10.1.2.3:80", ""},
		{allow, "[::ffff:10.1.2.3]:80", ""},
		{allow, "[fd00::1]:80", ""},
		{allow, "Pools-1:80", ""},
		{allow, "a.pods.example.com:80", ""},
		{allow, "10.2.2.3:80", "not in peers.allowed_addresses"},
		{allow, "127.0.0.1:80", "not in peers.allowed_addresses"},
		{allow, ".pods.example.com:80", "not in peers.allowed_addresses"},
		{allow, "pods.example.com:80", "not in peers.allowed_addresses"},
		{allow, "a.pods.example.com.attacker:80", "not in peers.allowed_addresses"},
		{allow, "xpools-1:80", "not in peers.allowed_addresses"},
	} {
		expect.Error(t, c.cfg.CheckAddress(c.address), c.want, "%+v, %s", c.cfg.AllowedAddresses, c.address)
	}
}

func TestConfig_ValidatesAllow(t *testing.T) {
	for entry, good := range map[string]bool{
		"10.0.0.0/8": true, "pools-1": true, ".example.com": true, "::1": true,
		"10.0.0.0/33": false, "*.example.com": false, "": false, ".": false, "a b": false,
	} {
		expect.Equal(t, (Config{AllowedAddresses: []string{entry}}).Validate() == nil, good, "%q is valid", entry)
	}
}

func TestClient_DoesNotCallRejectedAddresses(t *testing.T) {
	called := 0
	address := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		called++
		_, _ = w.Write([]byte("1"))
	}))
	for _, c := range []struct {
		allow []string
		calls int
	}{{[]string{"10.0.0.0/8"}, 0}, {nil, 1}} {
		client := newClient(t, Deps{Owners: map[string]Directory{topics.Pools: &directory{owner: address}}, Check: Config{AllowedAddresses: c.allow}.CheckAddress})
		_, err := client.Waiting(t.Context(), user)
		expect.Equal(t, called, c.calls, "allow %v: calls", c.allow)
		expect.Equal(t, err == nil, c.calls > 0, "allow %v: success, with %v", c.allow, err)
	}
}
