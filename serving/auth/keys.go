package auth

import (
	"cmp"
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
	"sync/atomic"
	"time"

	"github.com/MicahParks/jwkset"
	"github.com/golang-jwt/jwt/v5"

	"github.com/smartfeed/smartfeed/internal/jsonbound"
	"github.com/smartfeed/smartfeed/internal/reload"
)

// Deps are the dependencies of a Verifier.
type Deps struct {
	Client *http.Client     // requests the key set at a URL; nil: a client that may connect to any address
	Now    func() time.Time // nil: time.Now
	Log    *slog.Logger     // nil: no logging
}

const (
	fetchTimeout = 5 * time.Second
	maxSetBytes  = 1 << 20
	maxSetKeys   = 1000
	keyValues    = 32 // JSON values per key; keys of RFC 7517 and 7518 have up to 16, plus a certificate chain
	maxSameName  = 8  // a signature is checked against each of them
	minRSABits   = 2048

	// rereadInterval is the minimum interval between two reads of the key set because of unknown keys. A client that sends
	// tokens with invented keys cannot cause more load on the server of the key set.
	rereadInterval = 5 * time.Second

	// retryInterval is the interval between reads of a key set that has never been read.
	retryInterval = time.Second
)

var errUnknownKey = errors.New("unknown key")

// keyName identifies a key by the fields of a token's header.
type keyName struct{ kid, alg string }

// keySet has all keys of each name. RFC 7517 allows a key set to give several keys the same name, or no name.
type keySet map[keyName]jwt.VerificationKeySet

// readSet is a key set and the time at which it was read.
type readSet struct {
	keys keySet
	at   time.Time
}

// keys is the key set at a file or URL.
type keys struct {
	file    string
	at      *url.URL // nil: the set is in the file
	refresh time.Duration
	maxAge  time.Duration
	client  *http.Client
	now     func() time.Time
	log     *slog.Logger

	current  atomic.Pointer[readSet] // nil: never read; see known
	reading  chan struct{}           // holds an element while a goroutine reads the key set
	lastRead time.Time               // end of the last read; belongs to the goroutine that reads
}

func newKeys(cfg Config, deps Deps) *keys {
	k := &keys{
		refresh: cfg.RefreshInterval, maxAge: cfg.MaxKeyAge, now: deps.Now, reading: make(chan struct{}, 1),
		client: cmp.Or(deps.Client, &http.Client{}), log: cmp.Or(deps.Log, slog.New(slog.DiscardHandler)),
	}
	k.file, k.at, _ = cfg.source() // validated
	return k
}

// find returns the keys of a name. A key that is not in the set may be new, so find reads the set again, unless that was
// just done. While another goroutine reads the set, find uses the known set. Otherwise a client with invented keys could
// make any number of requests wait while the server of the key set hangs.
func (k *keys) find(ctx context.Context, kid, alg string) (jwt.VerificationKeySet, error) {
	name := keyName{kid, alg}
	if key, ok := k.lookUp(name); ok {
		return key, nil
	}
	if err := k.enter(ctx); err != nil {
		return jwt.VerificationKeySet{}, err
	}
	defer func() { <-k.reading }()
	key, ok := k.lookUp(name) // another goroutine may have read it in the meantime
	if !ok && k.now().Sub(k.lastRead) >= rereadInterval {
		k.read(ctx)
		key, ok = k.lookUp(name)
	}
	switch {
	case ok:
		return key, nil
	case k.known() == nil:
		return jwt.VerificationKeySet{}, ErrNoKeys
	}
	return jwt.VerificationKeySet{}, errUnknownKey
}

// enter acquires the right to read the key set. It waits for another reader only if no set is known: without one, it cannot
// reject a key as unknown.
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

func (k *keys) lookUp(name keyName) (jwt.VerificationKeySet, bool) {
	key, ok := k.known()[name]
	return key, ok
}

// known returns the last key set. It returns nil if the set was never read, or if the last read is older than maxAge: a key
// that was withdrawn since then would still be accepted.
func (k *keys) known() keySet {
	last := k.current.Load()
	if last == nil || k.now().Sub(last.at) > k.maxAge {
		return nil
	}
	return last.keys
}

// run reads the key set at once, and again at the refresh interval.
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
			wait = min(wait, retryInterval)
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return nil
		}
	}
}

// read loads the current key set. If that fails, the known set stays.
func (k *keys) read(ctx context.Context) {
	first := k.lastRead.IsZero()
	defer func() { k.lastRead = k.now() }() // at the end: a read that hung is not repeated at once
	// Not with the context of the caller: other callers wait for the same keys.
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
	if first || k.current.Load() != nil { // not every second while the set has never been read
		k.log.WarnContext(ctx, "cannot read the key set; the previous one stays valid until auth.max_key_age", "from", k.from(), "error", err)
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
		return bounded(reload.Read(k.file, maxSetBytes))
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
		if failed, ok := errors.AsType[*url.Error](err); ok { // its text contains the URL
			err = failed.Err
		}
		return nil, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("status %s", res.Status)
	}
	return bounded(io.ReadAll(io.LimitReader(res.Body, maxSetBytes+1)))
}

// bounded rejects a text that is too long.
func bounded(text []byte, err error) ([]byte, error) {
	if len(text) > maxSetBytes {
		return nil, fmt.Errorf("more than %d bytes", maxSetBytes)
	}
	return text, err
}

// parseSet parses a key set. It ignores keys for other uses. It returns an error if the set has no key for tokens, or if a
// key is damaged or weak: the operator who signs with it must notice.
func parseSet(text []byte) (keySet, error) {
	var document jwkset.JWKSMarshal
	if err := jsonbound.Check(text, maxSetKeys*keyValues); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, &document); err != nil {
		return nil, errors.New("it is not a JSON web key set")
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
		return nil, errors.New("it has no key for RS256 or ES256")
	}
	return set, nil
}

// parseKey returns a public key and its algorithm. It ignores certificate chains, so that no key causes an outgoing
// request.
func parseKey(k jwkset.JWKMarshal) (any, string, error) {
	k.X5U, k.X5C, k.X5T, k.X5TS256 = "", nil, "", ""
	parsed, err := jwkset.NewJWKFromMarshal(k, jwkset.JWKMarshalOptions{}, jwkset.JWKValidateOptions{SkipAll: true})
	if err != nil {
		return nil, "", errors.New("it is damaged") // the text of the error contains parts of the key
	}
	switch key := parsed.Key().(type) {
	case *rsa.PublicKey:
		if key.N.BitLen() < minRSABits || key.E < 3 || key.E%2 == 0 {
			return nil, "", fmt.Errorf("an RSA key of %d bits: want at least %d, and an odd exponent", key.N.BitLen(), minRSABits)
		}
		return key, jwt.SigningMethodRS256.Alg(), nil
	case *ecdsa.PublicKey:
		if _, err := key.ECDH(); err != nil || key.Curve != elliptic.P256() {
			return nil, "", errors.New("not a point of P-256")
		}
		return key, jwt.SigningMethodES256.Alg(), nil
	}
	return nil, "", errors.New("of an unknown kind")
}
