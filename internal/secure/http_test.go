package secure_test

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/smartfeed/smartfeed/internal/secure"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/internal/testkit/securetest"
)

// serve starts a TLS server that responds with the Authorization header it received. With mutual, it requires a client
// certificate.
func serve(t *testing.T, at func(string) string, mutual bool) *httptest.Server {
	t.Helper()
	pair := must.Get(tls.LoadX509KeyPair(at(securetest.Server), at(securetest.Server)))(t)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte(r.Header.Get("Authorization")))
	}))
	server.TLS = &tls.Config{Certificates: []tls.Certificate{pair}}
	if mutual {
		text := must.Get(os.ReadFile(at(securetest.CA)))(t)
		server.TLS.ClientCAs, server.TLS.ClientAuth = x509.NewCertPool(), tls.RequireAndVerifyClientCert
		server.TLS.ClientCAs.AppendCertsFromPEM(text)
	}
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // some handshakes fail on purpose
	server.StartTLS()
	t.Cleanup(server.Close)
	return server
}

// get returns the body of the server's response.
func get(t *testing.T, h secure.HTTP, url string) (string, error) {
	t.Helper()
	transport := new(http.Transport)
	defer transport.CloseIdleConnections()
	client, err := h.Client(transport)
	if err != nil {
		return "", err
	}
	res, err := client.Get(url)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	text := make([]byte, 200)
	n, _ := res.Body.Read(text)
	return string(text[:n]), nil
}

func TestClient_AuthenticatesServerAndClient(t *testing.T) {
	at := certificates(t)
	server, mutual := serve(t, at, false), serve(t, at, true)
	ca := secure.Certificates{CAFile: at(securetest.CA)}
	own := secure.Certificates{CAFile: at(securetest.CA), CertFile: at(securetest.Client), KeyFile: at(securetest.Key)}
	token := filepath.Join(t.TempDir(), "token")
	must.OK(t, os.WriteFile(token, []byte("t-1\n"), 0o600))
	for _, c := range []struct {
		name       string
		as         secure.HTTP
		at         *httptest.Server
		want, fail string
	}{
		{"anonymous", secure.HTTP{TLS: ca}, server, "", ""},
		{"a user", secure.HTTP{TLS: ca, Login: secure.Login{User: "ada", Password: "p"}}, server, "Basic YWRhOnA=", ""},
		{"a token", secure.HTTP{TLS: ca, TokenFile: token}, server, "Bearer t-1", ""},
		{"an unknown authority", secure.HTTP{}, server, "", "certificate"},
		{"another authority", secure.HTTP{TLS: secure.Certificates{CAFile: at(securetest.Other)}}, server, "", "unknown authority"},
		{"another name", secure.HTTP{TLS: secure.Certificates{CAFile: at(securetest.CA), ServerName: "example.com"}}, server, "", "not example.com"},
		{"anybody", secure.HTTP{TLS: secure.Certificates{InsecureSkipVerify: true}}, server, "", ""},
		{"a certificate", secure.HTTP{TLS: own}, mutual, "", ""},
		{"no certificate", secure.HTTP{TLS: ca}, mutual, "", "certificate"},
		{"no file", secure.HTTP{TLS: ca, TokenFile: token + "x"}, server, "", "read secret"},
	} {
		got, err := get(t, c.as, c.at.URL)
		if got != c.want || (err == nil) != (c.fail == "") || err != nil && !strings.Contains(err.Error(), c.fail) {
			t.Errorf("%s: got %q, %v, want %q, %q", c.name, got, err, c.want, c.fail)
		}
	}
}

// A redirect must not send the credentials to another server.
func TestClient_SendsNoCredentialsToOtherServer(t *testing.T) {
	at := certificates(t)
	received := ""
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { received = r.Header.Get("Authorization") }))
	defer other.Close()
	mux := http.NewServeMux()
	first := httptest.NewServer(mux)
	defer first.Close()
	mux.Handle("/away", http.RedirectHandler(other.URL, http.StatusFound))
	mux.Handle("/there", http.RedirectHandler("/here", http.StatusFound))
	mux.HandleFunc("/here", func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write([]byte(r.Header.Get("Authorization"))) })
	as := secure.HTTP{TLS: secure.Certificates{CAFile: at(securetest.CA)}, Token: "t-1"}
	if _, err := get(t, as, first.URL+"/away"); err == nil || !strings.Contains(err.Error(), "another server") || received != "" {
		t.Errorf("redirect to another server: got error %v, and the other server received %q", err, received)
	}
	expect.Equal(t, must.Get(get(t, as, first.URL+"/there"))(t), "Bearer t-1", "redirect on the same server")
}

func TestCheckURL_RejectsPasswords(t *testing.T) {
	for address, want := range map[string]bool{"http://host:1/x": true, "host:1": true, "https://ada:horse@host": false, "https://ada@host": false} {
		if err := secure.CheckURL(address); (err == nil) != want || err != nil && strings.Contains(err.Error(), "horse") {
			t.Errorf("%s: got %v, want accepted %v", address, err, want)
		}
	}
}

// A server that rejects a request may repeat the credentials. The client removes them from error responses, and does not
// change other responses.
func TestClient_HidesRepeatedCredentials(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/refused" {
			w.WriteHeader(http.StatusUnauthorized)
		}
		_, password, _ := r.BasicAuth()
		_, _ = w.Write([]byte("no: " + r.Header.Get("Authorization") + " " + password))
	}))
	defer server.Close()
	for _, c := range []struct {
		name string
		as   secure.HTTP
		path string
		want string
	}{
		{"a token", secure.HTTP{Token: "t-1"}, "/refused", "no: Bearer (hidden) "},
		{"a password", secure.HTTP{Login: secure.Login{User: "ada", Password: "p-1"}}, "/refused", "no: Basic (hidden) (hidden)"},
		{"anonymous", secure.HTTP{}, "/refused", "no:  "},
		{"no refusal", secure.HTTP{Token: "t-1"}, "/", "no: Bearer t-1 "},
	} {
		expect.Equal(t, must.Get(get(t, c.as, server.URL+c.path))(t), c.want, "%s", c.name)
	}
}
