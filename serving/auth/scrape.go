package auth

import (
	"crypto/subtle"
	"fmt"
)

// ScrapeToken is a static token in a file, for programs that cannot renew a JSON web token, such as Prometheus. It permits
// only reading the metrics. The file is read for each request, so that a changed token needs no restart.
type ScrapeToken struct{ File string }

// Check returns a *TokenError if token differs from the content of the file. It returns another error if the file cannot be
// read or holds fewer than MinSecretBytes. The comparison takes constant time.
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
