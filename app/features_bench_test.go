package app

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/smartfeed/smartfeed/internal/measure"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/serving/feature"
	"github.com/smartfeed/smartfeed/topics"
)

// Benchmarks of features on one machine, with the broker, the groups, the server and its clients in one process. `make
// bench-features` runs them and the benchmarks of the store.

const (
	benchUsers   = 500
	benchActions = 200 // of each user
	benchPins    = 1000
)

// benchProduct is a process with users who have acted.
type benchProduct struct {
	*started
	b      testing.TB
	client *http.Client
	events atomic.Int64

	refused atomic.Int64 // rejected requests since the last report
	failed  sync.Once    // reports only the first unexpected response
}

func startBench(b *testing.B) *benchProduct {
	b.Helper()
	s := launch(b, testConfig(b.TempDir()), slog.New(slog.DiscardHandler), everything())
	must.OK(b, s.Ready(b.Context()))
	// The client requests no gzip, like a client in the same data center.
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64, DisableCompression: true}}
	return &benchProduct{started: s, b: b, client: client}
}

func (p *benchProduct) pin(i int) schemas.Line {
	embedding := make([]float32, 16)
	for j := range embedding {
		embedding[j] = float32(i+j) / 16
	}
	e := &schemas.PinEvent{
		Event:     p.event("user:author", schemas.Create, fmt.Sprint("pin:", i), time.Now().Add(-time.Hour)),
		Interests: []schemas.InterestID{schemas.InterestID(fmt.Sprint("interest:", i%20)), "interest:all"},
		Embedding: embedding, Attributes: map[string]string{"price": fmt.Sprint(i % 90)},
	}
	return schemas.NewLine(e)
}

func (p *benchProduct) action(user schemas.UserID, i int, at time.Time) schemas.Line {
	verbs := []schemas.Verb{schemas.View, schemas.Closeup, schemas.Click, schemas.Save}
	e := &schemas.ActionEvent{
		Event:   p.event(user, verbs[i%len(verbs)], fmt.Sprint("pin:", (i*7)%benchPins), at),
		Surface: "home", Attributes: map[string]string{"device": "ios"},
	}
	return schemas.NewLine(e)
}

func (p *benchProduct) event(actor schemas.UserID, verb schemas.Verb, object string, at time.Time) schemas.Event {
	return schemas.Event{ID: fmt.Sprint("bench-", p.events.Add(1)), Time: schemas.MicrosOf(at), Actor: actor, Verb: verb, Object: schemas.ID(object)}
}

// publish publishes events, and returns the time until all of them were processed, including features.
func (p *benchProduct) publish(lines []schemas.Line) time.Duration {
	p.b.Helper()
	start := time.Now()
	must.OK(p.b, p.publisher.Publish(p.b.Context(), lines))
	recording := slices.DeleteFunc(topics.ReadersOf(topics.Catalogue(topics.Profile{Embedded: true})), func(r topics.Reader) bool {
		return r.Group != topics.Objects && r.Group != topics.Actors && r.Group != topics.Features
	})
	must.OK(p.b, topics.Wait(p.b.Context(), p.kafka, schemas.MicrosOf(time.Now()), nil, recording...))
	took := time.Since(start)
	must.OK(p.b, topics.Wait(p.b.Context(), p.kafka, schemas.MicrosOf(time.Now()), nil))
	return took
}

// ask posts to /v1/features and returns the time until the whole response arrived. On a busy machine, a burst can exceed
// the limit of requests in flight; ask counts rejected requests and returns no response for them.
func (p *benchProduct) ask(body []byte) (took time.Duration, answer []byte) {
	start := time.Now()
	res, err := p.client.Post("http://"+p.server.Addr()+"/v1/features", "application/json", bytes.NewReader(body))
	if err != nil {
		p.failed.Do(func() { p.b.Error(err) })
		return 0, nil
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if res.StatusCode == http.StatusServiceUnavailable {
		p.refused.Add(1)
		return time.Since(start), nil
	}
	if err != nil || res.StatusCode != http.StatusOK || !bytes.Contains(text, []byte(`"degraded":[]`)) {
		p.failed.Do(func() { p.b.Errorf("%d %.300s %v", res.StatusCode, text, err) })
	}
	return time.Since(start), text
}

func request(b testing.TB, req feature.Request) []byte {
	b.Helper()
	return must.Get(json.Marshal(req))(b)
}

// atRate sends requests at a rate per second for some seconds, independent of earlier responses, and reports the
// latencies.
func (p *benchProduct) atRate(b *testing.B, rate float64, lasting time.Duration, body func(i int) []byte) {
	b.Helper()
	results := measure.Run(b.Context(), measure.Config{Lasting: lasting, Timeout: time.Minute, InFlight: 1 << 14}, measure.Load{
		Name: b.Name(), Rate: rate, Do: func(_ context.Context, i int) error {
			if _, answer := p.ask(body(i)); answer == nil {
				return errors.New("refused")
			}
			return nil
		},
	})
	p.report(b, results[0].Latency)
}

// usedCPU returns the CPU time of the process. Other programs affect it less than elapsed time.
func usedCPU(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	must.OK(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func (p *benchProduct) report(b *testing.B, took *measure.Histogram) {
	b.ReportMetric(float64(p.refused.Swap(0)), "refused")
	b.ReportMetric(milliseconds(took.Quantile(0.5)), "p50-ms")
	b.ReportMetric(milliseconds(took.Quantile(0.99)), "p99-ms")
	b.ReportMetric(0, "ns/op") // hide the time of the whole run
}

func BenchmarkFeatures(b *testing.B) {
	p := startBench(b)
	lines := make([]schemas.Line, 0, benchPins)
	for i := range benchPins {
		lines = append(lines, p.pin(i))
	}
	p.publish(lines)
	now := time.Now()
	lines = lines[:0]
	for u := range benchUsers {
		for i := range benchActions {
			lines = append(lines, p.action(schemas.UserID(fmt.Sprint("user:", u)), u+i, now.Add(-time.Duration(i)*7*time.Minute)))
		}
	}
	began := usedCPU(b)
	recorded := p.publish(lines)
	used := usedCPU(b) - began
	b.Run("recording, to the last feature", func(b *testing.B) {
		b.ReportMetric(float64(len(lines))/recorded.Seconds(), "actions/s")
		b.ReportMetric(used.Seconds()/float64(len(lines))*1e6, "CPU-s/M") // includes all groups and sinks
		b.ReportMetric(0, "ns/op")
	})
	ten := []string{"interests_24h", "authors_24h", "top_interests_96h", "verbs_1h", "actions_per_hour_24h", "pins_24h", "last_actions", "last_hides", "taste_24h", "taste_6h"}
	ofUser := func(i int) []byte {
		return request(b, feature.Request{Features: ten, Users: []schemas.UserID{schemas.UserID(fmt.Sprint("user:", i%benchUsers))}})
	}
	b.Run("ten features of a user, 3000 per second", func(b *testing.B) { p.atRate(b, 3000, 3*time.Second, ofUser) })
	b.Run("ten features of a user, 8 clients", func(b *testing.B) { p.capacity(b, ofUser) })
	b.Run("one feature of a user, 8 clients", func(b *testing.B) {
		p.capacity(b, func(i int) []byte {
			return request(b, feature.Request{Features: ten[:1], Users: []schemas.UserID{schemas.UserID(fmt.Sprint("user:", i%benchUsers))}})
		})
	})
	pins := make([]schemas.PinID, benchPins)
	for i := range pins {
		pins[i] = schemas.PinID(fmt.Sprint("pin:", i))
	}
	ofPins := request(b, feature.Request{Features: []string{"pin_actions_24h", "pin_saves_per_hour_1h", "pin_save_share_24h", "pin_actors_24h"}, Pins: pins})
	b.Run("four features of 1000 candidates, 5 per second", func(b *testing.B) {
		p.atRate(b, 5, 10*time.Second, func(int) []byte { return ofPins })
	})
	b.Run("action to feature, at 1000 actions per second", func(b *testing.B) { p.freshness(b) })
}

// capacity sends requests as fast as eight clients can, for some seconds.
func (p *benchProduct) capacity(b *testing.B, body func(i int) []byte) {
	const clients, lasts = 8, 3 * time.Second
	bodies := make([][]byte, benchUsers)
	for i := range bodies {
		bodies[i] = body(i)
	}
	var asked atomic.Int64
	var asking sync.WaitGroup
	end := time.Now().Add(lasts)
	for c := range clients {
		asking.Go(func() {
			for i := c; time.Now().Before(end); i += clients {
				if _, answer := p.ask(bodies[i%len(bodies)]); answer != nil {
					asked.Add(1)
				}
			}
		})
	}
	asking.Wait()
	b.ReportMetric(float64(p.refused.Swap(0)), "refused")
	b.ReportMetric(float64(asked.Load())/lasts.Seconds(), "answers/s")
	b.ReportMetric(0, "ns/op")
}

// freshness publishes at a rate, and measures for some actions the time until a feature of their user includes them.
func (p *benchProduct) freshness(b *testing.B) {
	const rate, lasts, probes = 1000, 4, 200
	stop := make(chan struct{})
	var load sync.WaitGroup
	load.Go(func() {
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			case <-tick.C:
			}
			for j := range rate / 100 {
				p.publisher.Send(b.Context(), p.action(schemas.UserID(fmt.Sprint("user:load-", i%50)), i+j, time.Now()), func(error) {})
			}
		}
	})
	var took measure.Histogram
	for i := range probes {
		user := schemas.UserID(fmt.Sprint("user:probe-", i))
		body := request(b, feature.Request{Features: []string{"verbs_1h"}, Users: []schemas.UserID{user}})
		start := time.Now()
		must.OK(b, p.publisher.Publish(b.Context(), []schemas.Line{p.action(user, i, start)}))
		for {
			if _, answer := p.ask(body); answer != nil && !bytes.Contains(answer, []byte(`"verbs_1h":{}`)) {
				break
			}
			time.Sleep(500 * time.Microsecond)
		}
		took.Add(time.Since(start))
		time.Sleep(time.Until(start.Add(lasts * time.Second / probes)))
	}
	close(stop)
	load.Wait()
	p.report(b, &took)
}
