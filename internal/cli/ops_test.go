package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/smartfeed/smartfeed/internal/ops"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/internal/testkit/topicstest"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/serving/api"
	"github.com/smartfeed/smartfeed/topics"
)

// wire is a cluster that command lines run against.
type wire struct{ *topicstest.Cluster }

func newWire(t *testing.T) *wire {
	t.Helper()
	return &wire{topicstest.Start(t, 0)}
}

// smartfeed runs a command line against the wire.
func (w *wire) smartfeed(t *testing.T, stdin string, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	flags := []string{"--kafka", w.Kafka.Brokers[0], "--registry", w.Registry, "--partitions", "4"}
	return smartfeed(t, stdin, append(flags, args...)...)
}

// prints checks that a command line succeeds, and that want is in its standard output.
func (w *wire) prints(t *testing.T, want, stdin string, args ...string) (stdout string) {
	t.Helper()
	stdout, stderr, err := w.smartfeed(t, stdin, args...)
	expect.Error(t, err, "", "%q: %s", args, stderr)
	expect.Contains(t, stdout, want, "%q printed", args)
	return stdout
}

// decoded runs a command line whose standard output is JSON, and returns the decoded value.
func decoded[V any](t *testing.T, w *wire, args ...string) (v V) {
	t.Helper()
	must.OK(t, json.Unmarshal([]byte(w.prints(t, "", "", append(args, "-o", "json")...)), &v))
	return v
}

func TestTopicsCommands(t *testing.T) {
	w := &wire{topicstest.Bare(t, 0)}
	_, _, err := w.smartfeed(t, "", "topics", "verify")
	expect.Error(t, err, "topic pins: missing", "verify")
	w.prints(t, "create pins: 4 partitions, 1 replica, never deleted\n", "", "topics", "plan")
	expect.Equal(t, len(w.Names()), 0, "topics created by the plan")
	done := decoded[topics.Plan](t, w, "topics", "apply")
	expect.Equal(t, len(done.Create), len(topics.Catalogue(topics.Profile{})), "created topics")
	expect.Equal(t, w.prints(t, "", "", "topics", "verify"), "all topics match the catalogue\n", "verify")
}

// The topics commands include the active generation and the one being built, but not retired generations.
func TestTopics_IncludeGenerations(t *testing.T) {
	c := must.Get(kfake.NewCluster(kfake.NumBrokers(3)))(t)
	t.Cleanup(c.Close)
	w := topicstest.On(t, topics.Kafka{Brokers: c.ListenAddrs(), Partitions: 2}, nil)
	says := func(want, command string) {
		t.Helper()
		out, _, err := smartfeed(t, "", "topics", command, "--partitions", "2", "--kafka", strings.Join(w.Kafka.Brokers, ","))
		expect.Contains(t, fmt.Sprint(out, err), want, "topics %s", command)
	}
	says("create pools-table", "apply")
	w.CreateGeneration(topics.Profile{Partitions: 2, Replicas: 2}, 2) // with one broker unavailable
	w.SetConfig("pools.2-table", "max.message.bytes", "1000")
	says("all topics match the catalogue", "verify")

	w.SetGeneration(2, 3)
	says("topic pools.2-table: max.message.bytes is 1000 and should be", "verify")
	says("topic pools.3-ticks: missing", "verify")
	says("alter pools.2-table: max.message.bytes from 1000", "plan")
	says("create pools.3-table: 2 partitions, 3 replicas, compacted", "apply")
	says("pools.2-table has 2 replicas, want 3", "verify")

	w.SetGeneration(3, 0)
	says("all topics match the catalogue\n<nil>", "verify")
}

func TestTopicsPlan_FailsOnConflict(t *testing.T) {
	w := &wire{topicstest.Bare(t, 0)}
	must.Get(w.Admin().CreateTopic(t.Context(), 3, 1, nil, "pins"))(t)
	_, _, err := w.smartfeed(t, "", "topics", "plan")
	conflict := must.As[*topics.Conflict](t, err)
	expect.Equal(t, [2]string{conflict.Topic, conflict.Have}, [2]string{"pins", "3"}, "topic of the conflict, and its partitions")
}

func TestACLsCommand(t *testing.T) {
	w := &wire{topicstest.Bare(t, 0)}
	const add = "--add --allow-principal User:app --operation Write --topic pins\n"
	w.prints(t, add, "", "topics", "acls", topics.RoleProduce, "--principal", "User:app")
	w.prints(t, "Read on group pools*\n", "", "topics", "acls", topics.RoleProcess)
}

const (
	goodLine  = `{"stream":"actions","id":"e%d","time":"2020-11-20T10:00:00.123Z","actor":"user:7","verb":"save","object":"pin:42"}`
	otherGood = `{"stream":"follows","id":"f1","time":1,"actor":"user:7","verb":"follow","object":"board:1"}`
)

func goodLines(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, goodLine+"\n", i)
	}
	return b.String()
}

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "events.ndjson")
	must.OK(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func TestPublish_ReadsFilesAndStandardInput(t *testing.T) {
	w := newWire(t)
	a := write(t, goodLines(100)+"\n  \n"+otherGood) // empty lines, no line feed at the end
	out, stderr, err := w.smartfeed(t, otherGood+"\r\n", "publish", a, "-", "-o", "json")
	if err != nil || strings.Contains(stderr, a) {
		t.Fatalf("publish: %v, %s", err, stderr)
	}
	var got ops.Published
	must.OK(t, json.Unmarshal([]byte(out), &got))
	want := ops.Published{Events: 102, Streams: map[string]int{"actions": 100, "follows": 2}, Seconds: got.Seconds}
	expect.NoDiff(t, got, want, "published")
	expect.Equal(t, len(w.Records(topics.Actions)), 100, "actions in the log")
	expect.Equal(t, w.prints(t, "", otherGood, "publish"), "published 1 event: 1 follow\n", "publish")
}

func TestPublish_NamesEveryBadLineAndPublishesNothing(t *testing.T) {
	w := newWire(t)
	future := fmt.Sprintf(`{"stream":"follows","id":"f2","time":%d,"actor":"user:7","verb":"follow","object":"board:1"}`,
		time.Now().Add(time.Hour).UnixMicro())
	first := write(t, goodLines(3))
	second := write(t, strings.Join([]string{otherGood, "{", future, strings.Repeat("x", schemas.MaxLineBytes+10), otherGood}, "\n"))
	out, stderr, err := w.smartfeed(t, "", "publish", first, second)
	expect.Error(t, err, "3 bad lines: nothing was published", "publish")
	expect.Equal(t, out, "", "standard output")
	for _, want := range []string{second + ":2: ", second + ":3: ", second + ":4: longer than"} {
		expect.Contains(t, stderr, want, "standard error")
	}
	expect.Equal(t, strings.Count(stderr, "\n"), 3, "lines of standard error in %s", stderr)
	for _, topic := range []string{topics.Actions, topics.Follows} {
		expect.Equal(t, w.End(topic), 0, "records on %s", topic)
	}
	out = w.prints(t, "", "", "publish", "--skip-bad", first, second)
	expect.Equal(t, out, "published 5 events: 2 follows, 3 actions; 3 bad lines skipped\n", "publish --skip-bad")
}

// publish splits lines like POST /v1/events.
func TestPublish_AcceptsLongestLine(t *testing.T) {
	w := newWire(t)
	room := strings.Repeat(" ", schemas.MaxLineBytes-len(otherGood))
	longest := strings.TrimSuffix(otherGood, "}") + room + "}\r\n"
	out, stderr, err := w.smartfeed(t, longest+"\f\n"+otherGood, "publish", "--skip-bad")
	if err != nil || out != "published 2 events: 2 follows; 1 bad line skipped\n" || !strings.HasPrefix(stderr, "standard input:2: ") {
		t.Errorf("publish printed %q and %q, %v, want the form feed left out alone", out, stderr, err)
	}
}

func TestPublish_FailsOnMissingFile(t *testing.T) {
	w := newWire(t)
	a := write(t, goodLines(3))
	_, _, err := w.smartfeed(t, "", "publish", a, "/nowhere")
	expect.Error(t, err, "/nowhere", "publish")
	expect.Equal(t, w.End(topics.Actions), 0, "published records")
}

func TestPublish_CountsAcknowledgedEvents(t *testing.T) {
	w := newWire(t)
	hits := topicstest.FailProduce(w.Broker(), topics.Partition("pin:42", w.Kafka.Partitions), kerr.TopicAuthorizationFailed.Code)
	_, _, err := w.smartfeed(t, goodLines(10), "publish")
	partial := must.As[*topics.PublishError](t, err)
	expect.Equal(t, [2]int{partial.Acknowledged, partial.Events}, [2]int{0, 10}, "acknowledged events, of all")
	expect.AtLeast(t, hits.Load(), 1, "hits of the fault")
}

func TestWait_NamesLaggingConsumers(t *testing.T) {
	w := newWire(t)
	w.prints(t, "", "", "wait")
	w.Send(&kgo.Record{Topic: topics.Pins, Key: []byte("k"), Value: []byte("k")})
	_, _, err := w.smartfeed(t, "", "wait", "--timeout", "100ms")
	expect.Error(t, err, "not done within 100ms: unprocessed: objects: 1 of pins", "wait")
}

// Brokers of an older release lack a topic. wait stops, and names the topic and the command that creates it.
func TestWait_NamesMissingTopic(t *testing.T) {
	w := newWire(t)
	must.Get(w.Admin().DeleteTopics(t.Context(), topics.RetryOrders))(t)
	out, _, err := w.smartfeed(t, "", "wait", "--timeout", "60s", "-o", "json")
	expect.NoDiff(t, must.As[*topics.MissingTopicsError](t, err).Topics, []string{topics.RetryOrders}, "missing topics")
	expect.Error(t, err, `"smartfeed topics apply"`, "wait: what to do")
	expect.Contains(t, out, `"done": false`, "printed")
}

func TestDeadLetters_ListAndRetry(t *testing.T) {
	w := newWire(t)
	for i := range 5 {
		w.SendDeadLetter(topics.Pins, 0, fmt.Sprintf("pin:%d", i), fmt.Sprintf("v%d", i), int64(5-i))
	}
	w.SendDeadLetter(topics.Deliveries, 3, "user:a", "d", 10)
	w.SendDeadLetter("gone", 0, "k", "v", 11)
	w.Send(&kgo.Record{Topic: topics.DeadLetters, Key: []byte("k"), Value: []byte("?")})

	listed := decoded[[]api.DeadLetter](t, w, "dead-letters", "list", "--limit", "3")
	must.Equal(t, len(listed), 3, "dead letters, %+v", listed)
	if l := listed[2]; l.Topic != "gone" || l.Reason != "broken" || l.DeadLetter.Offset != 11 || l.Retried {
		t.Errorf("the newest dead letter is %+v, want that of topic gone", l)
	}

	out := w.prints(t, "", "", "dead-letters", "retry", "--operator", "ann")
	expect.Equal(t, out, "retried 6 dead letters, skipped 2\n", "retry")
	ordered := map[string]string{}
	for _, r := range w.Records(topics.RetryOrders) {
		o, err := w.Streams.RetryOrders.Decode(r.Value)
		if err != nil || o.Validate(string(r.Key)) != nil || r.Partition != topics.Partition(o.Topic, 4) || len(o.DeadLetters) != 1 || o.Operator != "ann" {
			t.Fatalf("order %+v under %s in partition %d: %v", o, r.Key, r.Partition, err)
		}
		ordered[string(o.DeadLetters[0].Key)] = o.Topic + " " + string(o.DeadLetters[0].Value)
	}
	if len(ordered) != 6 || ordered["pin:3"] != "pins v3" || ordered["user:a"] != "deliveries d" {
		t.Errorf("ordered %v, want five pins and a delivery", ordered)
	}

	w.SendDeadLetter(topics.Pins, 0, "pin:9", "v9", 20)
	w.prints(t, `"published": 1`, "", "dead-letters", "retry", "-o", "json") // only the new dead letter
	expect.Equal(t, w.End(topics.RetryOrders), 7, "orders")
	out = w.prints(t, "1970-01-01T00:00:00.011Z  gone ", "", "dead-letters", "list")
	expect.Equal(t, strings.Count(out, "true"), 9, "retried dead letters in %s", out)
	expect.Contains(t, out, "UNREADABLE", "list")
}

// list reads only the end of a large dead-letter topic, even if an earlier record has a later time.
func TestListDeadLetters_ReadsOnlyTheEnd(t *testing.T) {
	w := newWire(t)
	w.SendDeadLetter(topics.Pins, 0, "pin:early", "v", time.Now().Add(time.Hour).UnixMilli())
	end := func() int64 { return w.End(topics.DeadLetters) }
	for begun := end(); end() < begun+4*1000; { // in any partition
		garbage := make([]*kgo.Record, 500)
		for i := range garbage {
			garbage[i] = &kgo.Record{Topic: topics.DeadLetters, Key: []byte(topics.Pins), Value: []byte("?")}
		}
		w.Send(garbage...)
	}
	list, err := ops.ListDeadLetters(t.Context(), w.Kafka, w.Streams, 10)
	if err != nil || len(list) != 10 {
		t.Fatalf("%d dead letters, %v, want 10", len(list), err)
	}
	for _, l := range list {
		expect.False(t, string(l.Key) == "pin:early", "the first of thousands is listed: the topic was read from its beginning")
	}
}

// A dead letter that is too large to be kept is published to its original topic, with the retry header.
func TestRetryDeadLetters_PublishesLongOnes(t *testing.T) {
	w := newWire(t)
	w.SendDeadLetter(topics.Deliveries, 3, "user:a", strings.Repeat("d", topics.MaxRetriedBytes), 10)
	out := w.prints(t, "", "", "dead-letters", "retry")
	expect.True(t, strings.HasPrefix(out, "retried 1 dead letter,"), "%q begins with the number of retries", out)
	rs := w.Records(topics.Deliveries)
	if len(rs) != 1 || rs[0].Partition != 3 || len(rs[0].Value) != topics.MaxRetriedBytes {
		t.Fatalf("%d deliveries, want the bytes in partition 3", len(rs))
	}
	want := topics.Retry{Group: "objects", Partition: 3, Offset: 10, Attempt: 1}
	if got, ok := topics.RetryOf(rs[0]); !ok || got != want {
		t.Errorf("marked as %+v, want %+v", got, want)
	}
}

func TestLimitRetries_OrdersLimits(t *testing.T) {
	w := newWire(t)
	for _, scope := range []string{"nothing/x", "dead-letters"} {
		err := ops.LimitRetries(t.Context(), w.Kafka, w.Streams, schemas.RetryLimit{Scope: scope, Rate: 1}, "ann")
		must.As[*schemas.BadRecordError](t, err)
	}
	want := []schemas.RetryLimit{{Scope: "pins/objects", Priority: 3}, {Scope: "pins", Rate: -1}}
	for _, limit := range want {
		must.OK(t, ops.LimitRetries(t.Context(), w.Kafka, w.Streams, limit, "ann"))
	}
	var got []schemas.RetryLimit
	for _, r := range w.Records(topics.RetryOrders) {
		o := must.Get(w.Streams.RetryOrders.Decode(r.Value))(t)
		expect.Equal(t, string(r.Key), topics.Pins, "key of an order")
		got = append(got, o.Limits...)
	}
	expect.NoDiff(t, got, want, "limits")
}

func TestDeadLetters_OfEmptyTopic(t *testing.T) {
	w := newWire(t)
	expect.Equal(t, w.prints(t, "", "", "dead-letters", "list", "-o", "json"), "[]\n", "list")
	out := w.prints(t, "", "", "dead-letters", "retry")
	expect.True(t, strings.HasPrefix(out, "retried 0 dead letters,"), "%q begins with the number of retries", out)
}
