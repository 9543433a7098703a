package peers

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/smartfeed/smartfeed/schemas"
)

func TestCheckAddress(t *testing.T) {
	plain, https, insecure := Config{}, Config{HTTPS: true}, Config{Insecure: true}
	allow := Config{HTTPS: true, Allow: []string{"10.1.0.0/16", "fd00::/8", "pools-1", ".pods.example.com"}}
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
		{allow, "10.2.2.3:80", "not in peers.allow"},
		{allow, "127.0.0.1:80", "not in peers.allow"},
		{allow, ".pods.example.com:80", "not in peers.allow"},
		{allow, "pods.example.com:80", "not in peers.allow"},
		{allow, "a.pods.example.com.attacker:80", "not in peers.allow"},
		{allow, "xpools-1:80", "not in peers.allow"},
	} {
		if err := c.cfg.CheckAddress(c.address); (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v, %s: got %v, want %q", c.cfg.Allow, c.address, err, c.want)
		}
	}
}

func TestConfig_ValidatesAllow(t *testing.T) {
	for entry, good := range map[string]bool{
		"10.0.0.0/8": true, "pools-1": true, ".example.com": true, "::1": true,
		"10.0.0.0/33": false, "*.example.com": false, "": false, ".": false, "a b": false,
	} {
		if err := (Config{Allow: []string{entry}}).Validate(); (err == nil) != good {
			t.Errorf("%q: got %v, want valid %t", entry, err, good)
		}
	}
}

// anywhere is a directory with one address.
type anywhere string

func (a anywhere) Owners(context.Context) (map[int32]string, error) {
	return map[int32]string{0: string(a)}, nil
}

func TestClient_DoesNotCallRefusedAddresses(t *testing.T) {
	called := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		called++
		_, _ = w.Write([]byte(`{"count":1}`))
	}))
	defer server.Close()
	address := strings.TrimPrefix(server.URL, "http://")
	for _, c := range []struct {
		allow []string
		calls int
	}{{[]string{"10.0.0.0/8"}, 0}, {nil, 1}} {
		client, err := NewClient(Deps{Pools: anywhere(address), Partitions: 1, Check: Config{Allow: c.allow}.CheckAddress})
		if err != nil {
			t.Fatal(err)
		}
		_, err = client.Waiting(t.Context(), schemas.UserID("user:ada"))
		client.Close()
		if called != c.calls || (err == nil) != (c.calls > 0) {
			t.Errorf("allow %v: got %d calls and %v, want %d", c.allow, called, err, c.calls)
		}
	}
}
