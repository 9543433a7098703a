package auth

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"sync/atomic"
	"time"

	"github.com/MicahParks/jwkset"
	"github.com/golang-jwt/jwt/v5"

	"github.com/smartfeed/smartfeed/internal/jsonbound"
)

// Deps are what a Verifier uses.
type Deps struct {
	Client *http.Client     // asks for the set of keys at a URL; nil: one that may connect anywhere
	Now    func() time.Time // nil: time.Now
	Log    *slog.Logger     // nil: none
}

func (d Deps) now() func() time.Time {
	if d.Now == nil {
		return time.Now
	}
	return d.Now
}

const (
	fetchTimeout = 5 * time.Second
	maxSetBytes  = 1 << 20
	maxSetKeys   = 1000
	keyValues    = 32 // JSON values of a key; those of RFC 7517 and 7518 have up to 16, and a chain of certificates
	maxSameName  = 8  // each is tried
	minRSABits   = 2048

	// between is the least time between two looks at the set that unknown keys cause: who sends tokens with keys of his
	// own invention troubles the one who has the set no more than that.
	between = 5 * time.Second

	// impatience is between two looks at a set that has never been read.
	impatience = time.Second
)

var errUnknownKey = errors.New("unknown key")

// keyName is a key as tokens name it.
type keyName struct{ kid, alg string }

// keySet has all keys of a name: RFC 7517 lets a set give one to several, and none to some.
type keySet map[keyName]jwt.VerificationKeySet

// readSet is a set as it was read at a time.
type readSet struct {
	keys keySet
	at   time.Time
}

// keys are the keys of a set that is somewhere else.
type keys struct {
	file    string
	at      *url.URL // nil: it is in the file
	refresh time.Duration
	maxAge  time.Duration
	client  *http.Client
	now     func() time.Time
	log     *slog.Logger

	current atomic.Pointer[readSet] // nil: never read; see known
	reading chan struct{}           // holds one while somebody reads the set
	asked   time.Time               // end of the last reading; belongs to who reads
}

func newKeys(cfg Config, deps Deps) *keys {
	k := &keys{refresh: cfg.Refresh, maxAge: cfg.MaxKeyAge, client: deps.Client, now: deps.now(), log: deps.Log, reading: make(chan struct{}, 1)}
	k.file, k.at, _ = cfg.source() // validated
	if k.client == nil {
		k.client = &http.Client{}
	}
	if k.log == nil {
		k.log = slog.New(slog.DiscardHandler)
	}
	return k
}

// find returns the keys of a name. One that is not in the set may be new: the set is read again, unless that was just done.
// While somebody does that, the set that is known holds: who sends keys of his own invention would otherwise have as many
// requests wait as he likes, for as long as the place hangs.
func (k *keys) find(ctx context.Context, kid, alg string) (jwt.VerificationKeySet, error) {
	name := keyName{kid, alg}
	if key, ok := k.look(name); ok {
		return key, nil
	}
	if err := k.enter(ctx); err != nil {
		return jwt.VerificationKeySet{}, err
	}
	defer func() { <-k.reading }()
	key, ok := k.look(name) // whoever read it before us may have found it
	if !ok && k.now().Sub(k.asked) >= between {
		k.read(ctx)
		key, ok = k.look(name)
	}
	switch {
	case ok:
		return key, nil
	case k.known() == nil:
		return jwt.VerificationKeySet{}, ErrNoKeys
	}
	return jwt.VerificationKeySet{}, errUnknownKey
}

// enter waits for who reads the set only while there is none to say with that a key is not known.
func (k *keys) enter(ctx context.Context) error {
	if k.known() != nil {
		select {
		case k.reading <- struct{}{}:
			return nil
		default:
			return errUnknownKey
		}
	}
	select {
	case k.reading <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (k *keys) look(name keyName) (jwt.VerificationKeySet, bool) {
	key, ok := k.known()[name]
	return key, ok
}

// known returns the set as it was last read; nil if it never was, or too long ago: a key that was withdrawn since would
// still count.
func (k *keys) known() keySet {
	last := k.current.Load()
	if last == nil || k.now().Sub(last.at) > k.maxAge {
		return nil
	}
	return last.keys
}

// run reads the set at once, and again whenever it is old.
func (k *keys) run(ctx context.Context) error {
	for {
		select {
		case k.reading <- struct{}{}:
			k.read(ctx)
			<-k.reading
		case <-ctx.Done():
			return nil
		}
		wait := k.refresh
		if k.known() == nil {
			wait = min(wait, impatience)
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return nil
		}
	}
}

// read takes over what the set holds now. What cannot be read changes nothing.
func (k *keys) read(ctx context.Context) {
	first := k.asked.IsZero()
	defer func() { k.asked = k.now() }() // at its end: one that hung is not begun again at once
	// The caller who caused it may go; others wait for the same keys.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), fetchTimeout)
	defer cancel()
	text, err := k.fetch(ctx)
	var set keySet
	if err == nil {
		set, err = parseSet(text)
	}
	if err == nil {
		k.current.Store(&readSet{set, k.now()})
		return
	}
	if first || k.current.Load() != nil { // not each second while it has never been read
		k.log.WarnContext(ctx, "the keys of tokens cannot be read; those known before hold until auth.max_key_age", "from", k.from(), "error", err)
	}
}

func (k *keys) from() string {
	if k.at == nil {
		return k.file
	}
	return shown(k.at)
}

func (k *keys) fetch(ctx context.Context) ([]byte, error) {
	if k.at == nil {
		f, err := os.Open(k.file)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		return bounded(f)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, k.at.String(), nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "application/json")
	client := *k.client
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	res, err := client.Do(req)
	if err != nil {
		var failed *url.Error // its text has the URL
		if errors.As(err, &failed) {
			err = failed.Err
		}
		return nil, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("status %s", res.Status)
	}
	return bounded(res.Body)
}

func bounded(r io.Reader) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxSetBytes+1))
	if len(text) > maxSetBytes {
		return nil, fmt.Errorf("more than %d bytes", maxSetBytes)
	}
	return text, err
}

// parseSet reads a set of keys. Keys that are for something else are passed over; a set without any key for tokens is an
// error, and so is a key that is damaged or weak: whoever signs with it is to hear of it.
func parseSet(text []byte) (keySet, error) {
	var document jwkset.JWKSMarshal
	if err := jsonbound.Check(text, maxSetKeys*keyValues); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, &document); err != nil {
		return nil, errors.New("it is no JSON web key set")
	}
	if len(document.Keys) > maxSetKeys {
		return nil, fmt.Errorf("%d keys: at most %d", len(document.Keys), maxSetKeys)
	}
	set := keySet{}
	for i, k := range document.Keys {
		if k.KTY != jwkset.KtyRSA && k.KTY != jwkset.KtyEC || k.USE != "" && k.USE != jwkset.UseSig {
			continue
		}
		if k.KTY == jwkset.KtyEC && k.CRV != jwkset.CrvP256 {
			continue
		}
		key, alg, err := parseKey(k)
		if err != nil {
			return nil, fmt.Errorf("key %d: %w", i+1, err)
		}
		if k.ALG != "" && string(k.ALG) != alg {
			continue
		}
		name := keyName{k.KID, alg}
		if len(set[name].Keys) == maxSameName {
			return nil, fmt.Errorf("key %d: more than %d with its name (kid)", i+1, maxSameName)
		}
		set[name] = jwt.VerificationKeySet{Keys: append(set[name].Keys, key)}
	}
	if len(set) == 0 {
		return nil, errors.New("it holds no key for RS256 or ES256")
	}
	return set, nil
}

// parseKey returns a public key and the algorithm that it is for. Chains of certificates are not looked at: nothing is
// fetched for a key.
func parseKey(k jwkset.JWKMarshal) (any, string, error) {
	k.X5U, k.X5C, k.X5T, k.X5TS256 = "", nil, "", ""
	parsed, err := jwkset.NewJWKFromMarshal(k, jwkset.JWKMarshalOptions{}, jwkset.JWKValidateOptions{SkipAll: true})
	if err != nil {
		return nil, "", errors.New("it is damaged") // the text of the error has parts of the key
	}
	switch key := parsed.Key().(type) {
	case *rsa.PublicKey:
		if key.N.BitLen() < minRSABits || key.E < 3 || key.E%2 == 0 {
			return nil, "", fmt.Errorf("an RSA key of %d bits: want at least %d, and an odd exponent", key.N.BitLen(), minRSABits)
		}
		return key, jwt.SigningMethodRS256.Alg(), nil
	case *ecdsa.PublicKey:
		if _, err := key.ECDH(); err != nil || key.Curve != elliptic.P256() {
			return nil, "", errors.New("no point of P-256")
		}
		return key, jwt.SigningMethodES256.Alg(), nil
	}
	return nil, "", errors.New("of no kind that is known")
}
