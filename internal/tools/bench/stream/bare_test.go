package stream

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"os"
	"strconv"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/smartfeed/smartfeed/internal/testkit/child"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
)

// loop is the result of the bare loop.
type loop struct {
	rate float64 // records per second
	cpu  float64 // µs per record
}

// bare runs the bare loop over the first n records of a topic in another process.
func (r *run) bare(topic string, n int) loop {
	r.b.Helper()
	p := child.Start(r.b, "bare", r.setup.Kafka.Brokers[0], topic, strconv.Itoa(n), r.b.TempDir())
	took := time.Duration(must.Get(strconv.ParseInt(p.Line(), 10, 64))(r.b))
	return loop{float64(n) / took.Seconds(), float64(child.CPU(r.b, p.Process.Pid).Microseconds()) / float64(n)}
}

// bare is a child.Role: args are a broker, a topic, the number of records, and a directory. For each record it writes one row and
// increments a counter of the record's key. It prints the time it took, in nanoseconds, and waits until it is killed.
func bare(ctx context.Context, args []string) error {
	n, err := strconv.Atoi(args[2])
	if err != nil {
		return err
	}
	db, err := pebble.Open(args[3], &pebble.Options{DisableWAL: true})
	if err != nil {
		return err
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(args[0]), kgo.ConsumeTopics(args[1]), kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	if err != nil {
		return err
	}
	began := time.Now()
	for done := 0; done < n; {
		fetches := client.PollRecords(ctx, 1000)
		if err := fetches.Err(); err != nil {
			return err
		}
		batch := db.NewIndexedBatch()
		for it := fetches.RecordIter(); !it.Done(); done++ {
			if err := store(batch, it.Next()); err != nil {
				return err
			}
		}
		if err := batch.Commit(pebble.NoSync); err != nil {
			return err
		}
	}
	if err := json.NewEncoder(os.Stdout).Encode(time.Since(began).Nanoseconds()); err != nil {
		return err
	}
	<-ctx.Done()
	return ctx.Err()
}

func store(batch *pebble.Batch, rec *kgo.Record) error {
	row := binary.BigEndian.AppendUint64(append([]byte{'r'}, rec.Key...), uint64(rec.Offset))
	if err := batch.Set(row, rec.Value, nil); err != nil {
		return err
	}
	counter := append([]byte{'c'}, rec.Key...)
	count := uint64(1)
	if held, closer, err := batch.Get(counter); err == nil {
		count += binary.BigEndian.Uint64(held)
		if err := closer.Close(); err != nil {
			return err
		}
	}
	return batch.Set(counter, binary.BigEndian.AppendUint64(nil, count), nil)
}
