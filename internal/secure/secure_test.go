package secure_test

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/smartfeed/smartfeed/internal/secure"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/internal/testkit/securetest"
)

// certificates writes the certificates of the tests, and returns the path of each by its name.
func certificates(t *testing.T) func(name string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "certificates")
	must.OK(t, securetest.Write(dir))
	return func(name string) string { return filepath.Join(dir, name) }
}

// All ways to print a secret, or a value that contains one, print only a placeholder.
func TestSecret_IsNeverPrinted(t *testing.T) {
	const text = "correct-horse"
	type holder struct {
		Login secure.Login `yaml:"login" json:"login"`
		At    *secure.HTTP `yaml:"at" json:"at"`
	}
	h := holder{secure.Login{User: "ada", Password: text}, &secure.HTTP{Token: text}}
	var log bytes.Buffer
	slog.New(slog.NewTextHandler(&log, nil)).Info("h", "h", h, "password", h.Login.Password)
	slog.New(slog.NewJSONHandler(&log, nil)).Info("h", "h", h, "password", h.Login.Password)
	inYAML := must.Get(yaml.Marshal(h))(t)
	inJSON := must.Get(json.Marshal(h))(t)
	all := fmt.Sprintf("%v %+v %#v %s %q %x %d", h, h, h, h.Login.Password, h.Login.Password, h.Login.Password, h.Login.Password) +
		fmt.Sprint(fmt.Errorf("as %v", h.Login)) + log.String() + string(inYAML) + string(inJSON)
	expect.False(t, strings.Contains(all, text) || strings.Contains(all, fmt.Sprintf("%x", text)), "a secret is printed:\n%s", all)
	expect.AtLeast(t, strings.Count(all, "(hidden)"), 10, "placeholders of secrets, one for each secret, in\n%s", all)
	expect.Equal(t, h.Login.Password.Reveal(), text, "Reveal")
}

func TestValidate(t *testing.T) {
	for _, c := range []struct {
		name  string
		value interface{ Validate() error }
		want  string
	}{
		{"nothing", secure.TLS{}, ""},
		{"anonymous", secure.HTTP{}, ""},
		{"TLS", secure.TLS{Enabled: true, Certificates: secure.Certificates{CAFile: "ca", CertFile: "c", KeyFile: "k"}}, ""},
		{"files without TLS", secure.TLS{Certificates: secure.Certificates{CAFile: "ca"}}, "enabled: is false"},
		{"no key", secure.Certificates{CertFile: "c"}, "cert_file, key_file: both or neither are required"},
		{"CA without verification", secure.Certificates{CAFile: "ca", InsecureSkipVerify: true}, "insecure_skip_verify: is true, so ca_file"},
		{"a login", secure.Login{User: "ada", PasswordFile: "p"}, ""},
		{"no password", secure.Login{User: "ada"}, "user, password: both or neither are required"},
		{"no user", secure.Login{Password: "p"}, "user, password: both or neither are required"},
		{"two passwords", secure.Login{User: "ada", Password: "p", PasswordFile: "p"}, "password: conflicts with password_file"},
		{"redacted password", secure.Login{User: "ada", Password: "(hidden)"}, "password: is the redacted form of a secret"},
		{"two tokens", secure.HTTP{Token: "t", TokenFile: "t"}, "token: conflicts with token_file"},
		{"token and user", secure.HTTP{Token: "t", Login: secure.Login{User: "ada", Password: "p"}}, "token: conflicts with user"},
		{"nested", secure.HTTP{TLS: secure.Certificates{KeyFile: "k"}}, "tls.cert_file, key_file: both or neither"},
	} {
		err := c.value.Validate()
		if (err == nil) != (c.want == "") || err != nil && !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", c.name, err, c.want)
		}
	}
}

func TestLogin_ReadsPasswordFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "password")
	login := secure.Login{User: "ada", PasswordFile: file}
	expect.Error(t, expect.ErrorOf(login.Secret()), file, "missing file")
	for text, want := range map[string]string{"one\n": "one", "two": "two", "th ree \r\n": "th ree "} {
		must.OK(t, os.WriteFile(file, []byte(text), 0o600))
		expect.Equal(t, must.Get(login.Secret())(t), want, "%q", text)
	}
	for name, text := range map[string]string{"is empty": "\n", "more than": strings.Repeat("x", 70<<10)} {
		must.OK(t, os.WriteFile(file, []byte(text), 0o600))
		expect.Error(t, expect.ErrorOf(login.Secret()), name, "Secret")
	}
}

func TestCertificates_RejectsUnreadableFiles(t *testing.T) {
	at := certificates(t)
	for name, c := range map[string]secure.Certificates{
		"no such file":           {CAFile: at("none.pem")},
		"no certificate":         {CAFile: at(securetest.Key)},
		"cert_file and key_file": {CertFile: at(securetest.CA), KeyFile: at(securetest.Key)},
	} {
		expect.Error(t, expect.ErrorOf(c.Config()), name, "Config")
	}
	expect.Equal(t, must.Get((secure.TLS{}).Config())(t), nil, "without TLS")
}

// Every handshake reads the client's certificate.
func TestCertificates_ReloadsClientCertificate(t *testing.T) {
	at, other := certificates(t), certificates(t)
	c := must.Get(secure.Certificates{CertFile: at(securetest.Client), KeyFile: at(securetest.Key)}.Config())(t)
	before := must.Get(c.GetClientCertificate(new(tls.CertificateRequestInfo)))(t)
	for _, name := range []string{securetest.Client, securetest.Key} {
		must.OK(t, os.Rename(other(name), at(name)))
	}
	if after, err := c.GetClientCertificate(new(tls.CertificateRequestInfo)); err != nil || bytes.Equal(before.Certificate[0], after.Certificate[0]) {
		t.Errorf("got error %v, or the previous certificate after its file was replaced", err)
	}
}
