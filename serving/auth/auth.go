// Package auth authenticates callers by bearer tokens (RFC 6750) that are JSON web tokens (RFC 7519).
//
//	sub    a user, user:…, or a service, service:…; Config can set other prefixes, and a claim that marks services
//	scope  the permissions of a service, separated by spaces; see Scopes
//	exp    required; nbf, iss and aud are checked against the configuration
//
// A token is signed with RS256 or ES256 by a key of a JSON web key set, in a file or at a URL. Alternatively, it is signed
// with HS256 by a secret in a file. HS256 is for evaluation: anyone who can check such a token can also create one. The
// algorithm decides between key set and secret, so that a public key is never used as a secret.
//
// The key set is reloaded when it is old, and when a token names a key that is not in it. While it cannot be read, the keys
// of the last read stay valid for Config.MaxKeyAge.
//
// Processes of a deployment authenticate each other by separate tokens, see Peers.
package auth

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/smartfeed/smartfeed/internal/convert"
	"github.com/smartfeed/smartfeed/internal/secure"
	"github.com/smartfeed/smartfeed/internal/settings"
	"github.com/smartfeed/smartfeed/schemas"
)

// Scopes of a service.
const (
	Feed     = "feed"     // read the feeds, pools, lists and graphs of all users, list users
	Features = "features" // read the features of all users, try definitions
	Events   = "events"   // publish events of all streams, except deletes of users
	Operate  = "operate"  // read the state and the configuration of the program, retry dead letters
	View     = "view"     // read everything that feed, features and operate permit, without visits and other changes

	// DeleteUsers permits only deletes of users, which cannot be undone.
	DeleteUsers = Events + ":users:delete"
)

// EventsOf returns the scope for events of one stream, except deletes of users.
func EventsOf(stream string) string { return Events + ":" + stream }

// Scopes returns all scopes.
func Scopes() []string {
	return slices.Concat([]string{Feed, Features, Events}, convert.All(schemas.InputStreams(), EventsOf), []string{DeleteUsers, Operate, View})
}

// Config configures authentication. Without a key set and a secret, authentication is disabled.
type Config struct {
	JWKS            string `yaml:"jwks" help:"file or https URL of the JSON Web Key Set; http only for loopback addresses; empty: none"`
	SecretFile      string `yaml:"secret_file" help:"file with the secret for HS256, at least 32 bytes; empty: none"`
	Issuer          string `yaml:"issuer" help:"required issuer of tokens; empty: any"`
	Audience        string `yaml:"audience" help:"required audience of tokens; needed with jwks"`
	Identities      `yaml:",inline"`
	Leeway          time.Duration `yaml:"leeway" default:"30s" range:"0s..5m" help:"tolerated clock difference"`
	RefreshInterval time.Duration `yaml:"refresh_interval" default:"5m" range:"1s..24h" help:"interval at which the key set is reloaded"`
	MaxKeyAge       time.Duration `yaml:"max_key_age" default:"24h" range:"refresh_interval..720h" help:"age at which a key set that cannot be reloaded expires"`
	TokenFile       string        `yaml:"token_file" help:"file with the token that commands send if SMARTFEED_TOKEN is not set; empty: none"`
}

// DefaultConfig returns the default configuration, in which authentication is disabled.
func DefaultConfig() Config { return settings.Defaults[Config]() }

// Enabled reports whether authentication is enabled.
func (c Config) Enabled() bool { return c.JWKS != "" || c.SecretFile != "" }

// Validate reports every field that is out of bounds.
func (c Config) Validate() error {
	problems := settings.Problems{c.Identities.Validate(), settings.Validate(c)}
	problems.Want(c.JWKS == "" || c.Audience != "",
		"audience: is empty: with jwks it is required, because tokens for other services would be accepted")
	_, _, err := c.source()
	problems.Want(err == nil, "jwks: %w", err)
	return problems.Err()
}

// source returns the file or the URL of the key set.
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
		return "", nil, errors.New("is not a URL") // the text of the error contains the URL, which may contain a password
	case at.Scheme == "https" && at.Host != "", at.Scheme == "http" && secure.OnLoopback(at.Hostname()):
		return "", at, nil
	}
	return "", nil, fmt.Errorf("%s: want a file or an https URL, because anyone who can change the key set in transit can create tokens", shown(at))
}

// shown formats a URL without the parts that may be secret.
func shown(u *url.URL) string {
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}

// A TokenError is returned when a token is rejected. It contains nothing of the token.
type TokenError struct{ Reason string }

// Error returns the reason for the rejection.
func (e *TokenError) Error() string { return "token rejected: " + e.Reason }

// ErrNoKeys is returned when tokens cannot be checked: the key set has never been read, or not for Config.MaxKeyAge.
var ErrNoKeys = errors.New("the key set has not been read, or not for auth.max_key_age")

// Verifier verifies tokens. It is safe for concurrent use. The caller must run Run.
type Verifier struct {
	cfg    Config
	secret []byte // nil: none
	keys   *keys  // nil: none
	parser *jwt.Parser
}

// MaxTokenBytes is the maximum length of a token. A token with a few hundred claims is below it.
const MaxTokenBytes = 8 << 10

// NewVerifier returns a Verifier and reads the secret file. Authentication must be enabled in cfg.
func NewVerifier(cfg Config, deps Deps) (*Verifier, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("auth: %w", err)
	}
	if deps.Now == nil {
		deps.Now = time.Now
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

// rules returns the checks of the claims of a token.
func rules(cfg Config, deps Deps) []jwt.ParserOption {
	options := []jwt.ParserOption{
		jwt.WithExpirationRequired(), jwt.WithLeeway(cfg.Leeway), jwt.WithTimeFunc(deps.Now), jwt.WithStrictDecoding(),
	}
	if cfg.Issuer != "" {
		options = append(options, jwt.WithIssuer(cfg.Issuer))
	}
	if cfg.Audience != "" {
		options = append(options, jwt.WithAudience(cfg.Audience))
	}
	return options
}

// Verify returns the caller that a token identifies. It returns a *TokenError, an *IdentityError, or ErrNoKeys, which is
// joined with the error of ctx if ctx has ended.
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
		return Caller{}, &TokenError{"its subject (sub) is missing or too long"}
	}
	c, err := v.cfg.caller(said)
	c.Expires = said.ExpiresAt.Add(v.cfg.Leeway)
	return c, err
}

// key returns the key for the signature of a token, by its algorithm.
func (v *Verifier) key(ctx context.Context, t *jwt.Token) (any, error) {
	if t.Method == jwt.SigningMethodHS256 {
		return v.secret, nil
	}
	kid, _ := t.Header["kid"].(string)
	return v.keys.find(ctx, kid, t.Method.Alg())
}

// reason describes why a token is rejected, without quoting it.
func reason(err error) string {
	for _, known := range []struct {
		err  error
		text string
	}{
		{jwt.ErrTokenExpired, "it has expired"},
		{jwt.ErrTokenNotValidYet, "it is not valid yet"},
		{jwt.ErrTokenInvalidAudience, "its audience (aud) is another one"},
		{jwt.ErrTokenInvalidIssuer, "its issuer (iss) is another one"},
		{jwt.ErrTokenRequiredClaimMissing, "it has no claim exp, iss or aud"},
		{errUnknownKey, "its key is unknown"},
		{jwt.ErrTokenMalformed, "it is not a JSON web token"},
		{jwt.ErrTokenSignatureInvalid, "its signature is invalid, or its algorithm is not accepted"},
	} {
		if errors.Is(err, known.err) {
			return known.text
		}
	}
	return "it cannot be checked"
}

// Run reloads the key set until ctx ends.
func (v *Verifier) Run(ctx context.Context) error {
	if v.keys == nil {
		<-ctx.Done()
		return nil
	}
	return v.keys.run(ctx)
}

// Ready reports whether tokens can be verified.
func (v *Verifier) Ready() bool { return v.keys == nil || v.keys.known() != nil }
