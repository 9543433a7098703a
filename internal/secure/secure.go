// Package secure configures how a client of Kafka, the registry, Cassandra or Pinot authenticates, and which servers it
// trusts. The settings and their meaning are the same for each of them.
//
// A secret comes from a file, from the configuration, or from the environment. It is never printed. Every new connection
// reads the files with secrets and with the client's own certificate, so you can replace them without a restart.
// Certificates of authorities are read once.
package secure

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/smartfeed/smartfeed/internal/settings"
)

// Secret is a string that fmt, logs and encoders never print.
type Secret string

// hidden replaces a secret in all output.
const hidden = "(hidden)"

// Reveal returns the text.
func (s Secret) Reveal() string { return string(s) }

// Check rejects the placeholder of a redacted secret.
func (s Secret) Check() error {
	if s == hidden {
		return errors.New("is the redacted form of a secret")
	}
	return nil
}

// String returns the placeholder, or "" if the secret is empty.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return hidden
}

// Format writes String for every verb.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, s.String()) }

// MarshalText returns String for YAML and JSON.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Certificates holds the trusted authorities and the client's own certificate. The zero value trusts the authorities of
// the system and has no client certificate.
type Certificates struct {
	CAFile     string `yaml:"ca_file" help:"PEM file with trusted certificate authorities; empty: those of the system"`
	CertFile   string `yaml:"cert_file" help:"PEM file with the client certificate, for servers that request one"`
	KeyFile    string `yaml:"key_file" help:"PEM file with the key of the certificate"`
	ServerName string `yaml:"server_name" help:"name in the server's certificate; empty: the host of the address"`
	// Anyone on the path can then read and change everything.
	InsecureSkipVerify bool `yaml:"insecure_skip_verify" help:"do not verify the server's certificate; for tests only"`
}

// Validate reports every inconsistent value.
func (c Certificates) Validate() error {
	var problems settings.Problems
	problems.Want((c.CertFile == "") == (c.KeyFile == ""), "cert_file, key_file: both or neither are required")
	problems.Want(!c.InsecureSkipVerify || c.CAFile == "", "insecure_skip_verify: is true, so ca_file must be empty")
	return problems.Err()
}

// Config returns the settings of connections, with at least TLS 1.2. It returns an error if a file cannot be read or
// has no certificate.
func (c Certificates) Config() (*tls.Config, error) {
	out := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: c.ServerName, InsecureSkipVerify: c.InsecureSkipVerify}
	if c.CAFile != "" {
		text, err := os.ReadFile(c.CAFile)
		if err != nil {
			return nil, fmt.Errorf("read ca_file: %w", err)
		}
		out.RootCAs = x509.NewCertPool()
		if !out.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("read ca_file %s: contains no certificate", c.CAFile)
		}
	}
	if c.CertFile != "" {
		if _, err := c.own(nil); err != nil {
			return nil, err
		}
		out.GetClientCertificate = c.own
	}
	return out, nil
}

// own reads the client's certificate.
func (c Certificates) own(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
	pair, err := tls.LoadX509KeyPair(c.CertFile, c.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("read cert_file and key_file: %w", err)
	}
	return &pair, nil
}

// TLS configures encryption for protocols whose addresses have no scheme. The zero value disables it.
type TLS struct {
	Enabled      bool `yaml:"enabled" help:"connect with TLS"`
	Certificates `yaml:",inline"`
}

// Validate reports every inconsistent value.
func (t TLS) Validate() error {
	problems := settings.Problems{t.Certificates.Validate()}
	problems.Want(t.Enabled || t.Certificates == Certificates{}, "enabled: is false, so the other values must be empty")
	return problems.Err()
}

// Config returns the settings of Certificates, or nil if encryption is disabled.
func (t TLS) Config() (*tls.Config, error) {
	if !t.Enabled {
		return nil, nil
	}
	return t.Certificates.Config()
}

// Login is a user and password. The zero value is no user.
type Login struct {
	User string `yaml:"user" help:"user name; empty: no login"`
	// Prefer a file or the environment: a flag is visible in the list of processes.
	Password     Secret `yaml:"password" help:"password; prefer password_file"`
	PasswordFile string `yaml:"password_file" help:"file with the password; a line break at its end is ignored"`
}

// Given reports whether there is a user.
func (l Login) Given() bool { return l.User != "" }

// Validate reports every inconsistent value.
func (l Login) Validate() error {
	problems := settings.Problems{oneOf("password", l.Password, "password_file", l.PasswordFile)}
	hasPassword := l.Password != "" || l.PasswordFile != ""
	problems.Want(hasPassword == l.Given(), "user, password: both or neither are required")
	return problems.Err()
}

// Secret returns the password.
func (l Login) Secret() (string, error) { return reveal(l.Password, l.PasswordFile) }

// oneOf rejects a secret that is set twice, and a placeholder.
func oneOf(name string, text Secret, fileName, file string) error {
	if text != "" && file != "" {
		return fmt.Errorf("%s: conflicts with %s", name, fileName)
	}
	if err := text.Check(); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// maxSecretBytes limits a file with a secret.
const maxSecretBytes = 64 << 10

// reveal returns a secret, from its file if there is one.
func reveal(text Secret, file string) (string, error) {
	if file == "" {
		return text.Reveal(), nil
	}
	f, err := os.Open(file)
	if err != nil {
		return "", fmt.Errorf("read secret: %w", err)
	}
	defer f.Close()
	held, err := io.ReadAll(io.LimitReader(f, maxSecretBytes+1))
	switch {
	case err != nil:
		return "", fmt.Errorf("read secret: %w", err)
	case len(held) > maxSecretBytes:
		return "", fmt.Errorf("read secret %s: more than %d bytes", file, maxSecretBytes)
	}
	secret := strings.TrimRight(string(held), "\r\n")
	if secret == "" {
		return "", fmt.Errorf("read secret %s: is empty", file)
	}
	return secret, nil
}
