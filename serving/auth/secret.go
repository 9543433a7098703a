package auth

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// MinSecretBytes is how long a secret is at least: that of HS256's output, RFC 7518, 3.2.
const MinSecretBytes = 32

// ReadSecret returns what a file holds, without the line's end.
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

// MakeSecret returns the secret in a file. A file that is not there is made, with 256 random bits as one line of text,
// for its owner to read alone.
func MakeSecret(file string) (secret []byte, made bool, err error) {
	secret, err = ReadSecret(file)
	if !errors.Is(err, fs.ErrNotExist) {
		return secret, false, err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil {
		return nil, false, fmt.Errorf("make secret: %w", err)
	}
	random := make([]byte, MinSecretBytes)
	_, _ = rand.Read(random) // never fails
	text := base64.RawURLEncoding.EncodeToString(random) + "\n"
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) { // somebody else was faster
		secret, err = ReadSecret(file)
		return secret, false, err
	}
	if err != nil {
		return nil, false, fmt.Errorf("make secret: %w", err)
	}
	_, err = f.WriteString(text)
	if err := errors.Join(err, f.Close()); err != nil {
		return nil, false, fmt.Errorf("make secret: %w", err)
	}
	return []byte(strings.TrimSpace(text)), true, nil
}

// Grant is what a token is to say.
type Grant struct {
	Subject string
	Scopes  []string
	For     time.Duration
}

// Mint makes a token for trying out, signed with the configured secret, for the configured issuer and audience.
func Mint(cfg Config, secret []byte, g Grant, now time.Time) (string, error) {
	said := claims{Scope: strings.Join(g.Scopes, " "), RegisteredClaims: jwt.RegisteredClaims{
		Subject: g.Subject, Issuer: cfg.Issuer,
		IssuedAt: jwt.NewNumericDate(now), ExpiresAt: jwt.NewNumericDate(now.Add(g.For)),
	}}
	if cfg.Audience != "" {
		said.Audience = jwt.ClaimStrings{cfg.Audience}
	}
	token, err := jwt.NewWithClaims(jwt.SigningMethodHS256, said).SignedString(secret)
	if err != nil {
		return "", fmt.Errorf("sign token: %w", err)
	}
	return token, nil
}

// SentToken returns the token that commands send: that of the environment's SMARTFEED_TOKEN, or of the file; "" for none.
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
