package featurelog

import (
	"context"
	"fmt"
	"strconv"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/smartfeed/smartfeed/internal/testkit/child"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// numbered returns record n of a partition. Each date has a hundred records, and a few dates alternate.
func numbered(stream topics.Stream[schemas.LoggedFeatures], partition int32, n int64) (*kgo.Record, error) {
	at := schemas.MicrosOf(midnight.AddDate(0, 0, int(n/100%3)))
	rec := &schemas.LoggedFeatures{Entity: fmt.Sprintf("user:%d-%d", partition, n), Share: 1, Logged: at}
	value, err := stream.Encode(rec)
	return &kgo.Record{Topic: stream.Name, Partition: partition, Offset: n, Value: value}, err
}

// fileUntilKilled files records in the directory args[1], with the registry args[0], in batches of args[2]. It starts without
// committed offsets, at offset 0, and prints each offset up to which both partitions are durable.
func fileUntilKilled(ctx context.Context, args []string) error {
	client, err := schemas.NewRegistry(args[0])
	if err != nil {
		return err
	}
	streams, err := topics.Open(ctx, client)
	if err != nil {
		return err
	}
	metrics, err := NewMetrics(prometheus.NewRegistry())
	if err != nil {
		return err
	}
	size, err := strconv.ParseInt(args[2], 10, 64)
	if err != nil {
		return err
	}
	cfg := DefaultConfig()
	cfg.Dir = args[1]
	f, err := NewFiles(cfg, FilesDeps{Stream: streams.FeatureLog, DeadLetters: &deadLetters{}, Metrics: metrics})
	if err != nil {
		return err
	}
	if _, err := f.parts.Lock(); err != nil {
		return err
	}
	if _, f.next, err = f.parts.List(); err != nil {
		return err
	}
	for from := int64(0); ; from += size {
		var batch []*kgo.Record
		for n := from; n < from+size; n++ {
			for p := range int32(partitions) {
				r, err := numbered(streams.FeatureLog, p, n)
				if err != nil {
					return err
				}
				batch = append(batch, r)
			}
		}
		if err := f.handle(ctx, batch); err != nil {
			return err
		}
		fmt.Println(from + size - 1)
	}
}

// killFiler starts a writer, kills it once its durable offset has reached before + further, and returns the last offset
// that it printed.
func killFiler(t *testing.T, registry, dir string, before, further, size int64) (durable int64) {
	t.Helper()
	p := child.Start(t, "writer", registry, dir, strconv.FormatInt(size, 10))
	for durable = -1; durable < before+further; {
		durable = must.Get(strconv.ParseInt(p.Line(), 10, 64))(t)
	}
	p.Kill()
	return durable
}

// Whenever a writer is killed, and although all commits are lost, each durable record is in exactly one file.
func TestFiles_WriteEachRecordOnceUnderKills(t *testing.T) {
	w := newWire(t)
	dir, durable := t.TempDir(), int64(-1)
	for round := range int64(8) {
		durable = killFiler(t, w.Registry, dir, durable, 30+41*round, 7+round)
	}
	parts := partsOf(dir)
	lock := must.Get(parts.Lock())(t)
	must.OK(t, lock.Unlock())
	_, next, err := parts.List()
	must.OK(t, err)
	want := map[string]int{}
	for p := range int32(partitions) {
		expect.True(t, next[p] > durable, "partition %d: files resume at %d, and %d was durable", p, next[p], durable)
		for n := range next[p] {
			want[fmt.Sprintf("user:%d-%d", p, n)] = 1
		}
	}
	expect.NoDiff(t, filed(t, dir), want, "entities in files")
}
