package feed

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
	"github.com/smartfeed/smartfeed/topics/embedded"
)

// fakeActivity records the announced users.
type fakeActivity struct {
	mu        sync.Mutex
	fault     fault
	announced []schemas.UserActivity
}

func (l *fakeActivity) Announce(ctx context.Context, r *schemas.UserActivity) error {
	err := l.fault.strike(ctx)
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil {
		l.announced = append(l.announced, *r)
	}
	return err
}

// awayGenerator returns its chunk only after the user's return is announced.
type awayGenerator struct{ *fakeGenerator }

func (g awayGenerator) Chunk(ctx context.Context, r schemas.ChunkRequest) (*schemas.Chunk, error) {
	chunk, err := g.fakeGenerator.Chunk(ctx, r)
	if err == nil && !r.Announced {
		chunk.Served.Items, chunk.Inactive = nil, true
	}
	return chunk, err
}

func counted(t *testing.T, c prometheus.Counter) float64 {
	t.Helper()
	var m dto.Metric
	if err := c.Write(&m); err != nil {
		t.Fatal(err)
	}
	return m.GetCounter().GetValue()
}

func TestReturnIsAnnouncedBeforeTheChunk(t *testing.T) {
	for name, c := range map[string]struct {
		delay       time.Duration
		err         error
		announced   int
		unannounced float64
	}{
		"announced":              {announced: 1},
		"the log refuses":        {err: errFake, unannounced: 1},
		"the log is slow, a bit": {delay: 100 * ms, announced: 1},
		"nobody takes an answer": {},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, activity := stocked(t), &fakeActivity{}
				activity.fault.delay, activity.fault.err = c.delay, c.err
				r.deps.Generator = awayGenerator{r.gen}
				want := "*a *b *c f10"
				if name == "nobody takes an answer" {
					want = "f10 f9 f8 f7" // a deployment without inactive users would not see this chunk
				} else {
					r.deps.Activity = activity
				}
				page, err := r.Visit(t.Context(), viewer, "home", 4)
				if err != nil {
					t.Fatal(err)
				}
				same(t, "items", names(page.Items), want)
				same(t, "announced", len(activity.announced), c.announced)
				same(t, "unannounced", counted(t, r.metrics.unannounced), c.unannounced)
			})
		})
	}
}

func TestVisitWithoutItemsIsAnnouncedWhenItIsTime(t *testing.T) {
	for name, c := range map[string]struct {
		announce bool
		items    bool
		delay    time.Duration
		want     int
		failed   float64
	}{
		"time":                      {announce: true, want: 1},
		"not time":                  {},
		"its Served says as much":   {announce: true, items: true},
		"the log hangs":             {announce: true, delay: time.Hour, failed: 1},
		"the log is slower than us": {announce: true, delay: 300 * ms, want: 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, activity := stocked(t), &fakeActivity{}
				activity.fault.delay = c.delay
				r.deps.Activity, r.gen.chunk.Announce = activity, c.announce
				if !c.items {
					r.gen.chunk.Served.Items = nil
				}
				start := time.Now()
				if _, err := r.Visit(t.Context(), viewer, "home", 4); err != nil {
					t.Fatal(err)
				}
				if took := time.Since(start); took > 0 {
					t.Errorf("the answer waited %s", took)
				}
				if err := r.Close(t.Context()); err != nil {
					t.Fatal(err)
				}
				same(t, "announced", len(activity.announced), c.want)
				same(t, "unannounced", counted(t, r.metrics.unannounced), c.failed)
				if c.want > 0 {
					same(t, "who", activity.announced[0].User, viewer)
				}
			})
		})
	}
}

// TestReturnTopic uses a real broker and stops it at the end.
func TestReturnTopic(t *testing.T) {
	cfg := embedded.DefaultConfig()
	cfg.Dir, cfg.Kafka, cfg.Registry = t.TempDir(), "127.0.0.1:0", "127.0.0.1:0"
	server, err := embedded.Start(t.Context(), cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	closeServer := sync.OnceValue(server.Close)
	defer func() { _ = closeServer() }()
	kafka, streams := provision(t, server)
	client, err := kafka.Client()
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	log := NewActivityTopic(client, streams)
	want := schemas.UserActivity{User: viewer, Time: 5}
	if err := log.Announce(t.Context(), &want); err != nil {
		t.Fatal(err)
	}
	record := first(t, kafka, topics.UserActivity)
	got, err := streams.UserActivity.Decode(record.Value)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "announced", *got, want)
	same(t, "key", string(record.Key), string(viewer))
	if err := closeServer(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := log.Announce(ctx, &want); err == nil {
		t.Error("announced to brokers that are gone")
	}
}
