package auth

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"math/big"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"go.uber.org/goleak"

	"github.com/smartfeed/smartfeed/internal/settings"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// now is the time of every clock in these tests.
var now = time.Unix(1_800_000_000, 0)

// signer signs tokens, and has the entry of its key in the key set.
type signer struct {
	method jwt.SigningMethod
	kid    string
	key    any
	public map[string]string
}

func segment(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

func rsaSigner(t testing.TB, kid string, bits int) signer {
	t.Helper()
	key := must.Get(rsa.GenerateKey(rand.Reader, bits))(t)
	return rsaSignerOf(kid, key)
}

func rsaSignerOf(kid string, key *rsa.PrivateKey) signer {
	return signer{jwt.SigningMethodRS256, kid, key, map[string]string{
		"kty": "RSA", "kid": kid, "use": "sig", "alg": "RS256",
		"n": segment(key.N.Bytes()), "e": segment(big.NewInt(int64(key.E)).Bytes()),
	}}
}

func ecSigner(t testing.TB, kid string) signer {
	t.Helper()
	key := must.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	return ecSignerOf(t, kid, key)
}

func ecSignerOf(t testing.TB, kid string, key *ecdsa.PrivateKey) signer {
	t.Helper()
	point := must.Get(key.PublicKey.Bytes())(t)
	return signer{jwt.SigningMethodES256, kid, key, map[string]string{
		"kty": "EC", "crv": "P-256", "kid": kid, "x": segment(point[1:33]), "y": segment(point[33:]),
	}}
}

// sign returns a token with the claims of a valid one and the given changes. nil removes a claim.
func (s signer) sign(t testing.TB, change jwt.MapClaims) string {
	t.Helper()
	claims := jwt.MapClaims{"sub": "user:ada", "exp": now.Add(time.Hour).Unix(), "iss": "https://id", "aud": "smartfeed", "scope": "feed events"}
	for name, v := range change {
		if claims[name] = v; v == nil {
			delete(claims, name)
		}
	}
	token := jwt.NewWithClaims(s.method, claims)
	if s.kid != "" {
		token.Header["kid"] = s.kid
	}
	return must.Get(token.SignedString(s.key))(t)
}

func setOf(t testing.TB, signers ...signer) []byte {
	t.Helper()
	var set struct {
		Keys []map[string]string `json:"keys"`
	}
	for _, s := range signers {
		set.Keys = append(set.Keys, s.public)
	}
	return must.Get(json.Marshal(set))(t)
}

func write(t testing.TB, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "file")
	must.OK(t, os.WriteFile(file, []byte(text), 0o600))
	return file
}

func verifier(t testing.TB, cfg Config, client *http.Client) *Verifier {
	t.Helper()
	return must.Get(NewVerifier(cfg, Deps{Client: client, Now: func() time.Time { return now }}))(t)
}

func configured() Config {
	cfg := DefaultConfig()
	cfg.Issuer, cfg.Audience = "https://id", "smartfeed"
	return cfg
}

func TestVerify_Tokens(t *testing.T) {
	secret := strings.Repeat("s", MinSecretBytes)
	mine := signer{jwt.SigningMethodHS256, "", []byte(secret), nil}
	rs, es, stranger := rsaSigner(t, "r-1", 2048), ecSigner(t, "e-1"), ecSigner(t, "e-1")
	cfg := configured()
	cfg.SecretFile, cfg.JWKS = write(t, secret+"\n"), write(t, string(setOf(t, rs, es)))
	v := verifier(t, cfg, nil)

	confused := signer{jwt.SigningMethodHS256, "r-1", []byte(rs.public["n"]), nil} // a public key as a secret
	none := signer{jwt.SigningMethodNone, "", jwt.UnsafeAllowNoneSignatureType, nil}
	long := signer{jwt.SigningMethodHS512, "", []byte(secret), nil}
	unnamed, renamed := es, es
	unnamed.kid, renamed.kid = "", "e-2"
	good := mine.sign(t, nil)
	for _, c := range []struct {
		name, token, want string // want: "" if the token is accepted
	}{
		{"HS256", good, ""},
		{"RS256", rs.sign(t, nil), ""},
		{"ES256", es.sign(t, nil), ""},
		{"expired within the leeway", mine.sign(t, jwt.MapClaims{"exp": now.Add(-29 * time.Second).Unix()}), ""},
		{"expired", mine.sign(t, jwt.MapClaims{"exp": now.Add(-31 * time.Second).Unix()}), "expired"},
		{"no expiry", mine.sign(t, jwt.MapClaims{"exp": nil}), "has no claim"},
		{"not yet", mine.sign(t, jwt.MapClaims{"nbf": now.Add(time.Minute).Unix()}), "not valid yet"},
		{"another audience", mine.sign(t, jwt.MapClaims{"aud": "mail"}), "audience"},
		{"no audience", mine.sign(t, jwt.MapClaims{"aud": nil}), "has no claim"},
		{"another issuer", mine.sign(t, jwt.MapClaims{"iss": "https://idx"}), "issuer"},
		{"no subject", mine.sign(t, jwt.MapClaims{"sub": nil}), "subject"},
		{"subject too long", mine.sign(t, jwt.MapClaims{"sub": strings.Repeat("x", 257)}), "subject"},
		{"another key of the same name", stranger.sign(t, nil), "signature"},
		{"an unknown key", renamed.sign(t, nil), "key is unknown"},
		{"a key without name", unnamed.sign(t, nil), "key is unknown"},
		{"a public key as a secret", confused.sign(t, nil), "signature"},
		{"no signature", none.sign(t, nil), "algorithm"},
		{"another algorithm", long.sign(t, nil), "algorithm"},
		{"a changed claim", forged(good), "signature"},
		{"nonsense", "x.y.z", "not a JSON web token"},
		{"nothing", "", "not a JSON web token"},
		{"too long", strings.Repeat("x", MaxTokenBytes+1), "too long"},
	} {
		got, err := v.Verify(t.Context(), c.token)
		var refused *TokenError
		switch {
		case c.want == "":
			if err != nil || got.User != "user:ada" || !got.HasScope(Feed) || !got.HasScope(Events) || got.HasScope(Operate) {
				t.Errorf("%s: got %+v, %v, want it accepted", c.name, got, err)
			}
		case !errors.As(err, &refused) || !strings.Contains(err.Error(), c.want):
			t.Errorf("%s: got %+v, %v, want it rejected: %s", c.name, got, err, c.want)
		case c.token != "" && strings.Contains(err.Error(), c.token):
			t.Errorf("%s: the error holds the token: %v", c.name, err)
		}
	}
}

// Without a secret, the key for HS256 would be empty, so anyone could sign tokens.
func TestVerify_RejectsHS256WithoutSecret(t *testing.T) {
	rs := rsaSigner(t, "r-1", 2048)
	cfg := configured()
	cfg.JWKS = write(t, string(setOf(t, rs)))
	v := verifier(t, cfg, nil)
	must.Get(v.Verify(t.Context(), rs.sign(t, nil)))(t)
	for name, key := range map[string][]byte{"empty": {}, "public": []byte(rs.public["n"])} {
		token := signer{jwt.SigningMethodHS256, "r-1", key, nil}.sign(t, nil)
		checkRefused(t, expect.ErrorOf(v.Verify(t.Context(), token)), "HS256 with the %s key", name)
	}
}

// forged gives a token the scope operate and keeps the signature.
func forged(token string) string {
	parts := strings.Split(token, ".")
	body, _ := base64.RawURLEncoding.DecodeString(parts[1])
	parts[1] = segment([]byte(strings.Replace(string(body), "feed events", "operate feed", 1)))
	return strings.Join(parts, ".")
}

// identified returns the caller of a token with the given claims.
func identified(t *testing.T, i Identities, change jwt.MapClaims) (Caller, error) {
	t.Helper()
	secret := strings.Repeat("s", MinSecretBytes)
	cfg := DefaultConfig()
	cfg.Identities, cfg.SecretFile = i, write(t, secret)
	return verifier(t, cfg, nil).Verify(t.Context(), signer{jwt.SigningMethodHS256, "", []byte(secret), nil}.sign(t, change))
}

func TestIdentities_DistinguishUsersAndServices(t *testing.T) {
	byClaim := Identities{UserPrefix: "auth0|", ServiceClaim: "gty", ServiceClaimValue: "client-credentials"}
	all := Identities{ServicePrefix: "svc-"}
	for _, c := range []struct {
		name       string
		identities Identities
		claims     jwt.MapClaims
		want       string // a user, "service", or part of an error
	}{
		{"user", settings.Defaults[Identities](), jwt.MapClaims{"sub": "user:ada"}, "user:ada"},
		{"service", settings.Defaults[Identities](), jwt.MapClaims{"sub": "service:ranker"}, "service"},
		{"opaque subject", settings.Defaults[Identities](), jwt.MapClaims{"sub": "4f1c-77"}, `with the prefix "user:", or a service's with the prefix "service:"`},
		{"other kind of id", settings.Defaults[Identities](), jwt.MapClaims{"sub": "board:1"}, "neither"},
		{"prefix without colon", settings.Defaults[Identities](), jwt.MapClaims{"sub": "users:ada"}, "neither"},
		{"case differs", settings.Defaults[Identities](), jwt.MapClaims{"sub": "Service:ranker"}, "neither"},
		{"mapped user", byClaim, jwt.MapClaims{"sub": "auth0|ada"}, "user:ada"},
		{"user without the prefix", byClaim, jwt.MapClaims{"sub": "user:ada"}, "neither"},
		{"service by claim", byClaim, jwt.MapClaims{"sub": "x@clients", "gty": "client-credentials"}, "service"},
		{"service by list claim", byClaim, jwt.MapClaims{"sub": "x@clients", "gty": []string{"a", "client-credentials"}}, "service"},
		{"another value", byClaim, jwt.MapClaims{"sub": "x@clients", "gty": "password"}, "neither"},
		{"another type", byClaim, jwt.MapClaims{"sub": "x@clients", "gty": true}, "neither"},
		{"user with the claim of a service", byClaim, jwt.MapClaims{"sub": "auth0|ada", "gty": "client-credentials"}, "claim of a service"},
		{"every other subject is a user", all, jwt.MapClaims{"sub": "4f1c-77"}, "user:4f1c-77"},
		{"service, all others are users", all, jwt.MapClaims{"sub": "svc-ranker"}, "service"},
		{"only the prefix is not a service", all, jwt.MapClaims{"sub": "svc"}, "user:svc"},
	} {
		got, err := identified(t, c.identities, c.claims)
		var neither *IdentityError
		switch {
		case c.want == "service" && (err != nil || got.User != "" || got.Subject != c.claims["sub"]),
			strings.HasPrefix(c.want, "user:") && (err != nil || string(got.User) != c.want),
			c.want != "service" && !strings.HasPrefix(c.want, "user:") && (!errors.As(err, &neither) || !strings.Contains(err.Error(), c.want) || got.HasScope(Feed)):
			t.Errorf("%s: got %+v, %v, want %s", c.name, got, err, c.want)
		}
	}
}

func TestIdentities_Validate(t *testing.T) {
	for want, i := range map[string]Identities{
		"":                               settings.Defaults[Identities](),
		"one starts with the other":      {UserPrefix: "u", ServicePrefix: "u-s"},
		"service_claim_value: one is":    {UserPrefix: "user:", ServiceClaim: "gty"},
		"user_prefix: 129 bytes are out": {UserPrefix: strings.Repeat("x", 129)},
	} {
		expect.Error(t, i.Validate(), want, "%+v", i)
	}
}

func TestMint_FollowsConfiguredIdentities(t *testing.T) {
	for name, i := range map[string]Identities{
		"default":  settings.Defaults[Identities](),
		"by claim": {UserPrefix: "auth0|", ServiceClaim: "gty", ServiceClaimValue: "client-credentials"},
	} {
		secret := strings.Repeat("s", MinSecretBytes)
		cfg := DefaultConfig()
		cfg.Identities, cfg.SecretFile = i, write(t, secret)
		for _, grant := range []Grant{{User: "user:ada", For: time.Hour}, {Service: "ranker", Scopes: []string{Feed}, For: time.Hour}} {
			token := must.Get(Mint(cfg, []byte(secret), grant, now))(t)
			got, err := verifier(t, cfg, nil).Verify(t.Context(), token)
			if err != nil || got.User != grant.User || got.HasScope(Feed) != (grant.Service != "") {
				t.Errorf("%s: %+v: got %+v, %v", name, grant, got, err)
			}
		}
	}
}

// A subject with a user's prefix but an invalid name is not a service either: a service's scopes would count.
func TestIdentities_InvalidUserIsNotAService(t *testing.T) {
	for _, subject := range []string{"user:", "user:x\u0007", "user:a\u0000", "user:\ufffd\u0085", "user:\n"} {
		got, err := identified(t, settings.Defaults[Identities](), jwt.MapClaims{"sub": subject, "scope": "feed"})
		var refused *TokenError
		if !errors.As(err, &refused) || got.Subject != "" || got.HasScope(Feed) || strings.Contains(err.Error(), subject) {
			t.Errorf("%q: got %+v, %v, want it rejected", subject, got, err)
		}
	}
}

func TestMint_TokensVerify(t *testing.T) {
	cfg := configured()
	cfg.SecretFile = filepath.Join(t.TempDir(), "deeper", "secret")
	secret, made, err := MakeSecret(cfg.SecretFile)
	if err != nil || !made {
		t.Fatalf("got %v, %v, want a new secret", made, err)
	}
	if again, made, err := MakeSecret(cfg.SecretFile); err != nil || made || string(again) != string(secret) {
		t.Errorf("got %v, %v, want the same secret", made, err)
	}
	expect.Equal(t, must.Get(os.Stat(cfg.SecretFile))(t).Mode().Perm(), 0o600, "mode of the secret: readable only by its owner")
	token := must.Get(Mint(cfg, secret, Grant{Service: "dashboard", Scopes: []string{Operate}, For: time.Minute}, now))(t)
	if got, err := verifier(t, cfg, nil).Verify(t.Context(), token); err != nil || got.Subject != "service:dashboard" || !got.Expires.Equal(now.Add(time.Minute+cfg.Leeway)) || !got.HasScope(Operate) || got.HasScope(Feed) {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestMakeSecret_ConcurrentCallersGetSameSecret(t *testing.T) {
	for range 50 { // a caller must not read the file before it is complete
		file, secrets := filepath.Join(t.TempDir(), "secret"), make(chan string, 8)
		var callers sync.WaitGroup
		var created atomic.Int32
		for range cap(secrets) {
			callers.Go(func() {
				secret, made, err := MakeSecret(file)
				expect.Error(t, err, "", "MakeSecret")
				if made {
					created.Add(1)
				}
				secrets <- string(secret)
			})
		}
		callers.Wait()
		first := <-secrets
		for range cap(secrets) - 1 {
			expect.Equal(t, <-secrets, first, "the secret")
		}
		expect.Equal(t, created.Load(), 1, "callers that created the file")
	}
}

func TestReadSecret_Rejects(t *testing.T) {
	cfg := DefaultConfig()
	for file, want := range map[string]string{
		write(t, strings.Repeat("s", MinSecretBytes-1)+"\n"): "holds 31 bytes", filepath.Join(t.TempDir(), "none"): "no such file",
	} {
		cfg.SecretFile = file
		if _, err := NewVerifier(cfg, Deps{}); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "sss") {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

func TestSentToken(t *testing.T) {
	file := write(t, "of-file\n")
	for _, c := range []struct {
		file    string
		environ []string
		want    string
	}{
		{"", nil, ""},
		{file, nil, "of-file"},
		{file, []string{"SMARTFEED_TOKEN="}, "of-file"},
		{file, []string{"A=b", "SMARTFEED_TOKEN=of-environment"}, "of-environment"},
	} {
		expect.Equal(t, must.Get((Config{TokenFile: c.file}).SentToken(c.environ))(t), c.want, "%v", c)
	}
	expect.Is(t, expect.ErrorOf(Config{TokenFile: file + "x"}.SentToken(nil)), fs.ErrNotExist, "no file")
}

func TestValidate(t *testing.T) {
	for _, c := range []struct {
		change func(*Config)
		want   string
	}{
		{func(*Config) {}, ""},
		{func(c *Config) { c.JWKS, c.Audience = "keys.json", "a" }, ""},
		{func(c *Config) { c.JWKS, c.Audience = "https://id/keys", "a" }, ""},
		{func(c *Config) { c.JWKS, c.Audience = "http://127.0.0.1/keys", "a" }, ""},
		{func(c *Config) { c.JWKS = "keys.json" }, "audience: is empty"},
		{func(c *Config) { c.JWKS, c.Audience = "http://id/keys", "a" }, "jwks: http://id/keys: want a file or an https URL"},
		{func(c *Config) { c.JWKS, c.Audience = "https://ada:horse@id/keys?k=horse", "a" }, "jwks: contains a user"},
		{func(c *Config) { c.JWKS, c.Audience = "ftp://id/keys?k=horse", "a" }, "jwks: ftp://id/keys: want"},
		{func(c *Config) { c.JWKS, c.Audience = "https://\x7fhorse", "a" }, "jwks: is not a URL"},
		{func(c *Config) { c.Leeway = 6 * time.Minute }, "leeway: 6m:"},
		{func(c *Config) { c.RefreshInterval = 0 }, "refresh_interval: 0s"},
		{func(c *Config) { c.MaxKeyAge = c.RefreshInterval - 1 }, "max_key_age: "},
		{func(c *Config) { c.MaxKeyAge = 721 * time.Hour }, "max_key_age: "},
	} {
		cfg := DefaultConfig()
		c.change(&cfg)
		err := cfg.Validate()
		if (err == nil) != (c.want == "") || err != nil && (!strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "horse")) {
			t.Errorf("got %v, want %q", err, c.want)
		}
	}
}

// call returns a request to a process, signed by by if it is not nil.
func call(t *testing.T, by *Peers, url, body string) *http.Request {
	t.Helper()
	r := must.Get(http.NewRequest(http.MethodPost, url, strings.NewReader(body)))(t)
	if by != nil {
		must.OK(t, by.Sign(r, []byte(body)))
	}
	return r
}

func TestPeers_AcceptsCallsSignedForThem(t *testing.T) {
	at := now
	clock := func() time.Time { return at }
	secret := []byte(strings.Repeat("p", 32))
	caller, callee := NewPeers(secret, "caller:1", clock), NewPeers(secret, "callee:2", clock)
	r := call(t, caller, "http://callee:2/peer/chunk", "{}")
	expect.False(t, strings.Contains(r.Header.Get("Authorization"), "ppp"), "the secret itself is sent")
	must.OK(t, callee.Check(r))
	expect.Equal(t, string(must.Get(io.ReadAll(r.Body))(t)), "{}", "body after the check")
	r = call(t, caller, "http://callee:2/peer/chunk", "{}")
	at = now.Add(peerLife + peerLeeway + time.Second)
	checkRefused(t, callee.Check(r), "an old token")
}

func TestPeers_RejectsTokensOfOtherCalls(t *testing.T) {
	clock := func() time.Time { return now }
	secret := []byte(strings.Repeat("p", 32))
	caller, callee := NewPeers(secret, "caller:1", clock), NewPeers(secret, "callee:2", clock)
	stranger := NewPeers([]byte(strings.Repeat("q", 32)), "caller:1", clock)
	userToken := must.Get(Mint(Config{}, secret, Grant{User: "user:ada", Scopes: Scopes(), For: time.Hour}, now))(t)
	const url, body = "http://callee:2/peer/chunk", `{"user":"user:ada"}`
	tooLong := strings.Repeat("x", MaxPeerBytes+1)
	for name, signed := range map[string]*http.Request{
		"another secret":  call(t, stranger, url, body),
		"no token":        call(t, nil, url, body),
		"another address": call(t, caller, "http://attacker:2/peer/chunk", body),
		"another path":    call(t, caller, "http://callee:2/peer/pool", body),
		"another body":    call(t, caller, url, `{"user":"user:bob"}`),
		"a longer body":   call(t, caller, url, tooLong),
		"a user's token":  {Header: http.Header{"Authorization": {"Bearer " + userToken}}},
	} {
		r := call(t, nil, url, body)
		if name == "a longer body" {
			r = call(t, nil, url, tooLong)
		}
		r.Header = signed.Header
		checkRefused(t, callee.Check(r), "%s", name)
	}
}
