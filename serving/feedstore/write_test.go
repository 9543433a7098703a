package feedstore

import (
	"context"
	"log/slog"
	"testing"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/schemas"
)

// TestWrite_DeletesTrimmedRows checks the rows themselves, because the trim position alone would hide them from every read.
func TestWrite_DeletesTrimmedRows(t *testing.T) {
	const keep, last = 40, 1000
	for name, together := range map[string]int{"single entries": 1, "one batch": last, "polls": 130} {
		t.Run(name, func(t *testing.T) {
			cfg := DefaultConfig()
			cfg.MaxItems = keep
			s := must.Get(Open(t.TempDir(), cfg, slog.New(slog.DiscardHandler)))(t)
			defer s.Close()
			for range 2 { // the second time simulates a replay of the log
				for from := int64(1); from <= last; from += int64(together) {
					var b Batch
					for p := from; p < min(from+int64(together), last+1); p++ {
						b.Entries = append(b.Entries, schemas.FeedEntry{User: "user:1", Position: p})
					}
					must.OK(t, s.Write(t.Context(), b))
				}
				expect.Between(t, rows(t, s), keep, keep+keep/10, "kept rows")
			}
		})
	}
}

func rows(t *testing.T, s *Store) (n int) {
	t.Helper()
	must.OK(t, scan(context.Background(), s.db, []byte{kindEntry}, []byte{kindEntry + 1}, func(_, _ []byte) (bool, error) {
		n++
		return true, nil
	}))
	return n
}
