package stream

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/cockroachdb/pebble/v2"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/smartfeed/smartfeed/internal/testkit/child"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
)

// The bare loop is the reference of the product: a franz-go consumer that stores each record in Pebble, with a counter per key, and
// an HTTP handler that reads rows and, for a visit, publishes one record and waits for its acknowledgement. For a pin it also writes a
// row for each delivery.
const (
	bareRows   = 2             // that the loop writes for each other record
	bareBytes  = 100           // bytes of the row of a delivery
	barePage   = 25            // rows that the handler reads
	bareVisits = "bare-visits" // topic that the handler writes and the loop reads
)

// startBare runs the bare loop over the first n records of a topic in another process, and replaces the previous loop. deliveries are
// the deliveries per record.
func (r *run) startBare(topic string, n, deliveries int) figures {
	r.b.Helper()
	if r.loop != nil {
		r.loop.Kill()
	}
	dir := r.b.TempDir()
	r.bare = &system{
		parts: append([]part{{name: "bare", dirs: []string{dir}}}, r.broker()...), rest: append([]float64{0}, r.atRest(r.broker(), r.lasting/4)...),
	}
	before := r.bare.used(r.b)
	r.loop = child.Start(r.b, "bare", r.setup.Kafka.Brokers[0], topic, strconv.Itoa(n), dir, strconv.Itoa(deliveries))
	took, url, _ := strings.Cut(r.loop.Line(), " ")
	r.bare.url, r.bare.parts[0].pids = url, []int{r.loop.Process.Pid}
	f := r.bare.used(r.b).since(before, n)
	f.rate, f.rows = float64(n)/must.Get(time.ParseDuration(took))(r.b).Seconds(), float64(bareRows+deliveries)
	return f
}

// atRest returns the CPU-seconds per second of parts while there are no events or requests.
func (r *run) atRest(parts []part, lasting time.Duration) (rest []float64) {
	r.b.Helper()
	s := &system{parts: parts}
	before := s.used(r.b)
	time.Sleep(lasting)
	after := s.used(r.b)
	for i := range parts {
		rest = append(rest, (after.cpu[i]-before.cpu[i]).Seconds()/after.at.Sub(before.at).Seconds())
	}
	return rest
}

// bare is a child.Role: args are a broker, a topic, the number of records, a directory, and the deliveries per record. It prints the time that it took and the
// URL of its HTTP handler, and then reads bareVisits until it is killed.
func bare(ctx context.Context, args []string) error {
	n, err := strconv.Atoi(args[2])
	if err != nil {
		return err
	}
	deliveries, err := strconv.Atoi(args[4])
	if err != nil {
		return err
	}
	db, err := pebble.Open(args[3], &pebble.Options{DisableWAL: true})
	if err != nil {
		return err
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(args[0]), kgo.ConsumeTopics(args[1], bareVisits), kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.FetchMaxWait(100*time.Millisecond), kgo.ProducerLinger(0)) // the first fetch may have only partitions without records
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	go func() { _ = http.Serve(listener, bareHandler{db, client}) }()
	began := time.Now()
	for done := 0; ; {
		stored, err := storeNext(ctx, client, db, deliveries)
		if err != nil {
			return err
		}
		if done < n && done+stored >= n {
			took := time.Since(began)
			if err := db.Flush(); err != nil { // the size on disk is a result
				return err
			}
			fmt.Printf("%s http://%s\n", took, listener.Addr())
		}
		done += stored
	}
}

// storeNext stores the next records in one batch and returns their number.
func storeNext(ctx context.Context, client *kgo.Client, db *pebble.DB, deliveries int) (n int, err error) {
	fetches := client.PollRecords(ctx, 1000)
	if err := fetches.Err(); err != nil {
		return 0, err
	}
	batch := db.NewIndexedBatch()
	for it := fetches.RecordIter(); !it.Done(); n++ {
		rec := it.Next()
		if err := errors.Join(store(batch, rec), deliver(batch, rec, deliveries)); err != nil {
			return n, err
		}
	}
	return n, batch.Commit(pebble.NoSync)
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

// deliver writes n rows in the order of other keys than the record's, as the pools of its followers have.
func deliver(batch *pebble.Batch, rec *kgo.Record, n int) error {
	pin, value := xxhash.Sum64(rec.Key), rec.Value[:min(bareBytes, len(rec.Value))]
	for i := range n {
		user := (pin + uint64(i)) * 0x9e3779b97f4a7c15 // Fibonacci hashing
		row := binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64([]byte{'d'}, user), uint64(rec.Offset))
		if err := batch.Set(row, value, nil); err != nil {
			return err
		}
	}
	return nil
}

type bareHandler struct {
	db     *pebble.DB
	client *kgo.Client
}

func (h bareHandler) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	names, page, err := h.read(req.URL.Path)
	if err == nil && strings.HasSuffix(req.URL.Path, "/feed") {
		err = h.client.ProduceSync(req.Context(), &kgo.Record{Topic: bareVisits, Key: []byte(req.URL.Path), Value: names}).FirstErr()
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	_, _ = w.Write(page)
}

// read returns the names and values of rows, other ones for each user in the path.
func (h bareHandler) read(path string) (names, page []byte, err error) {
	rows, err := h.db.NewIter(nil)
	if err != nil {
		return nil, nil, err
	}
	_, user, _ := strings.Cut(path, "user:")
	rows.SeekGE([]byte("rpin:" + user))
	for n := 0; n < barePage && rows.Valid(); n++ {
		names, page = append(names, rows.Key()...), append(page, rows.Value()...)
		rows.Next()
	}
	return names, page, rows.Close()
}
