package auth

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// Peers proves to another process of the product that a call is from one, by the secret that they share. The secret stays
// where it is: what goes over the wire is a token that is signed with it, is for nothing else and is soon of no use. It is
// safe for concurrent use.
type Peers struct {
	secret []byte
	now    func() time.Time
	parser *jwt.Parser

	mu     sync.Mutex
	token  string
	signed time.Time
}

const (
	peerAudience = "smartfeed-peer"
	peerLife     = time.Minute
	peerLeeway   = 30 * time.Second
)

// NewPeers takes the secret of all processes. now may be nil, for time.Now.
func NewPeers(secret []byte, now func() time.Time) *Peers {
	if now == nil {
		now = time.Now
	}
	return &Peers{secret: secret, now: now, parser: jwt.NewParser(
		jwt.WithValidMethods([]string{jwt.SigningMethodHS256.Alg()}), jwt.WithAudience(peerAudience),
		jwt.WithExpirationRequired(), jwt.WithLeeway(peerLeeway), jwt.WithTimeFunc(now), jwt.WithStrictDecoding())}
}

// Sign adds the proof to a request. A token is used for half of its life.
func (p *Peers) Sign(r *http.Request) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if now := p.now(); p.token == "" || now.Sub(p.signed) > peerLife/2 || now.Before(p.signed) {
		token, err := jwt.NewWithClaims(jwt.SigningMethodHS256, jwt.RegisteredClaims{
			Audience: jwt.ClaimStrings{peerAudience}, ExpiresAt: jwt.NewNumericDate(now.Add(peerLife)),
		}).SignedString(p.secret)
		if err != nil {
			return fmt.Errorf("sign call to a peer: %w", err)
		}
		p.token, p.signed = token, now
	}
	r.Header.Set("Authorization", "Bearer "+p.token)
	return nil
}

// Check fails with a *TokenError unless a request is from a peer.
func (p *Peers) Check(r *http.Request) error {
	token, ok := Bearer(r)
	if !ok || len(token) > MaxTokenBytes {
		return &TokenError{"there is none"}
	}
	_, err := p.parser.ParseWithClaims(token, &jwt.RegisteredClaims{}, func(*jwt.Token) (any, error) { return p.secret, nil })
	if err != nil {
		return &TokenError{reason(err)}
	}
	return nil
}

// Bearer returns the token of a request's Authorization header, false if there is none of that kind.
func Bearer(r *http.Request) (string, bool) {
	scheme, token, ok := strings.Cut(r.Header.Get("Authorization"), " ")
	if !ok || !strings.EqualFold(scheme, "Bearer") {
		return "", false
	}
	return strings.TrimSpace(token), true
}
