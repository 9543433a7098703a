package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/smartfeed/smartfeed/internal/command"
)

// try runs a command line of features try with a text on standard input.
func try(t *testing.T, addr, stdin string, args ...string) (string, error) {
	t.Helper()
	out, _, err := smartfeed(t, stdin, append([]string{"features", "try", "--http", addr}, args...)...)
	return out, err
}

func TestTryCommandSaysWhatIsWrong(t *testing.T) {
	long := filepath.Join(t.TempDir(), "long.yaml")
	if err := os.WriteFile(long, bytes.Repeat([]byte("#"), maxDefinitionBytes+1), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		args  []string
		usage bool
		want  string
	}{
		"of nobody":    {[]string{"-"}, true, "want a --user, --pin or --pair"},
		"no user":      {[]string{"-", "--user", "ada"}, true, "ada"},
		"no time":      {[]string{"-", "--user", "user:ada", "--at", "now"}, true, "--at"},
		"no such file": {[]string{long + ".not", "--user", "user:ada"}, false, "read definitions: "},
		"too long":     {[]string{long, "--user", "user:ada"}, false, "more than 16384 bytes"},
	} {
		_, err := try(t, "127.0.0.1:1", "{}", tt.args...)
		_, usage := err.(*command.UsageError)
		if err == nil || usage != tt.usage || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, usage %t; want %q, usage %t", name, err, usage, tt.want, tt.usage)
		}
	}
}
