package embedded_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/smartfeed/smartfeed/internal/testkit/child"
	"github.com/smartfeed/smartfeed/internal/testkit/eventually"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/internal/testkit/topicstest"
	"github.com/smartfeed/smartfeed/topics"
)

func TestMain(m *testing.M) {
	child.Run(map[string]child.Role{"broker": topicstest.ServeBroker})
	m.Run()
}

// remote is a server in another process.
type remote struct {
	*topicstest.Cluster
	*child.Process
}

func startChild(t *testing.T, dir string) *remote {
	t.Helper()
	c, p := topicstest.Child(t, dir, 0)
	return &remote{c, p}
}

// acknowledged produces plain records and transactions of three records until the broker is killed. It returns the values
// that were acknowledged, and those that must never appear.
func (c *remote) acknowledged(t *testing.T, round int, enough chan<- struct{}, killed <-chan struct{}) (kept, aborted []string) {
	t.Helper()
	plain := must.Get(c.Kafka.Client())(t)
	tx := must.Get(c.Kafka.Transactional("tx", kgo.RecordPartitioner(topics.ByOwner())))(t)
	go func() { // otherwise the client would retry records in flight forever
		<-killed
		plain.Close()
		tx.Close()
	}()
	var mu sync.Mutex
	note := func(to *[]string, values ...string) {
		mu.Lock()
		defer mu.Unlock()
		*to = append(*to, values...)
		if len(kept) > 500 {
			select {
			case enough <- struct{}{}:
			default:
			}
		}
	}
	var gone atomic.Bool
	var work sync.WaitGroup
	work.Go(func() {
		for i := 0; !gone.Load(); i++ {
			v := fmt.Sprintf("plain-%d-%d", round, i)
			if plain.ProduceSync(t.Context(), &kgo.Record{Topic: "t", Key: []byte(v), Value: []byte(v)}).FirstErr() != nil {
				gone.Store(true)
				return
			}
			note(&kept, v)
		}
	})
	work.Go(func() {
		for i := 0; !gone.Load(); i++ {
			values, ok := transaction(t, tx, fmt.Sprintf("tx-%d-%d", round, i), i%3 != 0)
			switch {
			case !ok:
				gone.Store(true)
			case i%3 != 0:
				note(&kept, values...)
			default:
				note(&aborted, values...)
			}
		}
	})
	work.Wait()
	return kept, aborted
}

// transaction reports whether the transaction certainly ended as requested.
func transaction(t *testing.T, tx *kgo.Client, name string, commit bool) ([]string, bool) {
	if tx.BeginTransaction() != nil {
		return nil, false
	}
	var values []string
	var records []*kgo.Record
	for i := range 3 {
		v := fmt.Sprintf("%s-%d", name, i)
		values = append(values, v)
		records = append(records, &kgo.Record{Topic: "t", Key: []byte(v), Value: []byte(v)})
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	if tx.ProduceSync(ctx, records...).FirstErr() != nil {
		return nil, false
	}
	return values, topics.EndTransaction(ctx, tx, kgo.TransactionEndTry(commit), "t") == nil
}

// The broker is killed at any moment and restarted. Every acknowledged record is there once, and no aborted record is.
// Schema ids are the same. A transaction of unknown outcome is there in full or not at all.
func TestServer_KeepsAcknowledgedRecordsWhenKilled(t *testing.T) {
	dir := t.TempDir()
	var kept, aborted []string
	var id int
	for round := range 4 {
		c := startChild(t, dir)
		if round == 0 {
			createTopic(t, c.Kafka, "t")
			id = register(t, c.Registry, "s", `"string"`)
		}
		enough := make(chan struct{}, 1)
		killed := make(chan struct{})
		go func() {
			defer close(killed)
			<-enough
			c.Kill()
		}()
		k, a := c.acknowledged(t, round, enough, killed)
		kept, aborted = append(kept, k...), append(aborted, a...)
	}
	s := start(t, config(dir))
	expect.Equal(t, register(t, s.RegistryURL(), "s", `"string"`), id, "schema id after the kills")
	check(t, readAll(t, s.Kafka(0), "t"), kept, aborted)
}

func check(t *testing.T, got map[string]int, kept, aborted []string) {
	t.Helper()
	expect.True(t, len(kept) >= 2000 && len(aborted) > 0, "%d kept records and %d aborted ones are enough", len(kept), len(aborted))
	for _, v := range kept {
		expect.Equal(t, got[v], 1, "times that the acknowledged %s is in the log", v)
	}
	for _, v := range aborted {
		expect.Equal(t, got[v], 0, "times that the aborted %s is in the log", v)
	}
	records := map[string]int{}
	for v := range got {
		if strings.HasPrefix(v, "tx") {
			records[v[:strings.LastIndexByte(v, '-')]]++
		}
	}
	for name, n := range records {
		expect.Equal(t, n, 3, "records of transaction %s in the log", name)
	}
}

// readAll counts the committed values of a topic.
func readAll(t *testing.T, k topics.Kafka, topic string) map[string]int {
	t.Helper()
	l := must.Get(topics.NewLog(k))(t)
	defer l.Close()
	ends := must.Get(l.Ends(t.Context(), topic))(t)
	values := map[string]int{}
	ctx, cancel := context.WithTimeout(t.Context(), eventually.Patience)
	defer cancel()
	for p, end := range ends[topic] {
		must.OK(t, l.ReadTo(ctx, topic, p, 0, end, func(r *kgo.Record) error { values[string(r.Value)]++; return nil }))
	}
	return values
}
