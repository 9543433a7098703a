package feedstore_test

import (
	"log/slog"
	"testing"

	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/serving/feedstore"
)

func open(t testing.TB, dir string, cfg feedstore.Config) *feedstore.Store {
	t.Helper()
	return must.Get(feedstore.Open(dir, cfg, slog.New(slog.DiscardHandler)))(t)
}
