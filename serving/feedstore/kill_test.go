package feedstore_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"math"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/serving/feedstore"
)

// childDir names the environment variable that turns the test binary into a process that writes to the directory in it.
const childDir = "FEEDSTORE_TEST_CHILD_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		if err := writeForEver(dir, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	os.Exit(m.Run())
}

// writeForEver appends entries to one feed and prints each position after it is acknowledged.
func writeForEver(dir string, out io.Writer) error {
	cfg := feedstore.DefaultConfig()
	cfg.MaxFeed, cfg.MemtableBytes = 1_000_000, 1<<20 // small memtables, so that kills also hit flushes
	store, err := feedstore.Open(dir, cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	entries, _, err := store.Page(context.Background(), "user:1", math.MaxInt64, 1)
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
		if err := store.Write(context.Background(), b); err != nil {
			return err
		}
		fmt.Fprintln(out, next+9)
	}
}

// TestAcknowledgedSurvivesKill repeatedly kills a writing process and checks that all acknowledged entries are there.
func TestAcknowledgedSurvivesKill(t *testing.T) {
	dir := t.TempDir()
	acknowledged := int64(0)
	for kill := range 4 {
		last := writeAndKill(t, dir, 40+kill*30)
		if last <= acknowledged {
			t.Fatalf("killed %d: acknowledged up to %d, %d before", kill, last, acknowledged)
		}
		acknowledged = last
		store := open(t, dir, feedstore.DefaultConfig())
		entries, floor, err := store.Page(t.Context(), "user:1", math.MaxInt64, math.MaxInt)
		if err != nil || floor != 0 {
			t.Fatalf("killed %d: floor %d, %v", kill, floor, err)
		}
		if len(entries) == 0 || entries[0].Position < acknowledged || int64(len(entries)) != entries[0].Position {
			t.Fatalf("killed %d: %d entries, acknowledged up to %d", kill, len(entries), acknowledged)
		}
		if len(entries)%10 != 0 {
			t.Fatalf("killed %d: %d entries: a batch was torn", kill, len(entries))
		}
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// writeAndKill runs a child until it has acknowledged the given number of batches, kills it while it writes, and returns the
// last position that the child printed.
func writeAndKill(t *testing.T, dir string, batches int) (last int64) {
	t.Helper()
	child := exec.Command(os.Args[0], "-test.run=^$")
	child.Env = append(os.Environ(), childDir+"="+dir)
	child.Stderr = os.Stderr
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for told := 0; lines.Scan(); told++ {
		if last, err = strconv.ParseInt(lines.Text(), 10, 64); err != nil {
			t.Fatal(err)
		}
		if told == batches {
			if err := child.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := child.Wait(); err == nil || child.ProcessState.Exited() {
		t.Fatalf("the child ended by itself: %v", err)
	}
	return last
}

func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	first := open(t, dir, feedstore.DefaultConfig())
	if _, err := feedstore.Open(dir, feedstore.DefaultConfig(), slog.New(slog.DiscardHandler)); err == nil {
		t.Error("opened twice")
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := feedstore.Open(dir, feedstore.Config{}, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), "max_feed") {
		t.Errorf("zero configuration: got %v", err)
	}
	file := dir + "/file"
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := feedstore.Open(file, feedstore.DefaultConfig(), slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("a file for a directory: got %v, want an error that names it", err)
	}
}
