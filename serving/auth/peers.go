package auth

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// Peers authenticates calls between the processes of a deployment by a secret that all processes share. The secret is never
// sent: each call has its own token, signed with the secret. A token is valid for one process, path and body. Therefore a
// process that receives a call cannot use its token for another call. A token expires after 10 s, plus 30 s of leeway. Peers
// is safe for concurrent use.
type Peers struct {
	secret []byte
	now    func() time.Time
	parser *jwt.Parser
}

const (
	peerAudience = "smartfeed-peer "
	peerLife     = 10 * time.Second
	peerLeeway   = 30 * time.Second // for clock differences
)

// MaxPeerBytes is the maximum length of the body of a call between processes.
const MaxPeerBytes = 64 << 10

// peerClaims are the claims of the token of a call.
type peerClaims struct {
	Path string `json:"path"`
	Body string `json:"body"` // SHA-256, base64
	jwt.RegisteredClaims
}

// NewPeers returns Peers with the shared secret. self is the address, host:port, at which other processes call this one. If
// now is nil, it uses time.Now.
func NewPeers(secret []byte, self string, now func() time.Time) *Peers {
	if now == nil {
		now = time.Now
	}
	return &Peers{secret: secret, now: now, parser: jwt.NewParser(
		jwt.WithValidMethods([]string{jwt.SigningMethodHS256.Alg()}), jwt.WithAudience(peerAudience+self),
		jwt.WithExpirationRequired(), jwt.WithLeeway(peerLeeway), jwt.WithTimeFunc(now), jwt.WithStrictDecoding())}
}

// Sign adds the token for the address, path and body of a call to its header.
func (p *Peers) Sign(r *http.Request, body []byte) error {
	token, err := jwt.NewWithClaims(jwt.SigningMethodHS256, peerClaims{r.URL.Path, digest(body), jwt.RegisteredClaims{
		Audience: jwt.ClaimStrings{peerAudience + r.URL.Host}, ExpiresAt: jwt.NewNumericDate(p.now().Add(peerLife)),
	}}).SignedString(p.secret)
	if err != nil {
		return fmt.Errorf("sign call to a peer: %w", err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	return nil
}

// Check returns a *TokenError unless a request is a call of a peer to this process. If the token is valid, Check reads the
// body, at most MaxPeerBytes of it, and replaces it so that it can be read again.
func (p *Peers) Check(r *http.Request) error {
	token, ok := Bearer(r)
	if !ok || len(token) > MaxTokenBytes {
		return &TokenError{"there is no bearer token"}
	}
	var said peerClaims
	_, err := p.parser.ParseWithClaims(token, &said, func(*jwt.Token) (any, error) { return p.secret, nil })
	if err != nil {
		return &TokenError{reason(err)}
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, MaxPeerBytes+1))
	if err != nil {
		return fmt.Errorf("read call of a peer: %w", err)
	}
	if len(body) > MaxPeerBytes || said.Path != r.URL.Path || said.Body != digest(body) {
		return &TokenError{"it is for another call"}
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	return nil
}

func digest(body []byte) string {
	sum := sha256.Sum256(body)
	return base64.RawStdEncoding.EncodeToString(sum[:])
}

// Bearer returns the token in the Authorization header of a request, and false if the header has no bearer token.
func Bearer(r *http.Request) (string, bool) {
	scheme, token, ok := strings.Cut(r.Header.Get("Authorization"), " ")
	if !ok || !strings.EqualFold(scheme, "Bearer") {
		return "", false
	}
	return strings.TrimSpace(token), true
}
