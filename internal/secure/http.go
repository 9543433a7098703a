package secure

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/smartfeed/smartfeed/internal/settings"
)

// HTTP configures an HTTP client. The scheme of the address decides about TLS. The zero value sends no credentials and
// trusts the authorities of the system.
type HTTP struct {
	TLS       Certificates `yaml:"tls"`
	Login     `yaml:",inline"`
	Token     Secret `yaml:"token" help:"bearer token, instead of user and password"`
	TokenFile string `yaml:"token_file" help:"file with the bearer token"`
}

// Validate reports every inconsistent value.
func (h HTTP) Validate() error {
	problems := []error{settings.Under("tls", h.TLS.Validate()), h.Login.Validate(), oneOf("token", h.Token, "token_file", h.TokenFile)}
	if h.Given() && h.bearer() {
		problems = append(problems, errors.New("token: conflicts with user"))
	}
	return errors.Join(problems...)
}

func (h HTTP) bearer() bool { return h.Token != "" || h.TokenFile != "" }

// Client returns a client that uses transport, sets its TLS settings, and authenticates each request. It follows no
// redirect to another server, which must not receive the credentials.
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
	if _, err := h.authorization(); err != nil { // now instead of at the first request
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
	tell, err := a.as.authorization()
	if err != nil {
		if req.Body != nil {
			_ = req.Body.Close() // required by the interface; nothing was sent
		}
		return nil, err
	}
	req = req.Clone(req.Context()) // a RoundTripper must not change the caller's request
	tell(req)
	res, err := a.next.RoundTrip(req)
	if err != nil || res.StatusCode < http.StatusBadRequest {
		return res, err
	}
	if err := hideTold(req, res); err != nil {
		return nil, err
	}
	return res, nil
}

// maxRefusal is the maximum size of an error response that is read; the rest is dropped.
const maxRefusal = 1 << 20

// hideTold removes the credentials of a request from an error response, because such responses become errors and some
// servers repeat what they received.
func hideTold(req *http.Request, res *http.Response) error {
	text, err := io.ReadAll(io.LimitReader(res.Body, maxRefusal))
	_ = res.Body.Close() // what is needed has been read
	if err != nil {
		return fmt.Errorf("read the answer %s: %w", res.Status, err)
	}
	_, told, _ := strings.Cut(req.Header.Get("Authorization"), " ")
	_, password, _ := req.BasicAuth() // it is in told, encoded
	for _, secret := range []string{told, password} {
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

// CheckURL rejects an address that contains a password, without repeating it, because addresses are printed. It also
// rejects the output of ShownURL for an address with a query, which was copied from such output.
func CheckURL(address string) error {
	if strings.HasSuffix(address, "?"+hidden) {
		return errors.New("is the redacted form of an address")
	}
	if strings.Contains(address, "@") { // whether or not it is a URL
		return errors.New("contains a user: set user and password instead")
	}
	return nil
}

// ShownURL returns an address for printing. It hides the query, which may be a key.
func ShownURL(address string) string {
	before, _, has := strings.Cut(address, "?")
	if !has {
		return address
	}
	return before + "?" + hidden
}
