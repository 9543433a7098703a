// Package securetest creates certificates and passwords for servers and clients in tests. See Write.
package securetest

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// The files of Write.
const (
	CA      = "ca.pem"         // an authority
	Other   = "other-ca.pem"   // an authority that signed none of these certificates
	Server  = "server.pem"     // key and certificates of a server on loopback
	Client  = "client.pem"     // certificate of a client
	Key     = "client-key.pem" // its key
	Secret  = "password"       // of the user User
	User    = "smartfeed"
	Literal = "correct-horse" // the contents of Secret
)

// pair is a certificate with its key.
type pair struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// Write writes the files to a directory. The certificates are valid for ten years. If the files exist, it changes nothing.
func Write(dir string) error {
	if _, err := os.Stat(filepath.Join(dir, CA)); err == nil {
		return nil
	}
	ca, err := issue("smartfeed test authority", nil)
	if err != nil {
		return err
	}
	other, err := issue("another authority", nil)
	if err != nil {
		return err
	}
	server, err := issue("server", ca)
	if err != nil {
		return err
	}
	client, err := issue("client", ca)
	if err != nil {
		return err
	}
	serverKey, err := server.keyPEM()
	clientKey, keyErr := client.keyPEM()
	if err := errors.Join(err, keyErr); err != nil {
		return err
	}
	return files(dir, map[string][]byte{
		CA: ca.certPEM(), Other: other.certPEM(), Client: client.certPEM(), Key: clientKey, Secret: []byte(Literal + "\n"),
		Server: append(serverKey, bytes.Join([][]byte{server.certPEM(), ca.certPEM()}, nil)...),
	})
}

// files writes all files to a directory, or none of them.
func files(dir string, texts map[string][]byte) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return err
	}
	fresh, err := os.MkdirTemp(filepath.Dir(dir), "certificates")
	if err != nil {
		return err
	}
	defer os.RemoveAll(fresh)
	for name, text := range texts {
		if err := os.WriteFile(filepath.Join(fresh, name), text, 0o600); err != nil {
			return err
		}
	}
	return os.Rename(fresh, dir)
}

// issue creates a certificate signed by an authority; nil: creates an authority.
func issue(name string, by *pair) (*pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		return nil, err
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: name}, NotBefore: now.Add(-time.Hour), NotAfter: now.AddDate(10, 0, 0),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	made := &pair{template, key}
	if by == nil {
		by = made
		template.IsCA, template.BasicConstraintsValid, template.KeyUsage = true, true, x509.KeyUsageCertSign
		template.DNSNames, template.IPAddresses, template.ExtKeyUsage = nil, nil, nil
	}
	der, err := x509.CreateCertificate(rand.Reader, template, by.cert, &key.PublicKey, by.key)
	if err != nil {
		return nil, err
	}
	made.cert, err = x509.ParseCertificate(der)
	return made, err
}

func (p *pair) certPEM() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.cert.Raw})
}

// keyPEM returns the key in a format that Java can read.
func (p *pair) keyPEM() ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(p.key)
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), err
}
