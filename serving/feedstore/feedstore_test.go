package feedstore_test

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/smartfeed/smartfeed/serving/feedstore"
)

func open(t testing.TB, dir string, cfg feedstore.Config) *feedstore.Store {
	t.Helper()
	s, err := feedstore.Open(dir, cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	return s
}

func TestConfig_ReportsEveryProblem(t *testing.T) {
	if err := feedstore.DefaultConfig().Validate(); err != nil {
		t.Errorf("defaults: %v", err)
	}
	err := feedstore.Config{MaxItems: 9}.Validate()
	for _, field := range []string{"max_items", "block_cache_bytes", "memtable_bytes"} {
		if err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("got %v, want %s in it", err, field)
		}
	}
}
