// Package stream measures the cost of a realistic product: `make bench-stream` runs it.
//
// It starts `smartfeed dev` with its defaults and publishes the users, follows, pins and actions of a workload, whose size and
// seed are STREAM_SIZE (tiny, small, medium or full; default small) and STREAM_SEED (default 11). After each part it waits until
// everything is processed. Then it requests visits, pages of pools and features. A bare loop of franz-go and Pebble, which
// stores the same events and does nothing else, is the reference of the same run.
//
// STREAM_PARTS selects what is measured after the pins, separated by commas: actions, idle, visits, pools, features; default all.
// STREAM_PROFILES names a directory for CPU profiles of each part, and STREAM_CONFIG holds additional lines of the
// configuration file.
package stream

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/smartfeed/smartfeed/internal/measure"
	"github.com/smartfeed/smartfeed/internal/testkit/child"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/internal/tools/load"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

func TestMain(m *testing.M) {
	child.Run(map[string]child.Role{"smartfeed": serve, "bare": bare})
	m.Run()
}

// run is one run of the benchmark.
type run struct {
	*product
	*workload
	b         *testing.B
	publisher *topics.Publisher
	client    *http.Client
}

func BenchmarkStream(b *testing.B) {
	s, ok := sizes()[cmp.Or(os.Getenv("STREAM_SIZE"), "small")]
	if !ok {
		b.Fatalf("STREAM_SIZE: unknown size %q", os.Getenv("STREAM_SIZE"))
	}
	seed := must.Get(strconv.ParseUint(cmp.Or(os.Getenv("STREAM_SEED"), "11"), 10, 64))(b)
	r := &run{
		b: b, product: startProduct(b), workload: newWorkload(s, seed, time.Now()),
		client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 256, DisableCompression: true}},
	}
	r.publisher = must.Get(load.Open(b.Context(), r.setup))(b)
	defer r.publisher.Close()
	r.wait()
	const fifths = 5
	r.events("users", topics.Users, r.profiles(), 1)
	r.events("follows", topics.Follows, r.follows(), 1)
	r.events("pins", topics.Pins, r.pinEvents(), 1)
	for _, part := range strings.Split(cmp.Or(os.Getenv("STREAM_PARTS"), "actions,idle,visits,pools,features"), ",") {
		switch part {
		case "actions":
			r.events("actions", topics.Actions, r.acts(), fifths)
		case "idle":
			r.idle()
		case "visits":
			r.visits()
		case "pools":
			r.pools()
		case "features":
			r.features()
		default:
			b.Fatalf("STREAM_PARTS: unknown part %q", part)
		}
	}
	b.ReportMetric(r.disk(), "disk-MiB")
	b.ReportMetric(r.peak(), "peak-MiB")
	b.ReportMetric(0, "ns/op")
}

func (r *run) wait() {
	r.b.Helper()
	ctx, cancel := context.WithTimeout(r.b.Context(), 30*time.Minute)
	defer cancel()
	must.OK(r.b, r.setup.Wait(ctx, schemas.MicrosOf(time.Now()), nil))
}

// events publishes events in parts, waits until each part is processed, and reports the cost. The reference is the bare loop over
// the same records.
func (r *run) events(name, topic string, all iter.Seq[schemas.Line], parts int) {
	r.b.Helper()
	defer r.profile(name)()
	next, stop := iter.Pull(all)
	defer stop()
	total := map[string]int{"actions": r.actions, "pins": r.workload.size.pins, "users": r.users, "follows": len(r.edges)}[name]
	cost := make([]float64, 0, parts)
	first := r.used()
	n := 0
	for part := range parts {
		limit := total * (part + 1) / parts
		before, sent := r.used(), n
		must.OK(r.b, load.All(r.b.Context(), r.publisher, func(yield func(schemas.Line) bool) {
			for n < limit || part == parts-1 {
				l, ok := next()
				if !ok || !yield(l) {
					return
				}
				n++
			}
		}, func() {}))
		r.wait()
		after := r.used()
		cost = append(cost, float64((after.cpu-before.cpu).Microseconds())/float64(n-sent))
	}
	last := r.used()
	each := float64((last.cpu - first.cpu).Microseconds()) / float64(n)
	rate := float64(n) / last.at.Sub(first.at).Seconds()
	loop := r.bare(topic, n)
	r.report("%-8s %9d: %8.0f/s %7.1f CPU-µs; bare loop %8.0f/s %5.1f CPU-µs; ratio %.2f of the rate, %.1f times the CPU", name, n, rate, each,
		loop.rate, loop.cpu, rate/loop.rate, each/loop.cpu)
	r.perEvent(first, last, n)
	if parts > 1 {
		r.report("%-8s last part/first part %.2f of CPU: %.1f", "", cost[len(cost)-1]/cost[0], cost)
	}
}

func (r *run) report(format string, args ...any) { fmt.Printf(format+"\n", args...) }

// perEvent reports the rows, records and transactions of one event, by group and in total.
func (r *run) perEvent(before, after used, n int) {
	for _, group := range append(topics.RowGroups(), "") {
		var counts []float64
		for _, metric := range []string{"rows_written", "rows_deleted", "records_emitted", "commits"} {
			counts = append(counts, after.sum("smartfeed_group_"+metric+"_total", group)-before.sum("smartfeed_group_"+metric+"_total", group))
		}
		if slices.Max(counts) > 0.0005*float64(n) {
			r.report("  %-12s rows %7.3f  deleted %7.3f  records %7.3f  transactions %6.3f", cmp.Or(group, "all groups"),
				counts[0]/float64(n), counts[1]/float64(n), counts[2]/float64(n), counts[3]/float64(n))
		}
	}
}

// idle reports the CPU of a product at rest.
func (r *run) idle() {
	const lasting = 20 * time.Second
	time.Sleep(5 * time.Second) // deferred work of the actions
	defer r.profile("idle")()
	before := r.used()
	time.Sleep(lasting)
	r.report("%-8s %.1f %% of a core", "idle", 100*(r.used().cpu-before.cpu).Seconds()/lasting.Seconds())
}

// get requests a path and returns an error unless the answer is 200.
func (r *run) get(ctx context.Context, method, path string, body []byte) error {
	req, err := http.NewRequestWithContext(ctx, method, r.url+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	res, err := r.client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: status %d: %.200s", path, res.StatusCode, text)
	}
	return err
}

// reader returns a reader of the graph; readers with many edges are chosen as often as others.
func (r *run) reader(n int) schemas.UserID {
	rng := rand.New(rand.NewPCG(r.seed, uint64(n)))
	return user(int(r.edges[rng.IntN(len(r.edges))].reader))
}

// atRate sends requests at a constant rate and reports their latency and cost.
func (r *run) atRate(name string, rate float64, lasting time.Duration, do func(ctx context.Context, n int) error) {
	r.b.Helper()
	cfg := measure.Config{Lasting: lasting, Timeout: 10 * time.Second, InFlight: 256}
	stop := r.profile(fmt.Sprint(name, "-", rate))
	before := r.used()
	got := measure.Run(r.b.Context(), cfg, measure.Load{Name: name, Rate: rate, Do: do})[0]
	r.wait()
	after := r.used()
	stop()
	n := max(1, int(got.Answered))
	r.report("%-8s at %4.0f/s: p50 %s, p99 %s, %6.0f CPU-µs, failed %d (%v)", name, rate, got.Latency.Quantile(0.5).Round(10*time.Microsecond),
		got.Latency.Quantile(0.99).Round(10*time.Microsecond), float64((after.cpu-before.cpu).Microseconds())/float64(n), got.Failed, got.Failure)
	r.perEvent(before, after, n)
}

// closed sends requests from clients that each send the next one after an answer, and reports the throughput.
func (r *run) closed(name string, clients int, lasting time.Duration, do func(ctx context.Context, n int) error) {
	r.b.Helper()
	ctx, cancel := context.WithTimeout(r.b.Context(), lasting)
	defer cancel()
	counts, failed := make([]int, clients), make([]error, clients)
	stop := r.profile(name + "-closed")
	before := r.used()
	var running sync.WaitGroup
	for c := range clients {
		running.Go(func() {
			for n := c; ctx.Err() == nil; n += clients {
				if err := do(r.b.Context(), n); err != nil {
					failed[c] = err
				} else {
					counts[c]++
				}
			}
		})
	}
	running.Wait()
	took := time.Since(before.at)
	r.wait()
	after := r.used()
	stop()
	total := 0
	for _, n := range counts {
		total += n
	}
	r.report("%-8s %d clients: %6.0f/s, %6.0f CPU-µs, an error: %v", name, clients, float64(total)/took.Seconds(),
		float64((after.cpu-before.cpu).Microseconds())/float64(max(1, total)), cmp.Or(failed...))
	r.perEvent(before, after, max(1, total))
}

func (r *run) visits() {
	visit := func(from int) func(context.Context, int) error {
		return func(ctx context.Context, n int) error {
			return r.get(ctx, http.MethodGet, "/v1/users/"+string(r.reader(from+n))+"/feed?limit=25", nil)
		}
	}
	r.atRate("visits", 100, 20*time.Second, visit(0))
	r.atRate("visits", 300, 10*time.Second, visit(1e6))
	r.closed("visits", 16, 10*time.Second, visit(2e6))
}

func (r *run) pools() {
	r.closed("pools", 16, 10*time.Second, func(ctx context.Context, n int) error {
		return r.get(ctx, http.MethodGet, "/v1/users/"+string(r.reader(n))+"/pools?source=following&limit=25", nil)
	})
}

func (r *run) features() {
	r.closed("features", 16, 10*time.Second, func(ctx context.Context, n int) error {
		body := fmt.Sprintf(`{"features":["interests_24h","authors_24h","top_interests_96h","last_actions"],"users":[%q]}`, r.reader(n))
		return r.get(ctx, http.MethodPost, "/v1/features", []byte(body))
	})
}
