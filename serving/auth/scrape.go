package auth

import (
	"crypto/subtle"
	"fmt"
)

// ScrapeToken is a static token in a file, for programs that cannot renew a JSON web token, such as Prometheus. It opens the
// metrics and nothing else. The file is read for each request, so that a changed token needs no restart.
type ScrapeToken struct{ File string }

// Check fails with a *TokenError unless token is what the file holds, and with another error when the file cannot be read or holds
// fewer than MinSecretBytes. The comparison takes the same time wherever the two differ.
func (s ScrapeToken) Check(token string) error {
	want, err := ReadSecret(s.File)
	if err != nil {
		return fmt.Errorf("metrics.token_file: %w", err)
	}
	if subtle.ConstantTimeCompare(want, []byte(token)) != 1 {
		return &TokenError{"it is not the one in metrics.token_file"}
	}
	return nil
}
