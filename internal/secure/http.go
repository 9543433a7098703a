package secure

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"strings"

	"github.com/smartfeed/smartfeed/internal/settings"
)

// HTTP configures an HTTP client. It uses TLS if the scheme of the address is https. The zero value sends no credentials
// and trusts the authorities of the system.
type HTTP struct {
	TLS       Certificates `yaml:"tls"`
	Login     `yaml:",inline"`
	Token     Secret `yaml:"token" help:"bearer token, instead of user and password"`
	TokenFile string `yaml:"token_file" help:"file with the bearer token"`
}

// Validate reports every inconsistent value.
func (h HTTP) Validate() error {
	problems := settings.Problems{settings.Under("tls", h.TLS.Validate()), h.Login.Validate(), oneOf("token", h.Token, "token_file", h.TokenFile)}
	problems.Want(!h.Given() || !h.bearer(), "token: conflicts with user")
	return problems.Err()
}

func (h HTTP) bearer() bool { return h.Token != "" || h.TokenFile != "" }

// Client sets the TLS settings of transport, and returns a client that uses it and authenticates each request. The
// client does not follow redirects to another server, because that server must not receive the credentials.
func (h HTTP) Client(transport *http.Transport) (*http.Client, error) {
	settings, err := h.TLS.Config()
	if err != nil {
		return nil, err
	}
	transport.TLSClientConfig = settings
	out := &http.Client{Transport: transport, CheckRedirect: sameServer}
	if !h.Given() && !h.bearer() {
		return out, nil
	}
	if _, err := h.authorization(); err != nil { // report errors now instead of at the first request
		return nil, err
	}
	out.Transport = authorized{h, transport}
	return out, nil
}

// authorization returns a function that adds the credentials to a request.
func (h HTTP) authorization() (func(*http.Request), error) {
	if h.bearer() {
		token, err := reveal(h.Token, h.TokenFile)
		return func(req *http.Request) { req.Header.Set("Authorization", "Bearer "+token) }, err
	}
	password, err := h.Secret()
	return func(req *http.Request) { req.SetBasicAuth(h.User, password) }, err
}

// authorized adds the credentials to each request.
type authorized struct {
	as   HTTP
	next http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (a authorized) RoundTrip(req *http.Request) (*http.Response, error) {
	authorize, err := a.as.authorization()
	if err != nil {
		if req.Body != nil {
			_ = req.Body.Close() // required by http.RoundTripper
		}
		return nil, err
	}
	req = req.Clone(req.Context()) // a RoundTripper must not change the caller's request
	authorize(req)
	res, err := a.next.RoundTrip(req)
	if err != nil || res.StatusCode < http.StatusBadRequest {
		return res, err
	}
	if err := hideCredentials(req, res); err != nil {
		return nil, err
	}
	return res, nil
}

// maxErrorBody is the maximum number of bytes of an error response that are read.
const maxErrorBody = 1 << 20

// hideCredentials removes the credentials of a request from an error response: some servers repeat them, and clients put
// such responses into errors.
func hideCredentials(req *http.Request, res *http.Response) error {
	text, err := io.ReadAll(io.LimitReader(res.Body, maxErrorBody))
	_ = res.Body.Close() // only read
	if err != nil {
		return fmt.Errorf("read the response %s: %w", res.Status, err)
	}
	_, sent, _ := strings.Cut(req.Header.Get("Authorization"), " ")
	_, password, _ := req.BasicAuth() // sent has it encoded
	for _, secret := range []string{sent, password} {
		if secret != "" {
			text = bytes.ReplaceAll(text, []byte(secret), []byte(hidden))
		}
	}
	res.Body, res.ContentLength = io.NopCloser(bytes.NewReader(text)), int64(len(text))
	return nil
}

// maxRedirects is the maximum number of redirects.
const maxRedirects = 10

func sameServer(req *http.Request, via []*http.Request) error {
	if last := via[len(via)-1].URL; req.URL.Host != last.Host || req.URL.Scheme != last.Scheme {
		return errors.New("redirected to another server")
	}
	if len(via) >= maxRedirects {
		return fmt.Errorf("redirected %d times", maxRedirects)
	}
	return nil
}

// CheckURL rejects an address that contains a password, because addresses are printed. The error does not contain the
// address. CheckURL also rejects addresses that ShownURL has redacted.
func CheckURL(address string) error {
	if strings.HasSuffix(address, "?"+hidden) {
		return errors.New("is the redacted form of an address")
	}
	if strings.Contains(address, "@") { // even if it is not a URL
		return errors.New("contains a user: set user and password instead")
	}
	return nil
}

// OnLoopback reports whether a host name is a loopback address or localhost.
func OnLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

// ShownURL returns an address for printing. It hides the query, which may contain a key.
func ShownURL(address string) string {
	before, _, has := strings.Cut(address, "?")
	if !has {
		return address
	}
	return before + "?" + hidden
}
