// Package stream measures the cost of a realistic product: `make bench-stream` and `make bench-stream-kafka` run it.
//
// It starts the product with its defaults: `smartfeed dev`, or on Kafka two `process` and one `serve` with embedded stores. It
// publishes the users, follows, pins and actions of a workload. STREAM_SIZE is its size (tiny, small, medium or full; default
// small), STREAM_FOLLOWERS replaces the mean number of followers, and STREAM_SEED is the seed (default 11). After each part it waits
// until everything is processed. Then it requests visits, pages of pools and features. A bare loop of franz-go and Pebble, which
// stores the same events and does nothing else, is the reference of the same run.
//
// STREAM_PARTS selects what is measured after the pins, separated by commas: actions, idle, visits, pools, features; default all.
// STREAM_PROFILES names a directory for CPU profiles of each part, STREAM_CONFIG holds additional lines of the configuration
// file, and STREAM_BINARY names the program (default: bin/smartfeed). For Kafka, SMARTFEED_TEST_KAFKA is the address of the broker
// that `.ci/services` runs in the directory STREAM_SERVICES. STREAM_PROCESSES=groups then runs each group in its own process instead
// of all groups in two, which shows the CPU of each group.
package stream

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
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
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/internal/tools/load"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

func TestMain(m *testing.M) {
	child.Run(map[string]child.Role{"smartfeed": execute, "bare": bare})
	m.Run()
}

// run is one run of the benchmark.
type run struct {
	*product
	*workload
	b         *testing.B
	bare      *system        // the loop over the last topic
	loop      *child.Process // of bare
	publisher *topics.Publisher
	client    *http.Client
	asked     int // requests so far, rounded up to millions
}

func BenchmarkStream(b *testing.B) {
	s, ok := sizes()[cmp.Or(os.Getenv("STREAM_SIZE"), "small")]
	if !ok {
		b.Fatalf("STREAM_SIZE: unknown size %q", os.Getenv("STREAM_SIZE"))
	}
	seed := must.Get(strconv.ParseUint(cmp.Or(os.Getenv("STREAM_SEED"), "11"), 10, 64))(b)
	s.meanFollowers = must.Get(strconv.Atoi(cmp.Or(os.Getenv("STREAM_FOLLOWERS"), strconv.Itoa(s.meanFollowers))))(b)
	r := &run{
		b: b, product: startProduct(b), workload: newWorkload(s, seed, time.Now()),
		client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 256, DisableCompression: true}},
	}
	r.kafka = must.Get(r.setup.Kafka.Admin())(b)
	defer r.kafka.Close()
	must.Get(r.kafka.CreateTopic(b.Context(), 1, 1, nil, bareVisits))(b)
	r.publisher = must.Get(load.Open(b.Context(), r.setup))(b)
	defer r.publisher.Close()
	r.wait()
	r.events(topics.Users, r.profiles(), r.users, 1)
	r.events(topics.Follows, r.follows(), len(r.edges), 1)
	r.events(topics.Pins, r.pinEvents(), r.workload.pins, 1)
	for _, part := range strings.Split(cmp.Or(os.Getenv("STREAM_PARTS"), "actions,idle,visits,pools,features"), ",") {
		r.part(part)
	}
	expect.Equal(b, r.used(b).sum("dead_letters_total", ""), 0, "records in the dead-letter topic")
	r.printTotals()
	b.ReportMetric(0, "ns/op")
}

// part measures one of STREAM_PARTS.
func (r *run) part(name string) {
	r.b.Helper()
	switch name {
	case "actions":
		r.events(topics.Actions, r.acts(), r.actions, 5)
		r.printTotals()
	case "idle":
		r.idle()
	case "visits":
		r.visits()
	case "pools":
		r.requests("pools, closed loop", r.closed, http.MethodGet, "/v1/users/USER/pools?source=following&limit=25", "")
	case "features":
		r.requests("features, closed loop", r.closed, http.MethodPost, "/v1/features",
			`{"features":["interests_24h","authors_24h","top_interests_96h","last_actions"],"users":["USER"]}`)
	default:
		r.b.Fatalf("STREAM_PARTS: unknown part %q", name)
	}
}

func (r *run) wait() {
	r.b.Helper()
	ctx, cancel := context.WithTimeout(r.b.Context(), 30*time.Minute)
	defer cancel()
	must.OK(r.b, r.setup.Wait(ctx, schemas.MicrosOf(time.Now()), nil))
}

// events publishes about total events to a topic in parts, waits until each part is processed, and prints the costs. The bare loop
// then stores the same events.
func (r *run) events(topic string, all iter.Seq[schemas.Line], total, parts int) {
	r.b.Helper()
	stop := r.profile(topic)
	next, end := iter.Pull(all)
	defer end()
	var costs []figures
	first, n := r.used(r.b), 0
	last := first
	for part := range parts {
		before, sent, limit := last, n, total*(part+1)/parts
		must.OK(r.b, load.All(r.b.Context(), r.publisher, func(yield func(schemas.Line) bool) {
			for n < limit || part == parts-1 { // the last part has all remaining events
				l, ok := next()
				if !ok || !yield(l) {
					return
				}
				n++
			}
		}, func(schemas.Line) {}))
		r.wait()
		last = r.used(r.b)
		costs = append(costs, last.since(before, n-sent))
	}
	stop()
	r.checkProcessed(topic, first, last, n)
	product, deliveries := last.since(first, n), 0
	if topic == topics.Pins {
		deliveries = int(math.Round(product.sum("rows_written_total", topics.Pools)))
	}
	r.print(topic, product, r.startBare(topic, n, deliveries), costs...)
}

// checkProcessed fails the benchmark if the counters do not contain n records of a topic that a group reads.
func (r *run) checkProcessed(topic string, before, after usage, n int) {
	r.b.Helper()
	catalogue := topics.Catalogue(topics.Profile{})
	group := catalogue[slices.IndexFunc(catalogue, func(t topics.Topic) bool { return t.Name == topic })].Readers[0]
	if got := after.sum("records_processed_total", group) - before.sum("records_processed_total", group); got < float64(n) {
		r.b.Errorf("the group %s processed %.0f records, want at least the %d events of %s", group, got, n, topic)
	}
}

// idle prints the CPU of a product at rest.
func (r *run) idle() {
	r.settle()
	defer r.profile("idle")()
	for i, rest := range r.atRest(r.parts, r.lasting) {
		fmt.Printf("%-20s %-12s %.1f %% of a core\n", "idle", r.parts[i].name, 100*rest)
	}
}

// settle waits until the product's CPU time no longer decreases. Otherwise, the compaction of earlier events would count for the
// requests that follow.
func (r *run) settle() {
	for last, busy := math.Inf(1), 0.0; ; last = busy {
		busy = 0
		for _, rest := range r.atRest(r.parts, r.lasting/4) {
			busy += rest
		}
		if busy >= 0.9*last {
			return
		}
	}
}

func (r *run) visits() {
	for _, rate := range r.rates {
		r.visit(fmt.Sprintf("visits at %.0f/s", rate), func(do request) measure.Result {
			cfg := measure.Config{Lasting: r.lasting, Timeout: 10 * time.Second, InFlight: 256}
			return measure.Run(r.b.Context(), cfg, measure.Load{Rate: rate, Do: do})[0]
		})
	}
	r.visit("visits, closed loop", r.closed)
}

// visit gives each reader new candidates, because a visit without any costs little, and requests visits.
func (r *run) visit(title string, send func(request) measure.Result) {
	r.b.Helper()
	must.OK(r.b, load.All(r.b.Context(), r.publisher, r.offers(uint64(r.asked)), func(schemas.Line) {}))
	r.wait()
	expect.AtLeast(r.b, r.requests(title, send, http.MethodGet, "/v1/users/USER/feed?limit=25", "").items, 5, "%s: new items per visit", title)
}

// requests sends requests of users to the product and to the bare loop, prints the costs, and returns those of the product. USER in
// path and body stands for the user.
func (r *run) requests(title string, send func(request) measure.Result, method, path, body string) figures {
	r.b.Helper()
	r.asked += 1e6 // other users than before
	r.settle()
	measured := func(s *system) figures {
		defer s.profile(strings.ReplaceAll(title, " ", "-"))()
		var mu sync.Mutex
		before, items, outcomes := s.used(r.b), 0, map[string]int{}
		got := send(func(ctx context.Context, n int) error {
			insert := strings.NewReplacer("USER", string(r.reader(r.asked+n)))
			answer, err := r.get(ctx, method, s.url+insert.Replace(path), insert.Replace(body))
			mu.Lock()
			defer mu.Unlock()
			items += bytes.Count(answer, []byte(`"new":true`))
			outcomes[cmp.Or(err, errComplete).Error()]++
			return err
		})
		r.wait()
		f := s.used(r.b).since(before, int(got.Answered))
		f.rate, f.latency, f.items, f.outcomes = got.Done, got.Latency, float64(items)/float64(f.n), outcomes
		return f
	}
	product := measured(&r.system)
	r.bare.rest = append([]float64{0}, r.atRest(r.broker(), r.lasting/4)...)
	r.print(title, product, measured(r.bare))
	for outcome := range product.outcomes {
		if !slices.Contains([]string{errComplete.Error(), errRefused.Error(), measure.ErrDegraded.Error()}, outcome) {
			r.b.Errorf("%s: %s", title, outcome)
		}
	}
	return product
}

// reader returns a random reader.
func (r *run) reader(n int) schemas.UserID {
	return user(rand.New(rand.NewPCG(r.seed, uint64(n))).IntN(r.readers()))
}

var (
	errRefused  = errors.New("refused")  // the server was at capacity
	errComplete = errors.New("complete") // counts answers without an error
)

// get sends a request and returns the answer. It returns an error unless the status is 200, and measure.ErrDegraded for a degraded
// answer.
func (r *run) get(ctx context.Context, method, url, body string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	res, err := r.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	switch {
	case err != nil:
		return nil, err
	case res.StatusCode == http.StatusServiceUnavailable, res.StatusCode == http.StatusTooManyRequests:
		return nil, errRefused
	case res.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("%s: status %d: %.200s", url, res.StatusCode, answer)
	case bytes.Contains(answer, []byte(`"degraded":["`)):
		return answer, measure.ErrDegraded
	}
	return answer, nil
}

// request sends request n.
type request = func(ctx context.Context, n int) error

// closed sends requests from 16 clients that each send the next one after an answer.
func (r *run) closed(do request) measure.Result {
	const clients, backoff = 16, 10 * time.Millisecond // shorter than Retry-After, so the server stays at its capacity
	ctx, cancel := context.WithTimeout(r.b.Context(), r.lasting)
	defer cancel()
	began, got := time.Now(), measure.Result{Latency: new(measure.Histogram)}
	var running sync.WaitGroup
	for c := range clients {
		running.Go(func() {
			for n := c; ctx.Err() == nil; n += clients {
				sent := time.Now()
				if err := do(r.b.Context(), n); err == nil || errors.Is(err, measure.ErrDegraded) {
					got.Latency.Add(time.Since(sent))
				} else {
					time.Sleep(backoff)
				}
			}
		})
	}
	running.Wait()
	got.Answered = got.Latency.Count()
	got.Done = float64(got.Answered) / time.Since(began).Seconds()
	return got
}
