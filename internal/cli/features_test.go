package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/smartfeed/smartfeed/internal/testkit/must"
)

func TestFeaturesTry_RejectsUnreadableFiles(t *testing.T) {
	long := filepath.Join(t.TempDir(), "long.yaml")
	must.OK(t, os.WriteFile(long, bytes.Repeat([]byte("#"), maxDefinitionBytes+1), 0o600))
	for file, want := range map[string]string{long + ".not": "read definitions: ", long: "more than 16384 bytes"} {
		if _, err := run(t, "features", "try", file, "--user", "user:ada"); err == nil || !strings.Contains(err.Error(), "exit code 1: ") || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", file, err, want)
		}
	}
}
