package secure

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// HTTP is how servers are asked over HTTP: whether over TLS, the address says. The zero value is nobody, and believes
// whom the system does.
type HTTP struct {
	TLS       Certificates `yaml:"tls"`
	Login     `yaml:",inline"`
	Token     Secret `yaml:"token"`      // sent as a bearer token, in place of user and password
	TokenFile string `yaml:"token_file"` // holds the token instead
}

// Validate reports every value that does not go with the others.
func (h HTTP) Validate() error {
	problems := []error{Under("tls", h.TLS.Validate()), h.Login.Validate(), oneOf("token", h.Token, "token_file", h.TokenFile)}
	if h.Given() && h.bearer() {
		problems = append(problems, errors.New("token: is given, and user, too"))
	}
	return errors.Join(problems...)
}

func (h HTTP) bearer() bool { return h.Token != "" || h.TokenFile != "" }

// Client returns a client that sends its requests over a transport, to which it gives the TLS settings, and tells in each
// who asks. It follows no redirect to another server, which is not to learn that.
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
	if _, err := h.authorization(); err != nil { // now rather than at the first request
		return nil, err
	}
	out.Transport = authorized{h, transport}
	return out, nil
}

// authorization returns what is to be told of who asks.
func (h HTTP) authorization() (func(*http.Request), error) {
	if h.bearer() {
		token, err := reveal(h.Token, h.TokenFile)
		return func(req *http.Request) { req.Header.Set("Authorization", "Bearer "+token) }, err
	}
	password, err := h.Secret()
	return func(req *http.Request) { req.SetBasicAuth(h.User, password) }, err
}

// authorized says in each request who asks.
type authorized struct {
	as   HTTP
	next http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (a authorized) RoundTrip(req *http.Request) (*http.Response, error) {
	tell, err := a.as.authorization()
	if err != nil {
		if req.Body != nil {
			_ = req.Body.Close() // as the interface demands; nothing was sent
		}
		return nil, err
	}
	req = req.Clone(req.Context()) // a RoundTripper must not change the caller's
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

// maxRefusal is how much is read of an answer that is an error; what comes behind is left out.
const maxRefusal = 1 << 20

// hideTold takes what a request told of who asks out of the answer of a server that refuses: such answers become errors,
// and some servers say back what they were sent.
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

// maxRedirects is how many are followed.
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

// CheckURL refuses an address that holds a password, without repeating it: addresses are shown. It refuses what ShownURL
// returns of one with a query, too: it was copied from there.
func CheckURL(address string) error {
	if strings.HasSuffix(address, "?"+hidden) {
		return errors.New("is what an address is shown as, not an address")
	}
	if strings.Contains(address, "@") { // whether it is a URL or not
		return errors.New("holds a user: give user and password as values of their own")
	}
	return nil
}

// ShownURL is an address as it may be printed: its query, which can be a key, is hidden.
func ShownURL(address string) string {
	before, _, has := strings.Cut(address, "?")
	if !has {
		return address
	}
	return before + "?" + hidden
}

// Under puts the name of a nested value before each of its problems.
func Under(name string, err error) error {
	if err == nil {
		return nil
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return fmt.Errorf("%s.%w", name, err)
	}
	var out []error
	for _, e := range joined.Unwrap() {
		out = append(out, Under(name, e))
	}
	return errors.Join(out...)
}
