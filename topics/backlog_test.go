package topics

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"pgregory.net/rapid"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/schemas"
)

// fakeLog is a partition. Each offset holds a record with an origin time, or no readable record.
type fakeLog struct {
	origins []schemas.Micros // -1: marker or aborted
	reads   int
	piece   int // offsets per read
}

func (l *fakeLog) read(from int64) ([]*kgo.Record, int64, error) {
	var records []*kgo.Record
	next := from
	for ; next < int64(len(l.origins)) && next < from+int64(l.piece); next++ {
		if since := l.origins[next]; since >= 0 {
			records = append(records, &kgo.Record{Offset: next, Headers: WithOrigin(nil, since)})
		}
	}
	l.reads++
	return records, next, nil
}

// pending reports whether an old record lies between the committed offset and the end, for reads of any size.
func TestBacklog_ContainsUnprocessedOldRecords(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := &fakeLog{piece: rapid.IntRange(1, 5).Draw(t, "piece")}
		before := rapid.Int64Range(0, 8).Draw(t, "before")
		b := &backlog{before: before, since: 100, lastOld: -1}
		var committed int64
		for range rapid.IntRange(1, 20).Draw(t, "checks") {
			for range rapid.IntRange(0, 6).Draw(t, "new") {
				l.origins = append(l.origins, rapid.SampledFrom([]schemas.Micros{-1, 99, 100, 101}).Draw(t, "since"))
			}
			end := int64(len(l.origins))
			committed = rapid.Int64Range(committed, end).Draw(t, "committed")
			want := false
			for o := committed; o < end; o++ {
				s := l.origins[o]
				want = want || s >= 0 && (s <= 100 || o < before)
			}
			got, err := b.pending(committed, end, l.read)
			if err != nil || got != want {
				t.Fatalf("pending(%d, %d) of %v, before %d = %v, %v, want %v", committed, end, l.origins, before, got, err, want)
			}
		}
	})
}

// A large backlog is not read at all, and a small one is read once.
func TestBacklog_ReadsEachRecordOnce(t *testing.T) {
	l := &fakeLog{piece: 1000, origins: make([]schemas.Micros, 10*maxScan)}
	n := int64(len(l.origins))
	b := &backlog{before: n, since: 100, lastOld: -1}
	for at := int64(0); at < n-maxScan-1; at += maxScan / 2 {
		if pending, _ := b.pending(at, n, l.read); !pending || l.reads != 0 {
			t.Fatalf("pending = %v after %d reads, want pending without a read", pending, l.reads)
		}
	}

	newer := &fakeLog{piece: 1000, origins: make([]schemas.Micros, 3*maxScan)}
	for i := range newer.origins {
		newer.origins[i] = 101
	}
	b = &backlog{before: 0, since: 100, lastOld: -1}
	for end := int64(1000); end <= int64(len(newer.origins)); end += 1000 {
		if pending, _ := b.pending(0, end, newer.read); pending {
			t.Fatal("newer records are pending")
		}
	}
	expect.Equal(t, newer.reads, len(newer.origins)/1000, "reads: one per record")
}

func TestBacklog_IsPendingAtOpenTransaction(t *testing.T) {
	b := &backlog{lastOld: -1}
	stuck := func(from int64) ([]*kgo.Record, int64, error) { return nil, from, nil }
	if pending, _ := b.pending(0, 5, stuck); !pending {
		t.Error("not pending, want pending: the open transaction may contain old records")
	}
}

func TestOriginTime(t *testing.T) {
	at := time.UnixMicro(5_000)
	tests := []struct {
		name    string
		headers []kgo.RecordHeader
		want    schemas.Micros
	}{
		{"from outside", nil, 5_000},
		{"derived", WithOrigin(nil, 42), 42},
		{"derived, among others", WithOrigin([]kgo.RecordHeader{{Key: "a", Value: OriginValue(7)}}, 42), 42},
		{"unreadable", []kgo.RecordHeader{{Key: OriginHeader, Value: []byte{1}}}, 5_000},
	}
	for _, tt := range tests {
		expect.Equal(t, OriginTime(&kgo.Record{Timestamp: at, Headers: tt.headers}), tt.want, "%s: OriginTime", tt.name)
	}
}

func TestRetryBackoff_GrowsToBound(t *testing.T) {
	last := time.Duration(0)
	for fails := range 100 {
		d := retryBackoff(fails)
		expect.Between(t, d, max(last, 25*time.Millisecond), 2*time.Second, "retryBackoff(%d) after %s", fails, last)
		last = d
	}
	expect.Equal(t, last, 2*time.Second, "end of the backoff")
}
