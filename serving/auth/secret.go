package auth

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/smartfeed/smartfeed/internal/secure"
	"github.com/smartfeed/smartfeed/schemas"
)

// MinSecretBytes is the minimum length of a secret: the length of HS256's output, RFC 7518, 3.2.
const MinSecretBytes = 32

// ReadSecret returns the content of a file without trailing line breaks. It returns an error if that is shorter than
// MinSecretBytes.
func ReadSecret(file string) ([]byte, error) {
	secret, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read secret: %w", err)
	}
	secret = bytes.TrimRight(secret, "\r\n")
	if len(secret) < MinSecretBytes {
		return nil, fmt.Errorf("read secret: %s holds %d bytes: want at least %d", file, len(secret), MinSecretBytes)
	}
	return secret, nil
}

// MakeSecret returns the secret in a file. If the file does not exist, MakeSecret creates it with 256 random bits as one
// line of text, and made is true; see secure.LoadOrCreate.
func MakeSecret(file string) (secret []byte, made bool, err error) {
	random := make([]byte, MinSecretBytes)
	_, _ = rand.Read(random) // never fails
	_, made, err = secure.LoadOrCreate(file, []byte(base64.RawURLEncoding.EncodeToString(random)+"\n"))
	if err != nil {
		return nil, false, fmt.Errorf("make secret: %w", err)
	}
	secret, err = ReadSecret(file)
	return secret, made, err
}

// Grant is the content of a new token.
type Grant struct {
	User    schemas.UserID // the user of the token; "": Service is set instead
	Service string         // the service's name, with or without Identities.ServicePrefix
	Scopes  []string
	For     time.Duration
}

// subject returns the claims that identify the user or the service of a grant.
func (g Grant) subject(i Identities) jwt.MapClaims {
	if g.User != "" {
		return jwt.MapClaims{"sub": i.UserPrefix + strings.TrimPrefix(string(g.User), schemas.KindUser+":")}
	}
	said := jwt.MapClaims{"sub": i.ServicePrefix + strings.TrimPrefix(g.Service, i.ServicePrefix)}
	if i.ServiceClaim != "" {
		said[i.ServiceClaim] = i.ServiceClaimValue
	}
	return said
}

// Mint returns a token for evaluation, signed with the configured secret, for the configured issuer and audience.
func Mint(cfg Config, secret []byte, g Grant, now time.Time) (string, error) {
	said := g.subject(cfg.Identities)
	said["iat"], said["exp"] = jwt.NewNumericDate(now), jwt.NewNumericDate(now.Add(g.For))
	for claim, value := range map[string]string{"scope": strings.Join(g.Scopes, " "), "iss": cfg.Issuer, "aud": cfg.Audience} {
		if value != "" {
			said[claim] = value
		}
	}
	token, err := jwt.NewWithClaims(jwt.SigningMethodHS256, said).SignedString(secret)
	if err != nil {
		return "", fmt.Errorf("sign token: %w", err)
	}
	return token, nil
}

// SentToken returns the token that commands send: from the environment variable SMARTFEED_TOKEN, or from the file; "" for
// none.
func (c Config) SentToken(environ []string) (string, error) {
	for _, kv := range environ {
		if token, ok := strings.CutPrefix(kv, TokenVariable+"="); ok && token != "" {
			return token, nil
		}
	}
	if c.TokenFile == "" {
		return "", nil
	}
	token, err := os.ReadFile(c.TokenFile)
	if err != nil {
		return "", fmt.Errorf("auth.token_file: %w", err)
	}
	return strings.TrimSpace(string(token)), nil
}

// TokenVariable is the environment variable with the token that commands send.
const TokenVariable = "SMARTFEED_TOKEN"
