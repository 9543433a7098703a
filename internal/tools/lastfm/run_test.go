package lastfm_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/errgroup"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/internal/testkit/topicstest"
	"github.com/smartfeed/smartfeed/internal/tools/lastfm"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// commitAll commits all records as every consumer of the catalogue, without processing them.
func commitAll(t *testing.T, k topics.Kafka) {
	ctx, stop := context.WithCancel(context.Background())
	var consumers errgroup.Group
	for _, r := range topics.ReadersOf(topics.Catalogue(topics.Profile{Embedded: true})) {
		consumers.Go(func() error {
			return topics.Consume(ctx, topics.ConsumerConfig{Kafka: k, Group: r.Group, Topics: r.Topics},
				func(context.Context, []*kgo.Record) error { return nil })
		})
	}
	t.Cleanup(func() {
		stop()
		if err := consumers.Wait(); err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}

// importTiny imports the set in testdata.
func importTiny(ctx context.Context, t *testing.T, s topics.Setup, last time.Time) (lastfm.Summary, error) {
	t.Helper()
	set := must.Get(lastfm.Read(os.DirFS("testdata/tiny")))(t)
	return lastfm.Import(ctx, s, set, last)
}

// events returns the number of events on a topic. It checks that each is there twice, with its key and the same value.
func events[T any](t *testing.T, c *topicstest.Cluster, s topics.Stream[T], event func(*T) schemas.Event) int {
	t.Helper()
	times := map[string]int{} // by id and value
	for _, r := range c.Records(s.Name) {
		e := event(must.Get(s.Decode(r.Value))(t))
		expect.Equal(t, e.Key(), string(r.Key), "key of event %s", e.ID)
		times[e.ID+" "+string(r.Value)]++
	}
	for text, n := range times {
		expect.Equal(t, n, 2, "occurrences of %q", text)
	}
	return len(times)
}

func TestImport_IsIdempotent(t *testing.T) {
	c := topicstest.Start(t, 0)
	s := c.Setup()
	commitAll(t, s.Kafka)
	last := time.Now().UTC().Truncate(time.Second)
	for range 2 {
		got := must.Get(importTiny(t.Context(), t, s, last))(t)
		want := lastfm.Counts{Users: 4, Follows: 10, Pins: 5, Actions: 4, Skipped: lastfm.Skipped{Undated: 2, NoPin: 2}}
		if got.Counts != want || !got.LastAction.Equal(last) {
			t.Errorf("summary %+v, want %+v at %s", got, want, last)
		}
		var names []string
		for _, p := range got.Phases {
			names = append(names, p.Name)
			expect.True(t, p.Published > 0 && p.Processed > 0, "phase %+v has durations", p)
		}
		expect.NoDiff(t, names, []string{"users and follows", "pins", "actions"}, "phases")
		var announced bytes.Buffer
		lastfm.Announce(&announced, got.Counts, got.LastAction)
		for _, want := range []string{"importing 4 users, 10 follows, 5 pins, 4 actions", "skipping 2 tag rows", "--last-action 2"} {
			expect.Contains(t, announced.String(), want, "announced")
		}
	}
	got := map[string]int{
		"users":   events(t, c, c.Streams.Users, func(e *schemas.UserEvent) schemas.Event { return e.Event }),
		"follows": events(t, c, c.Streams.Follows, func(e *schemas.FollowEvent) schemas.Event { return e.Event }),
		"pins":    events(t, c, c.Streams.Pins, func(e *schemas.PinEvent) schemas.Event { return e.Event }),
		"actions": events(t, c, c.Streams.Actions, func(e *schemas.ActionEvent) schemas.Event { return e.Event }),
	}
	expect.NoDiff(t, got, map[string]int{"users": 4, "follows": 10, "pins": 5, "actions": 4}, "events in the topics")
}

func TestSummary_ReportsResults(t *testing.T) {
	s := topicstest.Start(t, 0).Setup()
	commitAll(t, s.Kafka)
	asked := int64(0)
	counting := func(context.Context) (topics.Results, error) {
		asked++
		return topics.Results{Deliveries: 100 * asked, Dropped: map[string]int64{"pools: cap": 10 * asked}}, nil
	}
	broken := func(context.Context) (topics.Results, error) { return topics.Results{}, errors.New("no response") }
	for _, c := range []struct {
		name    string
		results func(context.Context) (topics.Results, error)
		want    string
	}{
		{"counted", counting, `"results":{"deliveries":100,"dropped":{"pools: cap":10}}`},
		{"broken", broken, `"no_results":"no response"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := s
			s.Results = c.results
			summary := must.Get(importTiny(t.Context(), t, s, time.Now()))(t)
			expect.Contains(t, string(must.Get(json.Marshal(summary))(t)), c.want, "output")
		})
	}
}

// sayer is a progress display that calls a function with each reported state.
type sayer func(state string)

func (sayer) Add(int)             {}
func (s sayer) Say(state string)  { s(state) }
func (sayer) Done() time.Duration { return time.Second }

// Pins are not published before users and follows have been processed.
func TestImport_WaitsBetweenPhases(t *testing.T) {
	c := topicstest.Start(t, 0)
	s := c.Setup()
	ctx, interrupt := context.WithCancel(t.Context())
	s.Progress = func(string, int) topics.Progress {
		return sayer(func(state string) {
			if strings.Contains(state, "fanout") {
				interrupt()
			}
		})
	}
	_, err := importTiny(ctx, t, s, time.Date(2011, 6, 1, 0, 0, 4, 0, time.UTC))
	for _, want := range []string{"import users and follows: ", "fanout", "--last-action 2011-06-01T00:00:04Z"} {
		expect.Error(t, err, want, "importTiny")
	}
	if follows, pins := c.End(topics.Follows), c.End(topics.Pins); follows == 0 || pins > 0 {
		t.Errorf("%d follows and %d pins were published, want only follows", follows, pins)
	}
}
