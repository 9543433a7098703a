package api

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

// TLSConfig is the server's certificate. The files are reloaded when they change.
type TLSConfig struct {
	CertFile string `yaml:"cert_file" help:"PEM file with the certificate chain, the server's own certificate first; empty: plain HTTP"`
	KeyFile  string `yaml:"key_file" help:"PEM file with the key of the certificate"`
}

// Validate returns an error for a certificate without a key, and for a key without a certificate.
func (c TLSConfig) Validate() error {
	if (c.CertFile == "") != (c.KeyFile == "") {
		return errors.New("cert_file, key_file: both or neither are required")
	}
	return nil
}

// reloadEvery is the minimum interval between two reads of the files.
const reloadEvery = time.Second

// certificate is the loaded certificate.
type certificate struct {
	cfg TLSConfig
	log *slog.Logger

	mu   sync.Mutex
	pair *tls.Certificate
	read time.Time
}

// loadCertificate loads the files, or returns nil if none are configured.
func loadCertificate(cfg TLSConfig, log *slog.Logger) (*certificate, error) {
	if cfg.CertFile == "" {
		return nil, nil
	}
	c := &certificate{cfg: cfg, log: log, read: time.Now()}
	return c, c.load()
}

// load replaces the pair. It returns an error if the files do not match.
func (c *certificate) load() error {
	pair, err := tls.LoadX509KeyPair(c.cfg.CertFile, c.cfg.KeyFile)
	if err != nil {
		return fmt.Errorf("tls: %w", err)
	}
	c.pair = &pair
	return nil
}

// get returns the pair for a handshake. If the files cannot be loaded, it keeps the pair: perhaps only one of them has been
// replaced so far.
func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := time.Now(); now.Sub(c.read) >= reloadEvery {
		c.read = now
		if err := c.load(); err != nil {
			c.log.Warn("cannot reload the certificate; the previous one stays in use", "error", err)
		}
	}
	return c.pair, nil
}

// settings returns the TLS configuration of the listener.
func (c *certificate) settings() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: c.get, NextProtos: []string{"h2", "http/1.1"}}
}
