package feedstore_test

import (
	"log/slog"
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
