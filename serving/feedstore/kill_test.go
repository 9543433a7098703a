package feedstore_test

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/smartfeed/smartfeed/internal/testkit/child"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/serving/feedstore"
)

func TestMain(m *testing.M) {
	child.Run(map[string]child.Role{"writer": writeForever})
	m.Run()
}

// writeForever appends entries to one feed in the directory args[0], and prints each position after it is acknowledged.
func writeForever(ctx context.Context, args []string) error {
	cfg := feedstore.DefaultConfig()
	cfg.MaxItems, cfg.MemtableBytes = 1_000_000, 1<<20 // small memtables, so that kills also hit flushes
	store, err := feedstore.Open(args[0], cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	entries, _, err := store.Page(ctx, "user:1", math.MaxInt64, 1)
	if err != nil {
		return err
	}
	next := int64(1)
	if len(entries) > 0 {
		next = entries[0].Position + 1
	}
	for ; ; next += 10 {
		var b feedstore.Batch
		for p := next; p < next+10; p++ {
			b.Entries = append(b.Entries, schemas.FeedEntry{User: "user:1", Position: p, ServedItem: schemas.ServedItem{
				Pin: schemas.PinID("pin:" + strings.Repeat("x", 200))}})
		}
		if err := store.Write(ctx, b); err != nil {
			return err
		}
		fmt.Println(next + 9)
	}
}

// TestStore_AcknowledgedEntriesSurviveKill repeatedly kills a writing process and checks that all acknowledged entries are there.
func TestStore_AcknowledgedEntriesSurviveKill(t *testing.T) {
	dir := t.TempDir()
	acknowledged := int64(0)
	for kill := range 4 {
		last := writeAndKill(t, dir, 40+kill*30)
		must.AtLeast(t, last, acknowledged+1, "killed %d: acknowledged entries", kill)
		acknowledged = last
		store := open(t, dir, feedstore.DefaultConfig())
		entries, trimmed, err := store.Page(t.Context(), "user:1", math.MaxInt64, math.MaxInt)
		if err != nil || trimmed != 0 {
			t.Fatalf("killed %d: trim position %d, %v", kill, trimmed, err)
		}
		if len(entries) == 0 || entries[0].Position < acknowledged || int64(len(entries)) != entries[0].Position {
			t.Fatalf("killed %d: %d entries, acknowledged up to %d", kill, len(entries), acknowledged)
		}
		must.Equal(t, len(entries)%10, 0, "killed %d: entries of a batch that was stored in part, of %d", kill, len(entries))
		must.OK(t, store.Close())
	}
}

// writeAndKill runs a child until it has acknowledged the given number of batches, kills it while it writes, and
// returns the last position that the child printed before.
func writeAndKill(t *testing.T, dir string, batches int) (last int64) {
	t.Helper()
	p := child.Start(t, "writer", dir)
	for range batches {
		last = must.Get(strconv.ParseInt(p.Line(), 10, 64))(t)
	}
	p.Kill()
	return last
}

func TestOpen_Rejects(t *testing.T) {
	dir := t.TempDir()
	first := open(t, dir, feedstore.DefaultConfig())
	expect.Fails(t, expect.ErrorOf(feedstore.Open(dir, feedstore.DefaultConfig(), slog.New(slog.DiscardHandler))), "second Open")
	must.OK(t, first.Close())
	expect.Error(t, expect.ErrorOf(feedstore.Open(dir, feedstore.Config{}, slog.New(slog.DiscardHandler))), "max_items", "zero configuration")
	file := dir + "/file"
	must.OK(t, os.WriteFile(file, nil, 0o600))
	expect.Error(t, expect.ErrorOf(feedstore.Open(file, feedstore.DefaultConfig(), slog.New(slog.DiscardHandler))), file, "file as directory")
}

func open(t testing.TB, dir string, cfg feedstore.Config) *feedstore.Store {
	t.Helper()
	return must.Get(feedstore.Open(dir, cfg, slog.New(slog.DiscardHandler)))(t)
}
