package rows_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kgo"

	build "github.com/smartfeed/smartfeed/internal/ops/generations"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/metricstest"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/internal/testkit/proctest"
	"github.com/smartfeed/smartfeed/internal/testkit/topicstest"
	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
	"github.com/smartfeed/smartfeed/topics/generation"
)

// counting returns a group that counts the records of each key and emits each count.
func counting(w *proctest.Wire, generation int) rows.Group {
	return rows.Group{
		Name: topics.Pools, Generation: generation,
		Inputs: []rows.Input{
			rows.Keyed(w.Streams.UserActivity, func(tx *rows.Tx, _ *schemas.UserActivity) error {
				n := rows.AddNumber(tx.Own(), []byte("n"), 1)
				tx.Emit(topics.Impressions, tx.Key(), fmt.Append(nil, n))
				return nil
			}),
		},
		Outputs: []string{topics.Impressions},
	}
}

// generations is a wire that runs both generations of the counting group.
type generations struct {
	*proctest.Wire
	t         *testing.T
	published int
}

const keys = 7

// publish publishes a record of each key, and one that cannot be decoded.
func (g *generations) publish(rounds int) {
	for range rounds {
		for n := range keys {
			key := fmt.Sprint("user:", n)
			proctest.Publish(g.Wire, g.Streams.UserActivity, key, &schemas.UserActivity{User: schemas.UserID(key)})
		}
		g.PublishBytes(topics.UserActivity, "user:0", []byte("not decodable"))
		g.published++
	}
}

// cuttingOver returns the second generation during its cut-over.
func cuttingOver() generation.Record {
	return generation.Record{Group: topics.Pools, Active: 1, Building: 2, CuttingOver: true, Token: "secret"}
}

// set publishes the state of the generations. WaitIdle then waits for them.
func (g *generations) set(now generation.Record) {
	g.t.Helper()
	must.OK(g.t, topics.SetGeneration(g.t.Context(), g.Client(), now))
}

// emitted returns how often each count of each key was emitted.
func (g *generations) emitted() map[string]int {
	emitted := map[string]int{}
	for _, r := range g.Records(topics.Impressions) {
		emitted[string(r.Key)+" "+string(r.Value)]++
	}
	return emitted
}

// One generation emits each count, and both generations have the same rows, even if members are killed.
func TestGenerations_OneEmitsForEachRecord(t *testing.T) {
	emittedOnceAcrossGenerations(t, proctest.New(t))
}

func emittedOnceAcrossGenerations(t *testing.T, w *proctest.Wire) {
	g := &generations{Wire: w, t: t}
	first := g.Start("a", counting(g.Wire, 1))
	g.publish(20)
	g.WaitIdle()
	g.CreateTopics(topics.TableOf("pools.2"))
	g.publish(10) // some of the records are in flight
	copied, err := build.Copy(t.Context(), topics.Setup{Kafka: g.Kafka}, 1, 2, func(_, _, _ []byte) bool { return true })
	if err != nil || copied.Rows == 0 || len(copied.Offsets) != int(g.Kafka.Partitions) {
		t.Fatalf("copied %+v, %v", copied, err)
	}
	g.set(generation.Record{Group: topics.Pools, Active: 1, Building: 2, Token: "secret"})
	second := g.Start("b", counting(g.Wire, 2))
	g.publish(20)
	first.Kill()
	second.Kill()
	first.Restart()
	second.Restart()
	g.forge(generation.Mark{Group: topics.Pools, Number: 2, Token: "guess"})
	g.set(cuttingOver())
	for range 2 { // a restarted command sends the marks again
		must.OK(t, topics.WriteMarks(t.Context(), g.Kafka, []string{topics.UserActivity}, cuttingOver()))
		g.publish(10)
	}
	first.Kill()
	second.Kill()
	second.Restart()
	first.Restart()
	g.publish(10)
	g.WaitIdle()

	want := map[string]int{}
	for n := range keys {
		for count := range g.published {
			want[fmt.Sprintf("user:%d %d", n, count+1)] = 1
		}
	}
	expect.NoDiff(t, g.emitted(), want, "counts")
	expect.Equal(t, len(proctest.Drain(g.Wire, g.Streams.DeadLetters)), g.published, "dead letters of bad records")
	expect.NoDiff(t, g.Rows("pools.2", ""), g.Rows(topics.Pools, ""), "rows (-first +second)")
}

// forge writes a mark to each partition of the input.
func (g *generations) forge(mark generation.Mark) {
	g.t.Helper()
	g.produce(func(int32) *kgo.Record {
		return &kgo.Record{Headers: []kgo.RecordHeader{{Key: generation.MarkHeader, Value: mark.Value()}}}
	})
}

// produce writes a record to each partition of the input.
func (g *generations) produce(of func(partition int32) *kgo.Record) {
	g.t.Helper()
	client := g.Client(kgo.RecordPartitioner(kgo.ManualPartitioner()))
	for p := range g.Kafka.Partitions {
		r := of(p)
		r.Topic, r.Partition = topics.UserActivity, p
		must.OK(g.t, client.ProduceSync(g.t.Context(), r).FirstErr())
	}
}

// A mark that does not belong to the cut-over in progress has no effect and is counted.
func TestCutOver_ForgedMarkIsDroppedAndCounted(t *testing.T) {
	t.Parallel()
	mark := func(number int, token string) generation.Mark {
		return generation.Mark{Group: topics.Pools, Number: number, Token: token}
	}
	for name, c := range map[string]struct {
		now  generation.Record
		mark generation.Mark
	}{
		"no cut-over":                 {generation.Record{Group: topics.Pools, Active: 1}, mark(2, "")},
		"a generation is being built": {generation.Record{Group: topics.Pools, Active: 1, Building: 2, Token: "secret"}, mark(2, "secret")},
		"another token":               {cuttingOver(), mark(2, "guess")},
		"no token":                    {cuttingOver(), mark(2, "")},
		"another generation":          {cuttingOver(), mark(3, "secret")},
		"another group":               {cuttingOver(), generation.Mark{Group: topics.Fanout, Number: 2, Token: "secret"}},
		"the cut-over is complete":    {generation.Record{Group: topics.Pools, Active: 2}, mark(2, "secret")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := &generations{Wire: proctest.New(t), t: t}
			g.set(c.now)
			g.forge(c.mark)
			g.publish(1)
			r, _ := (&watched{g, prometheus.NewRegistry()}).run(1)
			want := int64(g.Kafka.Partitions) + keys + 1
			g.Eventually("all records are applied", func() bool { return r.Status().Counters.Records == want })
			expect.Equal(t, len(g.emitted()), keys, "counts emitted")
			expect.Equal(t, r.Status().Dropped["cut_over_mark"], int64(g.Kafka.Partitions), "marks counted")
		})
	}
}

// A record with content is processed in spite of its headers, even during a cut-over.
func TestCutOver_RecordWithContentIsNotAMark(t *testing.T) {
	t.Parallel()
	g := &generations{Wire: proctest.New(t), t: t}
	g.set(cuttingOver())
	header := kgo.RecordHeader{Key: generation.MarkHeader, Value: generation.Mark{Group: topics.Pools, Number: 2, Token: "secret"}.Value()}
	g.produce(func(p int32) *kgo.Record {
		key := topicstest.KeysIn("user:", p, g.Kafka.Partitions, 1)[0]
		value := must.Get(g.Streams.UserActivity.Encode(&schemas.UserActivity{User: schemas.UserID(key)}))(t)
		return &kgo.Record{Key: []byte(key), Value: value, Headers: []kgo.RecordHeader{header}}
	})
	r, _ := (&watched{g, prometheus.NewRegistry()}).run(1)
	want := int(g.Kafka.Partitions)
	g.Eventually("all records are applied", func() bool { return r.Status().Counters.Records == int64(want) })
	expect.Equal(t, len(g.emitted()), want, "counts emitted")
}

// watched is a wire whose generations share one metrics registry, like those of a process.
type watched struct {
	*generations
	metrics *prometheus.Registry
}

// run runs a generation until the test ends or stop is called.
func (g *watched) run(generation int) (r *rows.Runner, stop func()) {
	g.t.Helper()
	cfg := rows.DefaultConfig()
	cfg.Dir, cfg.SessionTimeout, cfg.FetchMaxWait, cfg.MinFreeDiskBytes = g.t.TempDir(), 15*time.Second, 50*time.Millisecond, 0
	r = must.Get(rows.New(cfg, rows.Env{Kafka: g.Kafka, Streams: g.Streams, Metrics: g.metrics}, counting(g.Wire, generation)))(g.t)
	run := topicstest.Run(g.t, r.Run)
	stop = func() { expect.Error(g.t, run(), "", "end of the runner") }
	g.t.Cleanup(stop)
	return r, stop
}

// of returns a metric of the pools group: the value of a gauge, or the number of observations of a histogram.
func (g *watched) of(name string) float64 {
	g.t.Helper()
	values := metricstest.Values(g.t, g.metrics, "smartfeed_group_"+name)
	must.Equal(g.t, len(values), 1, "groups with %s, %v", name, values)
	return values["pools"]
}

// observed returns the number of observations of each latency histogram.
func (g *watched) observed() map[string]float64 {
	g.t.Helper()
	found := map[string]float64{}
	for _, name := range []string{"commit_duration_seconds", "processing_latency_seconds", "end_to_end_latency_seconds"} {
		found[name] = g.of(name)
	}
	return found
}

// While a generation is built, and after its cut-over, each partition counts as owned once. Records of a silent
// generation are not observed as latency.
func TestGenerations_OneIsInMetrics(t *testing.T) {
	w := proctest.New(t)
	g := &watched{&generations{Wire: w, t: t}, prometheus.NewRegistry()}
	partitions := float64(w.Kafka.Partitions)
	applied := func(r *rows.Runner, records int64) {
		t.Helper()
		w.Eventually("all records are applied", func() bool { return r.Status().Counters.Records == records })
	}
	owned := func(when string, want float64) {
		t.Helper()
		expect.Equal(t, g.of("partitions_owned"), want, "%s: partitions owned", when)
	}
	first, end := g.run(1)
	w.Eventually("the first is ready", func() bool { return first.Status().Ready })
	owned("alone", partitions)
	g.publish(20)
	records := int64(g.published * (keys + 1))
	applied(first, records)
	before := g.observed()
	expect.True(t, before["processing_latency_seconds"] > 0, "a latency of the emitting generation was observed")

	g.CreateTopics(topics.TableOf("pools.2"))
	second, endSecond := g.run(2)
	applied(second, records)
	owned("second generation silent", partitions)
	expect.NoDiff(t, g.observed(), before, "latencies of the silent generation were observed (-before +after)")

	g.set(cuttingOver())
	must.OK(t, topics.WriteMarks(t.Context(), w.Kafka, []string{topics.UserActivity}, cuttingOver()))
	records += int64(partitions) // the marks
	applied(first, records)
	applied(second, records)
	owned("after the cut-over", partitions)
	before = g.observed()
	commits := second.Status().Counters.Commits
	g.publish(10)
	records += 10 * (keys + 1)
	applied(first, records)
	applied(second, records)
	for name, n := range g.observed() {
		if got, want := n-before[name], float64(second.Status().Counters.Commits-commits); got != want || want == 0 {
			t.Errorf("%s: %v more observations, want %v: one for each transaction of the second generation", name, got, want)
		}
	}
	end()
	owned("first generation stopped", partitions)
	endSecond()
	owned("without both", 0)
}

// On a topic that groups write, a retry for another group is skipped. On a topic that producers write, it is an ordinary
// record, because any producer can set the header.
func TestRetry_IsProcessedByItsGroup(t *testing.T) {
	t.Parallel()
	w := proctest.New(t)
	g := rows.Group{
		Name: topics.Pools,
		Inputs: []rows.Input{
			rows.Keyed(w.Streams.UserActivity, func(tx *rows.Tx, _ *schemas.UserActivity) error { tx.Effect("returns", 1); return nil }),
			rows.Keyed(w.Streams.Candidates, func(tx *rows.Tx, _ *schemas.Offer) error { tx.Effect("candidates", 1); return nil }),
		},
	}
	retryFor := func(group string) []kgo.RecordHeader {
		return []kgo.RecordHeader{{Key: topics.RetryHeader, Value: topics.Retry{Group: group, Attempt: 1}.Value()}}
	}
	for topic, value := range map[string][]byte{
		topics.UserActivity: must.Get(w.Streams.UserActivity.Encode(&schemas.UserActivity{User: "user:1"}))(t),
		topics.Candidates:   must.Get(w.Streams.Candidates.Encode(&schemas.Offer{User: "user:1"}))(t),
	} {
		for _, headers := range [][]kgo.RecordHeader{nil, retryFor(topics.Objects), retryFor(topics.Pools)} {
			w.Send(&kgo.Record{Topic: topic, Key: []byte("user:1"), Value: value, Headers: headers})
		}
	}
	m := w.Start("a", g)
	w.WaitIdle()
	want := map[string]int64{"returns": 2, "candidates": 3}
	expect.NoDiff(t, m.Status(topics.Pools).Effects, want, "records processed")
}

func TestRealKafkaGenerations(t *testing.T) {
	w := proctest.NewReal(t, topics.UserActivity, topics.Impressions, topics.Generations, topics.DeadLetters, topics.TableOf(topics.Pools))
	w.Forget(topics.TableOf("pools.2"))
	emittedOnceAcrossGenerations(t, w)
}
