package rows

import (
	"bytes"
	"strings"
	"testing"

	"github.com/lovoo/goka"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/internal/tracing"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
	"github.com/smartfeed/smartfeed/topics/generation"
)

// A misplaced record with headers that are small on the wire but exceed the topic's limit is forwarded without them.
func TestForward_DropsLargeHeaders(t *testing.T) {
	w := parallelWire(t)
	r, stop := w.run(t, t.TempDir(), w.counter("t-in"))
	producer := must.Get(w.Kafka.Client(manual, kgo.ProducerBatchMaxBytesFn(func(string) int32 { return 8 << 20 }),
		kgo.ProducerBatchCompression(kgo.GzipCompression())))(t)
	defer producer.Close()
	wrong := w.record(t, "t-in", "user:1", 0)
	wrong.Partition = (wrong.Partition + 1) % testPartitions
	wrong.Headers = []kgo.RecordHeader{{Key: "baggage", Value: make([]byte, schemas.MaxRecordBytes+300<<10)}}
	must.OK(t, producer.ProduceSync(t.Context(), wrong).FirstErr())
	w.send(t, "t-in", 1, 1, func(int) string { return "user:1" })
	whileRunning(t, r, "both are counted", func() bool { return count(t, r, "user:1") == 2 })
	must.OK(t, stop())
	if got := r.Status().Counters; got.Misplaced != 1 || got.DeadLetters != 0 {
		t.Errorf("counters %+v, want one misplaced record and no dead letter", got)
	}
}

// A misplaced record whose key and value together exceed the topic's limit goes to the dead-letter topic.
func TestForward_SendsLongKeyToDeadLetters(t *testing.T) {
	w := parallelWire(t)
	r, _ := w.run(t, t.TempDir(), w.counter("t-in"))
	producer := must.Get(w.Kafka.Client(manual, kgo.ProducerBatchMaxBytesFn(func(string) int32 { return 8 << 20 }),
		kgo.ProducerBatchCompression(kgo.GzipCompression())))(t)
	defer producer.Close()
	key := bytes.Repeat([]byte("k"), 200<<10)
	wrong := &kgo.Record{Topic: "t-in", Key: key, Value: make([]byte, schemas.MaxRecordBytes)}
	wrong.Partition = (topics.Partition(string(key), testPartitions) + 1) % testPartitions
	must.OK(t, producer.ProduceSync(t.Context(), wrong).FirstErr())
	whileRunning(t, r, "the record is a dead letter", func() bool { return r.Status().Counters.DeadLetters == 1 })
}

func TestForward_KeepsKnownHeaders(t *testing.T) {
	t.Parallel()
	retry := topics.Retry{Group: "t", Partition: 1, Offset: 2, Attempt: 3}.Value()
	const sender = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	for name, c := range map[string]struct {
		headers goka.Headers
		want    map[string][]byte
	}{
		"none":              {nil, map[string][]byte{}},
		"known":             {goka.Headers{topics.RetryHeader: retry, tracing.Header: []byte(sender)}, map[string][]byte{topics.RetryHeader: retry, tracing.Header: []byte(sender)}},
		"operator":          {goka.Headers{topics.OperatorHeader: []byte("op")}, map[string][]byte{topics.OperatorHeader: []byte("op")}},
		"operator too long": {goka.Headers{topics.OperatorHeader: make([]byte, maxNameBytes+1)}, map[string][]byte{}},
		"unknown":           {goka.Headers{"baggage": []byte("b"), generation.MarkHeader: []byte("t/2")}, map[string][]byte{}},
		"retry too long":    {goka.Headers{topics.RetryHeader: append(retry, make([]byte, 1<<20)...)}, map[string][]byte{}},
		"trace of a later version": {goka.Headers{tracing.Header: []byte("01" + sender[2:] + "-" + strings.Repeat("x", 1<<20))},
			map[string][]byte{tracing.Header: []byte(sender)}},
	} {
		expect.NoDiff(t, forwardedHeaders(c.headers), c.want, "%s", name)
	}
}
