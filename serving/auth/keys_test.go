package auth

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
)

// keyServer is the server of a key set. Without text it is unavailable.
type keyServer struct {
	mu       sync.Mutex
	text     []byte
	hangs    atomic.Bool // accepts requests, and never answers
	requests atomic.Int32
}

func (p *keyServer) put(text []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.text = text
}

// RoundTrip answers requests to every address.
func (p *keyServer) RoundTrip(r *http.Request) (*http.Response, error) {
	p.requests.Add(1)
	if p.hangs.Load() {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.text == nil {
		return nil, errors.New("the key server is unavailable")
	}
	return &http.Response{StatusCode: 200, Body: io.NopCloser(strings.NewReader(string(p.text)))}, nil
}

// onKeyServer runs test with a verifier of a key set at a URL, in a synctest bubble.
func onKeyServer(t *testing.T, test func(t *testing.T, p *keyServer, v *Verifier, verify func(signer) error)) {
	synctest.Test(t, func(t *testing.T) {
		p := &keyServer{}
		cfg := configured()
		cfg.JWKS = "https://id/keys"
		v := must.Get(NewVerifier(cfg, Deps{Client: &http.Client{Transport: p}}))(t)
		verify := func(s signer) error {
			_, err := v.Verify(t.Context(), s.sign(t, jwt.MapClaims{"exp": time.Now().Add(time.Hour).Unix()}))
			return err
		}
		test(t, p, v, verify)
	})
}

// run runs a verifier until the end of a test.
func run(t *testing.T, v *Verifier) {
	t.Helper()
	ended := make(chan error, 1)
	go func() { ended <- v.Run(t.Context()) }()
	t.Cleanup(func() { must.OK(t, <-ended) })
	synctest.Wait()
}

// checkRefused checks that an error rejects a token.
func checkRefused(t *testing.T, err error, format string, args ...any) {
	t.Helper()
	if token := new(*TokenError); !errors.As(err, token) {
		t.Errorf("%s: got %v, want it rejected", fmt.Sprintf(format, args...), err)
	}
}

func TestKeys_Rotate(t *testing.T) {
	old, young := ecSigner(t, "1"), ecSigner(t, "2")
	onKeyServer(t, func(t *testing.T, p *keyServer, v *Verifier, verify func(signer) error) {
		p.put(setOf(t, old))
		must.OK(t, verify(old)) // loads the keys
		p.put(setOf(t, young))
		time.Sleep(rereadInterval)
		expect.Error(t, verify(young), "", "a new key, for which the set is read again")
		checkRefused(t, verify(old), "a removed key")
	})
}

func TestKeys_ReloadOldSet(t *testing.T) {
	key := ecSigner(t, "1")
	onKeyServer(t, func(t *testing.T, p *keyServer, v *Verifier, verify func(signer) error) {
		run(t, v)
		expect.False(t, v.Ready(), "ready while the keys are unavailable")
		expect.Equal(t, p.requests.Load(), 1, "requests while the keys are unavailable")
		expect.Is(t, verify(key), ErrNoKeys, "never read")
		p.put(setOf(t, key))
		time.Sleep(retryInterval)
		synctest.Wait()
		if err := verify(key); !v.Ready() || err != nil {
			t.Errorf("available: got ready %v, %v", v.Ready(), err)
		}
		p.put(nil)
		time.Sleep(12 * time.Hour)
		expect.Error(t, verify(key), "", "a key of a set that is unavailable for half a day")
		p.put([]byte(`{"keys":[]}`))
		time.Sleep(11 * time.Hour)
		expect.Error(t, verify(key), "", "a key after an empty set")
		p.put(setOf(t, ecSigner(t, "2")))
		time.Sleep(v.cfg.RefreshInterval)
		synctest.Wait()
		checkRefused(t, verify(key), "a removed key")
	})
}

func TestKeys_ExpireAfterMaxKeyAge(t *testing.T) {
	key := ecSigner(t, "1")
	onKeyServer(t, func(t *testing.T, p *keyServer, v *Verifier, verify func(signer) error) {
		p.put(setOf(t, key))
		run(t, v)
		p.put(nil)
		time.Sleep(v.cfg.MaxKeyAge)
		expect.Error(t, verify(key), "", "key at the maximum age")
		expect.True(t, v.Ready(), "ready at the maximum age")
		time.Sleep(time.Second)
		if err := verify(key); !errors.Is(err, ErrNoKeys) || v.Ready() {
			t.Errorf("above the maximum age: got %v, ready %t, want ErrNoKeys", err, v.Ready())
		}
		p.put(setOf(t, key))
		time.Sleep(v.cfg.RefreshInterval)
		synctest.Wait()
		expect.Error(t, verify(key), "", "key after the set was read again")
		expect.True(t, v.Ready(), "ready after the set was read again")
	})
}

// Invented keys cause a read of the key set only every few seconds.
func TestKeys_UnknownKeysCauseFewReads(t *testing.T) {
	known := ecSigner(t, "1")
	onKeyServer(t, func(t *testing.T, p *keyServer, v *Verifier, verify func(signer) error) {
		p.put(setOf(t, known))
		must.OK(t, verify(known))
		stranger := known
		for range 100 {
			stranger.kid += "x"
			checkRefused(t, verify(stranger), "an unknown key")
		}
		expect.Equal(t, p.requests.Load(), 1, "requests")
	})
}

// If the server of the key set hangs, only one request with an invented key waits for it, every few seconds. The other ones
// are rejected at once and do not occupy the server.
func TestKeys_UnknownKeysAreRejectedDuringRead(t *testing.T) {
	known := ecSigner(t, "1")
	onKeyServer(t, func(t *testing.T, p *keyServer, _ *Verifier, verify func(signer) error) {
		p.put(setOf(t, known))
		must.OK(t, verify(known))
		p.hangs.Store(true)
		stranger := known
		stranger.kid = "x"
		time.Sleep(rereadInterval)
		began := time.Now()
		var waited atomic.Int32
		var callers sync.WaitGroup
		for range 10 {
			callers.Go(func() {
				checkRefused(t, verify(stranger), "an invented key")
				if time.Since(began) > 0 {
					waited.Add(1)
				}
			})
		}
		synctest.Wait()
		if err := verify(known); err != nil || time.Since(began) > 0 {
			t.Errorf("a known key: got %v after %s, want it accepted at once", err, time.Since(began))
		}
		callers.Wait()
		expect.Equal(t, waited.Load(), 1, "callers that waited")
		expect.Equal(t, time.Since(began), fetchTimeout, "the last was rejected after")
		checkRefused(t, verify(stranger), "an invented key right after it")
		expect.Equal(t, time.Since(began), fetchTimeout, "the next was rejected after")
		expect.Equal(t, p.requests.Load(), 2, "requests")
	})
}

// Without a key set no token can be rejected: all requests wait for the one read in flight, and do not start their own.
func TestKeys_FirstReadIsShared(t *testing.T) {
	key := ecSigner(t, "1")
	onKeyServer(t, func(t *testing.T, p *keyServer, _ *Verifier, verify func(signer) error) {
		p.hangs.Store(true)
		began := time.Now()
		var callers sync.WaitGroup
		for range 10 {
			callers.Go(func() {
				expect.Is(t, verify(key), ErrNoKeys, "verify")
			})
		}
		callers.Wait()
		if took, n := time.Since(began), p.requests.Load(); took != fetchTimeout || n != 1 {
			t.Errorf("answered after %s and %d requests, want %s and one", took, n, fetchTimeout)
		}
	})
}

func TestParseSet_Rejects(t *testing.T) {
	weak, good, off, other := rsaSigner(t, "w", 1024), ecSigner(t, "g"), ecSigner(t, "o"), rsaSigner(t, "e", 2048)
	off.public["y"] = off.public["x"]
	other.public["use"] = "enc"
	for name, c := range map[string]struct {
		text []byte
		want string
	}{
		"no JSON":              {[]byte("<html>"), "not a JSON web key set"},
		"empty":                {[]byte(`{}`), "no key"},
		"a weak key":           {setOf(t, good, weak), "key 2: an RSA key of 1024 bits"},
		"no point":             {setOf(t, off), "key 1: not a point"},
		"a key for encryption": {setOf(t, other), "no key"},
		"a secret":             {[]byte(`{"keys":[{"kty":"oct","kid":"s","k":"c2VjcmV0"}]}`), "no key"},
		"damaged":              {[]byte(`{"keys":[{"kty":"EC","crv":"P-256","x":"!canary","y":"AA"}]}`), "key 1: it is damaged"},
		"too many of a name":   {setOf(t, slices.Repeat([]signer{good}, maxSameName+1)...), "key 9: more than 8 with its name"},
		"too many":             {[]byte(`{"keys":[` + strings.Repeat(`{"kty":"x"},`, maxSetKeys) + `{"kty":"x"}]}`), "at most 1000"},
	} {
		if _, err := parseSet(c.text); err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
	expect.Equal(t, len(must.Get(parseSet(setOf(t, good, other)))(t)), 1, "keys, of which one is valid")
}

// Several keys in a set may have the same name, or none. A token of each is accepted, and a token of any other key is
// rejected.
func TestKeys_SameName(t *testing.T) {
	for _, kid := range []string{"", "same"} {
		all := []signer{rsaSigner(t, kid, 2048), rsaSigner(t, kid, 2048), ecSigner(t, kid), ecSigner(t, kid)}
		cfg := configured()
		cfg.JWKS = write(t, string(setOf(t, all...)))
		v := verifier(t, cfg, nil)
		for i, s := range all {
			expect.Error(t, expect.ErrorOf(v.Verify(t.Context(), s.sign(t, nil))), "", "kid %q, key %d", kid, i+1)
		}
		for _, s := range []signer{rsaSigner(t, kid, 2048), ecSigner(t, kid)} {
			checkRefused(t, expect.ErrorOf(v.Verify(t.Context(), s.sign(t, nil))), "kid %q, a stranger's key", kid)
		}
	}
}

// When a key set cannot be read, no secret is logged, redirects are not followed, and the size of bodies is bounded.
func TestKeys_ReadErrorsHideSecrets(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/redirect":
			http.Redirect(w, r, "/", http.StatusFound)
		case "/huge":
			_, _ = w.Write(make([]byte, maxSetBytes+1))
		default:
			w.WriteHeader(http.StatusTeapot)
		}
	}))
	defer server.Close()
	for path, want := range map[string]string{"/redirect": "302", "/huge": "more than", "/": "418", "://": ""} {
		var text strings.Builder
		cfg := configured()
		cfg.JWKS = server.URL + path + "?key=canary"
		if path == "://" { // no server listens
			cfg.JWKS, want = "https://127.0.0.1:1/?key=canary", "refused"
		}
		v := must.Get(NewVerifier(cfg, Deps{Client: server.Client(), Log: slog.New(slog.NewTextHandler(&text, nil))}))(t)
		_, err := v.Verify(t.Context(), ecSigner(t, "1").sign(t, nil))
		if !errors.Is(err, ErrNoKeys) || !strings.Contains(text.String(), want) || strings.Contains(text.String(), "canary") {
			t.Errorf("%s: got %v, and logged %s; want %q in it", path, err, text.String(), want)
		}
	}
	server.Client().CloseIdleConnections()
}

// sameSigners returns a signer of each algorithm. Their keys are the same in every process, because fuzzing runs the inputs
// of one process in others.
func sameSigners(t testing.TB, secret []byte) []signer {
	t.Helper()
	scalar := sha256.Sum256([]byte("a fixed key"))
	ec := must.Get(ecdsa.ParseRawPrivateKey(elliptic.P256(), scalar[:]))(t)
	p, q := prime("p"), prime("q")
	one, e := big.NewInt(1), 65537
	phi := new(big.Int).Mul(new(big.Int).Sub(p, one), new(big.Int).Sub(q, one))
	r := &rsa.PrivateKey{Primes: []*big.Int{p, q}, D: new(big.Int).ModInverse(big.NewInt(int64(e)), phi)}
	r.PublicKey = rsa.PublicKey{N: new(big.Int).Mul(p, q), E: e}
	r.Precompute()
	must.OK(t, r.Validate())
	return []signer{{jwt.SigningMethodHS256, "", secret, nil}, rsaSignerOf("r-1", r), ecSignerOf(t, "e-1", ec)}
}

// prime returns the first 1024-bit prime at or above a number derived from the text.
func prime(text string) *big.Int {
	var digits []byte
	for i := range 4 {
		part := sha256.Sum256(fmt.Append(nil, text, i))
		digits = append(digits, part[:]...)
	}
	digits[0] |= 0xc0
	n := new(big.Int).SetBytes(digits)
	n.SetBit(n, 0, 1)
	for two := big.NewInt(2); !n.ProbablyPrime(20); {
		n.Add(n, two)
	}
	return n
}

// signed returns the part of a token that its signature covers.
func signed(token string) string { return token[:strings.LastIndex(token, ".")+1] }

// withHeader returns a token with another header and the same signature.
func withHeader(token, header string) string {
	_, rest, _ := strings.Cut(token, ".")
	return segment([]byte(header)) + "." + rest
}

// Every accepted token was signed with a known key, for all three algorithms and any header.
func FuzzVerify(f *testing.F) {
	secret := []byte(strings.Repeat("s", MinSecretBytes))
	signers := sameSigners(f, secret)
	cfg := configured()
	cfg.SecretFile, cfg.JWKS = write(f, string(secret)), write(f, string(setOf(f, signers[1:]...)))
	v := verifier(f, cfg, nil)
	good := map[string]bool{}
	for _, s := range signers {
		token := s.sign(f, nil)
		must.Get(v.Verify(f.Context(), token))(f)
		good[signed(token)] = true
		f.Add(token)
		f.Add(signed(token))
		f.Add(forged(token))
		for _, header := range []string{
			`{"alg":"none"}`, `{"alg":"HS256"}`, `{"alg":"HS256","kid":"r-1"}`, `{"alg":"RS256","kid":"r-1"}`, `{"alg":"RS256","kid":"e-1"}`,
			`{"alg":"ES256","kid":"e-1"}`, `{"alg":"ES256","kid":"r-1"}`, `{"alg":"RS256"}`, `{"alg":"rs256","kid":"r-1"}`, `{"alg":"RS512","kid":"r-1"}`,
			`{"alg":"PS256","kid":"r-1"}`, `{"alg":"RS256","kid":["r-1"]}`, `{"alg":"RS256","kid":"r-1","jwk":{"kty":"oct","k":"c3M"}}`,
			`{"alg":"RS256","kid":"r-1","crit":["exp"]}`, `{}`, `[]`,
		} {
			f.Add(withHeader(token, header))
		}
	}
	f.Add(signer{jwt.SigningMethodNone, "", jwt.UnsafeAllowNoneSignatureType, nil}.sign(f, nil))
	f.Add(signer{jwt.SigningMethodHS256, "r-1", []byte(signers[1].public["n"]), nil}.sign(f, nil)) // a public key as a secret
	f.Add("a.b.c")
	f.Fuzz(func(t *testing.T, token string) {
		got, err := v.Verify(t.Context(), token)
		var refused *TokenError
		switch {
		case err == nil && (!good[signed(token)] || got.User != "user:ada" || got.HasScope(Operate)):
			t.Errorf("%q is accepted as %+v", token, got)
		case err != nil && (!errors.As(err, &refused) || got.Subject != ""):
			t.Errorf("%q: got %+v and %v, want no caller and an error", token, got, err)
		}
	})
}

func FuzzParseSet(f *testing.F) {
	f.Add([]byte(`{"keys":[{"kty":"EC","crv":"P-256","kid":"1","x":"AA","y":"AA"},{"kty":"RSA","n":"AA","e":"AQAB"}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		if set, err := parseSet(text); (err == nil) != (len(set) > 0) {
			t.Errorf("got %d keys and %v", len(set), err)
		}
	})
}

// A set of many empty keys is short, but would be large when decoded.
func TestParseSet_BoundsValues(t *testing.T) {
	text := []byte(`{"keys":[` + strings.Repeat("{},", maxSetBytes/3-10) + `{}]}`)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := parseSet(text)
	runtime.ReadMemStats(&after)
	expect.Error(t, err, "JSON values", "parseSet")
	expect.AtMost(t, (after.TotalAlloc-before.TotalAlloc)>>10, 100, "allocated KiB")
}
