// Package secure is how a client of Kafka, the registry, Cassandra or Pinot proves who it is, and knows whom it talks to:
// the same settings, with the same meaning, for each of them.
//
// A secret comes from a file or from the configuration, where the environment can set it; it is in nothing that is
// printed. Files of secrets and of a client's own certificate are read again for every new connection, so that a
// replaced one needs no restart; certificates of authorities are read once.
//
// The package imports nothing of the module, and every layer may import it.
package secure

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// Secret is a text that is never shown: not by fmt, not in a log, not in a configuration that is written.
type Secret string

// hidden stands for a secret wherever one is shown.
const hidden = "(hidden)"

// Reveal returns the text.
func (s Secret) Reveal() string { return string(s) }

// Check refuses what a secret is shown as: it was copied from there.
func (s Secret) Check() error {
	if s == hidden {
		return errors.New("is what a secret is shown as, not a secret")
	}
	return nil
}

// String shows whether there is one.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return hidden
}

// Format shows the same for every verb.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, s.String()) }

// MarshalText is what YAML and JSON hold of it.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Certificates say which servers are believed, and hold the client's own certificate. The zero value believes whom the
// system does and has none.
type Certificates struct {
	CAFile   string `yaml:"ca_file"`   // PEM: authorities that are believed; without it those of the system
	CertFile string `yaml:"cert_file"` // PEM: the client's own certificate, for servers that ask for one
	KeyFile  string `yaml:"key_file"`  // PEM: its key
	// ServerName is what the server's certificate must be for; without it, the host of the address.
	ServerName string `yaml:"server_name"`
	// InsecureSkipVerify believes every server, whoever it is: whoever is between can read and change everything.
	InsecureSkipVerify bool `yaml:"insecure_skip_verify"`
}

// Validate reports every value that does not go with the others.
func (c Certificates) Validate() error {
	var problems []error
	if (c.CertFile == "") != (c.KeyFile == "") {
		problems = append(problems, errors.New("cert_file, key_file: one without the other"))
	}
	if c.InsecureSkipVerify && c.CAFile != "" {
		problems = append(problems, errors.New("insecure_skip_verify: is true: ca_file would mean nothing"))
	}
	return errors.Join(problems...)
}

// Config returns the settings of connections, with TLS 1.2 at least. It fails when a file cannot be read or holds no
// certificate.
func (c Certificates) Config() (*tls.Config, error) {
	out := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: c.ServerName, InsecureSkipVerify: c.InsecureSkipVerify}
	if c.CAFile != "" {
		text, err := os.ReadFile(c.CAFile)
		if err != nil {
			return nil, fmt.Errorf("read ca_file: %w", err)
		}
		out.RootCAs = x509.NewCertPool()
		if !out.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("read ca_file %s: no certificate in it", c.CAFile)
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

// TLS says whether connections are encrypted, where the address does not. The zero value: they are not.
type TLS struct {
	Enabled      bool `yaml:"enabled"`
	Certificates `yaml:",inline"`
}

// Validate reports every value that does not go with the others.
func (t TLS) Validate() error {
	err := t.Certificates.Validate()
	if !t.Enabled && t.Certificates != (Certificates{}) {
		err = errors.Join(err, errors.New("enabled: is false: the other values would mean nothing"))
	}
	return err
}

// Config is that of Certificates, nil without encryption.
func (t TLS) Config() (*tls.Config, error) {
	if !t.Enabled {
		return nil, nil
	}
	return t.Certificates.Config()
}

// Login is a name with its password. The zero value is nobody.
type Login struct {
	User         string `yaml:"user"`
	Password     Secret `yaml:"password"`      // prefer a file, or the environment: a flag shows in the list of processes
	PasswordFile string `yaml:"password_file"` // holds the password instead; a line break at its end does not count
}

// Given tells whether somebody is named.
func (l Login) Given() bool { return l.User != "" }

// Validate reports every value that does not go with the others.
func (l Login) Validate() error {
	problems := []error{oneOf("password", l.Password, "password_file", l.PasswordFile)}
	if has := l.Password != "" || l.PasswordFile != ""; has != l.Given() {
		problems = append(problems, errors.New("user, password: one without the other"))
	}
	return errors.Join(problems...)
}

// Secret returns the password.
func (l Login) Secret() (string, error) { return reveal(l.Password, l.PasswordFile) }

// oneOf refuses a secret that is given twice, and one that was copied from where it is hidden.
func oneOf(name string, text Secret, fileName, file string) error {
	if text != "" && file != "" {
		return fmt.Errorf("%s: is given, and %s, too", name, fileName)
	}
	if err := text.Check(); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// maxSecretBytes bounds a file that holds a secret.
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
