package outgoing

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"
	"golang.org/x/net/dns/dnsmessage"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func guard(t *testing.T, resolver *net.Resolver, allow ...string) *Guard {
	t.Helper()
	return must.Get(New(Config{AllowedNetworks: allow}, resolver))(t)
}

func TestGuard_RejectsReservedAddresses(t *testing.T) {
	private := []string{
		"127.0.0.1", "127.9.9.9", "::1", "0.0.0.0", "::", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "fe80::1", "fe80::1%eth0",
		"fd00::1", "fc00::1", "100.64.0.1", "192.0.0.1", "198.18.0.1", "192.0.2.1", "224.0.0.1", "ff02::1", "240.0.0.1", "255.255.255.255",
		"::ffff:127.0.0.1", "::ffff:10.0.0.1", "::127.0.0.1", "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "2002:7f00:1::", "2002:a00:1::1",
		"64:ff9b:1::1", "2001:db8::1", "2001::1", "fec0::1", "100::1",
		"192.88.99.1", "2002:c058:6301::1", "64:ff9b::c058:6301", // the 6to4 relays (RFC 7526)
		"3fff::1", "5f00::1", "100:0:0:1::1", // documentation, segment routing, dummy prefix (RFC 9637, 9602, 9780)
		"::ffff:0:101:101", "::101:101", "4000::1", // translated and compatible forms, not allocated
		"2001:1ff::1", "2001:0:7f00:1::1", "198.19.255.255", "100.127.255.255", "192.0.0.255", "203.0.113.1", "198.51.100.1", "fdff::1",
	}
	for _, text := range private {
		expect.False(t, guard(t, nil).allowed(netip.MustParseAddr(text)), "%s is allowed", text)
	}
	for _, text := range []string{"1.1.1.1", "::ffff:1.1.1.1", "2606:4700:4700::1111", "172.32.0.1", "100.128.0.1", "2002:101:101::1", "64:ff9b::101:101"} {
		expect.True(t, guard(t, nil).allowed(netip.MustParseAddr(text)), "%s is allowed", text)
	}
	g := guard(t, nil, "10.1.0.0/16", "fd00::/8")
	for text, want := range map[string]bool{"10.1.2.3": true, "::ffff:10.1.2.3": true, "10.2.0.1": false, "fd12::1": true, "fc00::1": false, "1.1.1.1": true} {
		expect.Equal(t, g.allowed(netip.MustParseAddr(text)), want, "%s, next to an allowed network", text)
	}
}

// names returns a resolver that maps every name to one address.
func names(t *testing.T, at string) (*net.Resolver, *atomic.Int32) {
	t.Helper()
	conn := must.Get(net.ListenPacket("udp", "127.0.0.1:0"))(t)
	var asked atomic.Int32
	done := make(chan struct{})
	go func() {
		defer close(done)
		buffer := make([]byte, 1500)
		for {
			n, from, err := conn.ReadFrom(buffer)
			if err != nil {
				return
			}
			asked.Add(1)
			answer, err := resolved(buffer[:n], netip.MustParseAddr(at))
			if err != nil {
				t.Error(err)
				return
			}
			_, _ = conn.WriteTo(answer, from)
		}
	}()
	t.Cleanup(func() {
		_ = conn.Close()
		<-done
	})
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", conn.LocalAddr().String())
	}}, &asked
}

func resolved(question []byte, at netip.Addr) ([]byte, error) {
	var m dnsmessage.Message
	if err := m.Unpack(question); err != nil {
		return nil, err
	}
	m.Response, m.Additionals = true, nil
	q := m.Questions[0]
	header := dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class, TTL: 1}
	switch {
	case q.Type == dnsmessage.TypeA && at.Is4():
		m.Answers = []dnsmessage.Resource{{Header: header, Body: &dnsmessage.AResource{A: at.As4()}}}
	case q.Type == dnsmessage.TypeAAAA && at.Is6():
		m.Answers = []dnsmessage.Resource{{Header: header, Body: &dnsmessage.AAAAResource{AAAA: at.As16()}}}
	}
	return m.Pack()
}

// The guard refuses names, redirects and IPv6 forms of IPv4 addresses that lead to this machine, unless allowed.
func TestGuard_RejectsLocalAddresses(t *testing.T) {
	var answered atomic.Int32
	mux := http.NewServeMux()
	server := httptest.NewServer(mux)
	defer server.Close()
	_, port, err := net.SplitHostPort(server.Listener.Addr().String())
	must.OK(t, err)
	mux.HandleFunc("/", func(http.ResponseWriter, *http.Request) { answered.Add(1) })
	mux.Handle("/redirect", http.RedirectHandler("http://[::ffff:127.0.0.1]:"+port+"/", http.StatusFound))
	for _, c := range []struct{ name, at, url string }{
		{"the address", "", "http://127.0.0.1:" + port + "/"},
		{"mapped", "", "http://[::ffff:127.0.0.1]:" + port + "/"},
		{"a name", "127.0.0.1", "http://models.example.:" + port + "/"},
		{"a name, mapped", "::ffff:127.0.0.1", "http://models.example.:" + port + "/"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var resolver *net.Resolver
			asked := new(atomic.Int32)
			if c.at != "" {
				resolver, asked = names(t, c.at)
			}
			if err := get(guard(t, resolver), c.url); !errors.Is(err, ErrRefused) || answered.Load() != 0 {
				t.Errorf("got error %v and %d responses, want ErrRefused", err, answered.Load())
			}
			must.OK(t, get(guard(t, resolver, "127.0.0.0/8"), c.url))
			expect.Equal(t, answered.Swap(0), 1, "answers of an allowed address")
			expect.True(t, c.at == "" || asked.Load() > 0, "the resolver was called")
		})
	}
	// A redirect from an allowed address does not allow its target.
	g := guard(t, nil, "127.0.0.2/32")
	expect.Is(t, get(g, "http://127.0.0.1:"+port+"/redirect"), ErrRefused, "redirect")
	hop := httptest.NewUnstartedServer(http.RedirectHandler("http://127.0.0.1:"+port+"/", http.StatusFound))
	l, err := net.Listen("tcp", "127.0.0.2:0")
	if err != nil {
		t.Skipf("this system has no second loopback address: %v", err)
	}
	hop.Listener = l
	hop.Start()
	defer hop.Close()
	if err := get(g, "http://"+l.Addr().String()+"/"); !errors.Is(err, ErrRefused) || answered.Load() != 0 {
		t.Errorf("redirect: got error %v and %d responses, want ErrRefused", err, answered.Load())
	}
}

func get(g *Guard, url string) error {
	transport := &http.Transport{DialContext: g.DialContext}
	defer transport.CloseIdleConnections()
	res, err := (&http.Client{Transport: transport}).Get(url)
	if err != nil {
		return err
	}
	return res.Body.Close()
}

func TestValidate(t *testing.T) {
	err := Config{AllowedNetworks: []string{"10.0.0.0/8", "10.0.0.1", "x"}}.Validate()
	if err == nil || strings.Count(err.Error(), "is not a network") != 2 {
		t.Errorf("got %v, want both problems", err)
	}
}
