// Package auth says who asks, by bearer tokens (RFC 6750) that are JSON web tokens (RFC 7519).
//
//	sub    a user, user:…, or a service, service:…; Config can name other prefixes, and a claim that services have
//	scope  what a service may do, separated by spaces; see Scopes
//	exp    must be there; nbf, iss and aud are held to what is configured
//
// A token is signed with RS256 or ES256 by a key of a JSON web key set, in a file or at a URL, or with HS256 by a secret in a
// file, which is for trying out: whoever checks such a token can make one. The algorithm decides which of the two is asked,
// so that no public key is ever taken for a secret.
//
// The set is read again when it is old and when a token names a key that is not in it; while it cannot be read, the keys
// that were last read hold, for Config.MaxKeyAge.
//
// Processes of the product know one another by tokens of their own, see Peers.
package auth

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/smartfeed/smartfeed/internal/bounds"
	"github.com/smartfeed/smartfeed/internal/secure"
	"github.com/smartfeed/smartfeed/schemas"
)

// What a service may do.
const (
	Feed     = "feed"     // read feeds, pools and lists of everybody
	Features = "features" // ask for features of everybody, try definitions
	Events   = "events"   // publish events of all streams, except deletes of users
	Operate  = "operate"  // see the state of the program, retry dead letters

	// DeleteUsers permits deletes of users, which cannot be undone, and nothing else.
	DeleteUsers = Events + ":users:delete"
)

// EventsOf returns the scope that permits events of one stream, except deletes of users.
func EventsOf(stream string) string { return Events + ":" + stream }

// Scopes returns all scopes.
func Scopes() []string {
	return []string{
		Feed, Features, Events, EventsOf(schemas.StreamPins), EventsOf(schemas.StreamFollows), EventsOf(schemas.StreamActions),
		EventsOf(schemas.StreamUsers), EventsOf(schemas.StreamCandidates), DeleteUsers, Operate,
	}
}

// Config says whose tokens are taken. With neither a set of keys nor a secret nobody is asked who they are.
type Config struct {
	JWKS       string `yaml:"jwks"`        // file or https URL of the key set; "": none. http is taken for loopback addresses alone
	SecretFile string `yaml:"secret_file"` // with the secret of HS256, at least 32 bytes; "": none
	Issuer     string `yaml:"issuer"`      // that tokens must name; "": any
	Audience   string `yaml:"audience"`    // that tokens must name; "": any, which a key set does not allow
	Identities `yaml:",inline"`
	Leeway     time.Duration `yaml:"leeway"`      // by which clocks may differ, 0s-5m; default 30s
	Refresh    time.Duration `yaml:"refresh"`     // after which the set is read again, 1s-24h; default 5m
	MaxKeyAge  time.Duration `yaml:"max_key_age"` // after which a set that cannot be read again no longer holds, refresh to 720h; default 24h
	TokenFile  string        `yaml:"token_file"`  // with the token that commands send, where SMARTFEED_TOKEN is not set; "": none
}

// DefaultConfig asks nobody.
func DefaultConfig() Config {
	return Config{Identities: DefaultIdentities(), Leeway: 30 * time.Second, Refresh: 5 * time.Minute, MaxKeyAge: 24 * time.Hour}
}

// On says whether callers are asked who they are.
func (c Config) On() bool { return c.JWKS != "" || c.SecretFile != "" }

// Validate reports every field that is out of its bounds.
func (c Config) Validate() error {
	problems := []error{
		c.Identities.Validate(),
		bounds.Within("leeway", c.Leeway, 0, 5*time.Minute),
		bounds.Within("refresh", c.Refresh, time.Second, 24*time.Hour),
		bounds.Within("max_key_age", c.MaxKeyAge, c.Refresh, 30*24*time.Hour),
	}
	if c.JWKS != "" && c.Audience == "" {
		problems = append(problems, errors.New("audience: is empty: with jwks it is needed, or a token for another service would do here"))
	}
	if _, _, err := c.source(); err != nil {
		problems = append(problems, fmt.Errorf("jwks: %w", err))
	}
	return errors.Join(problems...)
}

// source tells a file from a URL.
func (c Config) source() (file string, at *url.URL, err error) {
	if !strings.Contains(c.JWKS, "://") {
		return c.JWKS, nil, nil
	}
	if err := secure.CheckURL(c.JWKS); err != nil {
		return "", nil, err
	}
	at, err = url.Parse(c.JWKS)
	switch {
	case err != nil:
		return "", nil, errors.New("is no URL") // the error has the text, which may hold a password
	case at.Scheme == "https" && at.Host != "", at.Scheme == "http" && onLoopback(at.Hostname()):
		return "", at, nil
	}
	return "", nil, fmt.Errorf("%s: want a file, or an https URL: whoever can change the set on its way can be anybody", shown(at))
}

// shown is a URL without what in it may be secret.
func shown(u *url.URL) string {
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}

// A TokenError says why a token is not taken. It holds nothing of the token.
type TokenError struct{ Reason string }

// Error says that the token is refused, and why.
func (e *TokenError) Error() string { return "token refused: " + e.Reason }

// ErrNoKeys is returned when tokens cannot be checked: the set of keys has never been read, or not for Config.MaxKeyAge.
var ErrNoKeys = errors.New("the keys of tokens are not known yet")

// Verifier checks tokens. It is safe for concurrent use. Run it.
type Verifier struct {
	cfg    Config
	secret []byte // nil: none
	keys   *keys  // nil: none
	parser *jwt.Parser
}

// MaxTokenBytes bounds a token: one with a few hundred claims is below it.
const MaxTokenBytes = 8 << 10

// NewVerifier reads the secret. cfg must be on.
func NewVerifier(cfg Config, deps Deps) (*Verifier, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("auth: %w", err)
	}
	v := &Verifier{cfg: cfg}
	var methods []string
	if cfg.SecretFile != "" {
		secret, err := ReadSecret(cfg.SecretFile)
		if err != nil {
			return nil, fmt.Errorf("auth.secret_file: %w", err)
		}
		v.secret, methods = secret, append(methods, jwt.SigningMethodHS256.Alg())
	}
	if cfg.JWKS != "" {
		v.keys = newKeys(cfg, deps)
		methods = append(methods, jwt.SigningMethodRS256.Alg(), jwt.SigningMethodES256.Alg())
	}
	v.parser = jwt.NewParser(append(rules(cfg, deps), jwt.WithValidMethods(methods))...)
	return v, nil
}

// rules are what a token must say.
func rules(cfg Config, deps Deps) []jwt.ParserOption {
	options := []jwt.ParserOption{
		jwt.WithExpirationRequired(), jwt.WithLeeway(cfg.Leeway), jwt.WithTimeFunc(deps.now()), jwt.WithStrictDecoding(),
	}
	if cfg.Issuer != "" {
		options = append(options, jwt.WithIssuer(cfg.Issuer))
	}
	if cfg.Audience != "" {
		options = append(options, jwt.WithAudience(cfg.Audience))
	}
	return options
}

// Verify returns who a token is of. It fails with a *TokenError, with an *IdentityError, with ErrNoKeys, or with that of ctx.
func (v *Verifier) Verify(ctx context.Context, token string) (Caller, error) {
	if len(token) > MaxTokenBytes {
		return Caller{}, &TokenError{"it is too long"}
	}
	var said claims
	_, err := v.parser.ParseWithClaims(token, &said, func(t *jwt.Token) (any, error) { return v.key(ctx, t) })
	switch {
	case errors.Is(err, ErrNoKeys), ctx.Err() != nil && err != nil:
		return Caller{}, errors.Join(ErrNoKeys, ctx.Err())
	case err != nil:
		return Caller{}, &TokenError{reason(err)}
	case said.Subject == "" || len(said.Subject) > schemas.MaxIDBytes:
		return Caller{}, &TokenError{"it does not say who (sub)"}
	}
	c, err := v.cfg.caller(said)
	c.Expires = said.ExpiresAt.Add(v.cfg.Leeway)
	return c, err
}

// key returns what a token's signature is checked with, by its algorithm.
func (v *Verifier) key(ctx context.Context, t *jwt.Token) (any, error) {
	if t.Method == jwt.SigningMethodHS256 {
		return v.secret, nil
	}
	kid, _ := t.Header["kid"].(string)
	return v.keys.find(ctx, kid, t.Method.Alg())
}

// reason says what is wrong with a token without anything of what it says.
func reason(err error) string {
	for _, known := range []struct {
		err  error
		text string
	}{
		{jwt.ErrTokenExpired, "it has expired"},
		{jwt.ErrTokenNotValidYet, "it is not valid yet"},
		{jwt.ErrTokenInvalidAudience, "it is for others (aud)"},
		{jwt.ErrTokenInvalidIssuer, "it is from others (iss)"},
		{jwt.ErrTokenRequiredClaimMissing, "it lacks a claim: exp, iss or aud"},
		{errUnknownKey, "its key is not known"},
		{jwt.ErrTokenMalformed, "it is no JSON web token"},
		{jwt.ErrTokenSignatureInvalid, "its signature is wrong, or of an algorithm that is not taken here"},
	} {
		if errors.Is(err, known.err) {
			return known.text
		}
	}
	return "it cannot be checked"
}

// Run keeps the set of keys fresh until ctx ends.
func (v *Verifier) Run(ctx context.Context) error {
	if v.keys == nil {
		<-ctx.Done()
		return nil
	}
	return v.keys.run(ctx)
}

// Ready says whether tokens can be checked.
func (v *Verifier) Ready() bool { return v.keys == nil || v.keys.known() != nil }

// onLoopback says whether a host's name is one of this machine alone.
func onLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}
