package peers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp/cmpopts"
	"go.uber.org/goleak"

	"github.com/smartfeed/smartfeed/internal/testkit/eventually"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

const user = schemas.UserID("user:7")

// fakeGenerator is the generator of one process.
type fakeGenerator struct {
	name    string
	calls   atomic.Int64
	err     error         // of every call
	hang    chan struct{} // calls wait until it is closed, or until they end; nil: they do not
	settled chan settlement
	fakeRows
}

func (g *fakeGenerator) answer(ctx context.Context) error {
	g.calls.Add(1)
	if g.hang != nil {
		select {
		case <-g.hang:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return g.err
}

func (g *fakeGenerator) Chunk(ctx context.Context, r schemas.ChunkRequest) (*schemas.Chunk, error) {
	if err := g.answer(ctx); err != nil {
		return nil, err
	}
	item := schemas.ServedItem{Pin: "pin:1", Source: schemas.Following, RankScore: 1.0 / 3, Created: 5,
		Facets: schemas.Facets{Author: "user:8", Interests: []schemas.InterestID{"interest:tea"}}}
	return &schemas.Chunk{
		Served: schemas.Served{ID: r.Served, User: r.User, Time: r.Time, Feed: r.Feed, Items: []schemas.ServedItem{item},
			Memory: schemas.Memory{Mix: map[string]float64{g.name: 0.1}}},
		Head: 9,
		ReadRecent: func(context.Context) ([]schemas.FeedEntry, error) {
			return []schemas.FeedEntry{{User: r.User, Position: 9, Time: 4, ServedItem: item}}, nil
		},
	}, nil
}

func (g *fakeGenerator) Settle(user schemas.UserID, served string, o schemas.Outcome) {
	g.settled <- settlement{user, served, o}
}

func (g *fakeGenerator) Waiting(ctx context.Context, _ schemas.UserID) (int, error) {
	return 17, g.answer(ctx)
}

func (g *fakeGenerator) Pool(ctx context.Context, _ schemas.UserID, source schemas.Source, limit int) (*schemas.Pool, error) {
	return &schemas.Pool{Source: source, Total: limit, Items: []schemas.PoolItem{{Pin: "pin:1", PoolScore: -2.5}}}, g.answer(ctx)
}

func (g *fakeGenerator) Why(ctx context.Context, r schemas.WhyRequest) (*schemas.Why, error) {
	return &schemas.Why{Fate: schemas.FateNext, Place: r.Limit, By: []schemas.ID{schemas.ID(r.Card.Title)}}, g.answer(ctx)
}

func (g *fakeGenerator) FeedState(ctx context.Context, user schemas.UserID, feed string) (*schemas.FeedState, error) {
	return &schemas.FeedState{Feed: feed, Deferred: []schemas.DeferredCandidate{{Pin: "pin:1", Reason: schemas.ReasonWeak}},
		Affinities: []schemas.Affinity{{Facet: schemas.ID(user), Value: 0.1}}}, g.answer(ctx)
}

// fakeRows has neighbors, dead letters, terms and interests of everything, and rows of the group actors only for user:7.
type fakeRows struct{}

func (fakeRows) Neighbors(_ context.Context, of schemas.ID, most int) ([]schemas.RelatedItem, error) {
	if of == "pin:moved" {
		return nil, schemas.ErrNotOwner
	}
	return []schemas.RelatedItem{{ID: "pin:2", Share: 1.0 / 3, Facets: schemas.Facets{Author: "user:a"}, Created: schemas.Micros(most)}}, nil
}

func (fakeRows) Known(_ context.Context, group string, of schemas.UserID) (bool, error) {
	return group == topics.Actors && of == user, nil
}

func (fakeRows) Users(_ context.Context, partition int32, prefix string, most int) ([]schemas.UserID, error) {
	return []schemas.UserID{schemas.UserID(prefix), schemas.UserID(fmt.Sprint(partition, most))}, nil
}

func (fakeRows) Graph(_ context.Context, group string, user schemas.UserID, most int) (*schemas.UserGraph, error) {
	if group == topics.Fanout {
		return &schemas.UserGraph{Followers: 5}, nil
	}
	return &schemas.UserGraph{User: user, Follows: []schemas.Followed{{ID: "board:b", Weight: 1.5}}, Following: most, Blocks: []schemas.ID{"user:x"}}, nil
}

func (fakeRows) RetryKinds(_ context.Context, topic string) ([]schemas.RetryKind, error) {
	return []schemas.RetryKind{{Kind: topic + "/g/x", Topic: topic, Rate: 0.5, Next: new(schemas.Timestamp(7)), States: map[schemas.RetryState]int64{schemas.RetryDone: 3}}}, nil
}

func (fakeRows) RetriedDeadLetters(_ context.Context, topic, kind string, state schemas.RetryState, most int) ([]schemas.RetriedDeadLetter, error) {
	return []schemas.RetriedDeadLetter{{Topic: topic, Kind: kind, State: state, Attempts: int32(most), Since: 8, Due: new(schemas.Timestamp(9))}}, nil
}

func (fakeRows) Terms(_ context.Context, partition int32, most int, named []string) ([]schemas.DictionaryTerm, error) {
	return []schemas.DictionaryTerm{{Term: named[0], State: schemas.TermCandidate, Score: 0.5, Pins: int64(partition), People: int64(most), Decided: new(schemas.Timestamp(3))}}, nil
}

func (fakeRows) Interests(_ context.Context, user schemas.UserID, most int) ([]schemas.UserInterest, error) {
	return []schemas.UserInterest{{Interest: "interest:tea", Strength: 2.5, Evidence: []schemas.Evidence{{Pin: schemas.PinID(user), Time: schemas.Timestamp(most)}}}}, nil
}

func (fakeRows) Engagement(_ context.Context, interest schemas.InterestID, days int) ([]schemas.SourceEngagement, error) {
	return []schemas.SourceEngagement{{Source: schemas.Source(interest), Counts: map[string]int64{"save": int64(days)}}}, nil
}

func (fakeRows) Insight(_ context.Context, r schemas.InsightRequest) (*schemas.InsightPart, error) {
	part := &schemas.InsightPart{Growth: []schemas.GrowthDay{{Day: "2026-11-20", New: r.Growth, Daily: int(r.Today)}}}
	if r.Funnel != nil {
		part.Steps = []schemas.FunnelStep{{Verb: r.Funnel.Steps[0], Users: r.Funnel.Days}}
	}
	for _, interest := range r.Hours {
		part.Hours = append(part.Hours, schemas.Popular{Interest: interest, Actions: 7, Hours: [7][24]uint64{6: {23: 7}}})
	}
	return part, nil
}

// directory returns a fixed owner and counts its reads.
type directory struct {
	mu    sync.Mutex
	owner string
	err   error
	reads atomic.Int64
}

func (d *directory) is(owner string, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.owner, d.err = owner, err
}

func (d *directory) Owners(context.Context) (map[int32]string, error) {
	d.reads.Add(1)
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.owner == "" {
		return nil, d.err
	}
	return map[int32]string{0: d.owner}, d.err
}

// serve serves a handler and returns its address.
func serve(t *testing.T, h http.Handler) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

// process serves a generator and returns its address.
func process(t *testing.T, g Generator) string {
	t.Helper()
	return serve(t, Handler(Local{Generator: g}))
}

// client returns a client that finds the owners of pools in a directory.
func client(t *testing.T, d Directory) *Client {
	t.Helper()
	return newClient(t, Deps{Owners: map[string]Directory{topics.Pools: d}})
}

func newClient(t *testing.T, deps Deps) *Client {
	t.Helper()
	deps.Partitions = 1
	c := NewClient(deps)
	t.Cleanup(c.Close)
	return c
}

func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

var request = schemas.ChunkRequest{Served: "s-1", User: user, Feed: "home", Limit: 25, Time: 77}

// callee is everything that a process can be called for.
type callee interface {
	Generator
	Neighbors
	Retries
	Interests
	Insights
	Known
	Users
}

func TestCalls_ReachTheOwnersOfTheGroup(t *testing.T) {
	g := &fakeGenerator{name: "a", settled: make(chan settlement, 1)}
	owners := map[string]Directory{}
	for group, local := range map[string]Local{
		topics.Pools: {Generator: g, Users: g}, topics.Fanout: {Users: g}, topics.Related: {Neighbors: g}, topics.Retries: {Retries: g}, topics.Interests: {Interests: g}, topics.Insights: {Insights: g}, topics.Actors: {Known: g},
	} {
		owners[group] = &directory{owner: serve(t, Handler(local))}
	}
	c := newClient(t, Deps{Owners: owners})
	for name, call := range map[string]func(context.Context, callee) (any, error){
		"chunk": func(ctx context.Context, to callee) (any, error) {
			chunk, err := to.Chunk(ctx, request)
			if chunk.ReadRecent != nil { // a remote caller cannot recall
				chunk.Recent, _ = chunk.RecentEntries(ctx)
				chunk.ReadRecent = nil
			}
			return chunk, err
		},
		"waiting":    func(ctx context.Context, to callee) (any, error) { return to.Waiting(ctx, user) },
		"pool":       func(ctx context.Context, to callee) (any, error) { return to.Pool(ctx, user, "x", 3) },
		"state":      func(ctx context.Context, to callee) (any, error) { return to.FeedState(ctx, user, "home") },
		"neighbors":  func(ctx context.Context, to callee) (any, error) { return to.Neighbors(ctx, "pin:1", 7) },
		"kinds":      func(ctx context.Context, to callee) (any, error) { return to.RetryKinds(ctx, "pins") },
		"terms":      func(ctx context.Context, to callee) (any, error) { return to.Terms(ctx, 0, 5, []string{"tea"}) },
		"interests":  func(ctx context.Context, to callee) (any, error) { return to.Interests(ctx, user, 5) },
		"engagement": func(ctx context.Context, to callee) (any, error) { return to.Engagement(ctx, "interest:tea", 7) },
		"insight": func(ctx context.Context, to callee) (any, error) {
			return to.Insight(ctx, schemas.InsightRequest{Today: 9, Growth: 3, Hours: []schemas.InterestID{"interest:tea"}, Funnel: &schemas.FunnelRequest{
				Steps: []schemas.Verb{"save"}, Days: 4,
			}})
		},
		"known":     func(ctx context.Context, to callee) (any, error) { return to.Known(ctx, topics.Actors, user) },
		"unknown":   func(ctx context.Context, to callee) (any, error) { return to.Known(ctx, topics.Actors, "user:never") },
		"users":     func(ctx context.Context, to callee) (any, error) { return to.Users(ctx, 0, "user:a", 5) },
		"graph":     func(ctx context.Context, to callee) (any, error) { return to.Graph(ctx, topics.Pools, user, 5) },
		"followers": func(ctx context.Context, to callee) (any, error) { return to.Graph(ctx, topics.Fanout, user, 5) },
		"why": func(ctx context.Context, to callee) (any, error) {
			return to.Why(ctx, schemas.WhyRequest{User: user, Pin: "pin:1", Limit: 5, Card: &schemas.Card{Title: "Tea"}})
		},
		"retried": func(ctx context.Context, to callee) (any, error) {
			return to.RetriedDeadLetters(ctx, "pins", "k", schemas.RetryParked, 5)
		},
	} {
		t.Run(name, func(t *testing.T) {
			want := must.Get(call(t.Context(), g))(t)
			got := must.Get(call(within(t, time.Minute), c))(t)
			expect.NoDiffBut(t, cmpopts.EquateEmpty(), got, want, "result")
		})
	}
	c.Settle(user, "s-1", schemas.Failed)
	expect.Equal(t, <-g.settled, (settlement{user, "s-1", schemas.Failed}), "settled")
	if _, err := c.Neighbors(within(t, 50*time.Millisecond), "pin:moved", 7); !errors.Is(err, schemas.ErrNotOwner) && !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("rows of another process: got %v", err)
	}
	expect.Error(t, expect.ErrorOf(c.Known(t.Context(), topics.Objects, user)), `no directory of the group "objects"`, "other group")
}

func TestClient_CloseStopsItsGoroutines(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	s := httptest.NewServer(Handler(Local{Generator: &fakeGenerator{}}))
	defer s.Close()
	c := NewClient(Deps{Owners: map[string]Directory{topics.Pools: &directory{owner: s.Listener.Addr().String()}}, Partitions: 1})
	defer c.Close()
	must.Get(c.Waiting(t.Context(), user))(t)
}

func TestClient_ReturnsErrorsOfOwner(t *testing.T) {
	for _, c := range []struct {
		name  string
		err   error
		is    error
		again bool // the process is called repeatedly, and otherwise once
	}{
		{"an unknown feed", schemas.ErrUnknownFeed, schemas.ErrUnknownFeed, false},
		{"not the owner", schemas.ErrNotOwner, schemas.ErrNotOwner, true},
		{"a failure", errors.New("disk failure"), nil, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := &fakeGenerator{err: c.err}
			asking := client(t, &directory{owner: process(t, g)})
			var err error
			if c.again {
				err = callUntil(t, asking, "a second call", func() bool { return g.calls.Load() >= 2 })
			} else {
				_, err = asking.Chunk(within(t, time.Minute), request)
			}
			if err == nil || !strings.Contains(err.Error(), c.err.Error()) || c.is != nil && !errors.Is(err, c.is) {
				t.Errorf("got %v, want %v", err, c.err)
			}
			if n := g.calls.Load(); !c.again && n != 1 {
				t.Errorf("the process received %d calls, want one", n)
			}
		})
	}
}

// callUntil requests a chunk, and cancels the call as soon as a condition holds.
func callUntil(t *testing.T, c *Client, what string, holds func() bool) error {
	t.Helper()
	ctx, giveUp := context.WithCancel(within(t, time.Minute))
	defer giveUp()
	ended := make(chan error, 1)
	go func() {
		_, err := c.Chunk(ctx, request)
		ended <- err
	}()
	eventually.True(t, what, holds)
	giveUp()
	return <-ended
}

// checkNext checks that the next owner answers the client.
func checkNext(t *testing.T, c *Client) {
	t.Helper()
	chunk := must.Get(c.Chunk(within(t, 5*time.Second), request))(t)
	expect.True(t, chunk.Served.Mix["next"] > 0, "the chunk is the next owner's")
}

// A 404 from another server at an address, such as a proxy, does not mean that a feed is unknown. The peer counts as failed,
// and the owner is looked up again.
func TestClient_ForeignNotFoundIsAFailure(t *testing.T) {
	d := &directory{owner: serve(t, http.NotFoundHandler())}
	c := client(t, d)
	if _, err := c.Chunk(within(t, 5*time.Second), request); err == nil || errors.Is(err, schemas.ErrUnknownFeed) || !strings.Contains(err.Error(), "404") {
		t.Errorf("got %v, want the 404 as a failure", err)
	}
	d.is(process(t, &fakeGenerator{name: "next"}), nil)
	checkNext(t, c)
}

// A previous owner answers that it is not the owner, or is down. The next owner is found within the same call.
func TestClient_FindsNewOwner(t *testing.T) {
	next := &fakeGenerator{name: "next"}
	for name, former := range map[string]func(*testing.T) string{
		"it answers 421": func(t *testing.T) string { return process(t, &fakeGenerator{err: schemas.ErrNotOwner}) },
		"it is down": func(t *testing.T) string {
			l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
			defer l.Close()
			return l.Addr().String()
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := &directory{owner: former(t)}
			c := client(t, d)
			if _, err := c.Chunk(within(t, 20*time.Millisecond), request); !errors.Is(err, schemas.ErrNotOwner) && !errors.Is(err, context.DeadlineExceeded) {
				t.Fatalf("the previous owner answers: %v", err)
			}
			d.is(process(t, next), nil)
			checkNext(t, c)
		})
	}
}

// An owner that hangs does not answer 421. The next owner is found when the group has one.
func TestClient_ReplacesHangingOwner(t *testing.T) {
	hanging := &fakeGenerator{hang: make(chan struct{})}
	defer close(hanging.hang)
	d := &directory{owner: process(t, hanging)}
	c := client(t, d)
	expect.Is(t, callUntil(t, c, "the owner is called", func() bool { return hanging.calls.Load() > 0 }), context.Canceled, "error")
	expect.Equal(t, hanging.calls.Load(), 1, "calls of the hanging process")
	d.is(process(t, &fakeGenerator{name: "next"}), nil)
	checkNext(t, c)
}

// deadlineRecorder records how long its caller waits.
type deadlineRecorder struct {
	*fakeGenerator
	left chan time.Duration
}

func (p deadlineRecorder) Chunk(ctx context.Context, r schemas.ChunkRequest) (*schemas.Chunk, error) {
	deadline, _ := ctx.Deadline()
	p.left <- time.Until(deadline)
	return p.fakeGenerator.Chunk(ctx, r)
}

// The called process receives the time that its caller waits, because the generator divides that time among its own calls.
func TestHandler_ReceivesDeadline(t *testing.T) {
	left := make(chan time.Duration, 1)
	c := client(t, &directory{owner: process(t, deadlineRecorder{&fakeGenerator{}, left})})
	for _, wait := range []time.Duration{time.Minute, time.Hour} {
		began := time.Now()
		must.Get(c.Chunk(within(t, wait), request))(t)
		expect.Between(t, <-left, wait-time.Since(began), wait, "time that the process has")
	}
	r := httptest.NewRequest("POST", Path+string(callChunk), strings.NewReader("{}"))
	r.Header.Set(waitsFor, "soon")
	w := httptest.NewRecorder()
	Handler(Local{Generator: deadlineRecorder{&fakeGenerator{}, left}}).ServeHTTP(w, r)
	expect.Equal(t, w.Code, http.StatusBadRequest, "status for an invalid time")
}

// A call without a deadline ends nevertheless, whether the owner hangs or there is none, because its caller occupies a slot
// of the server.
func TestClient_CallsTimeOut(t *testing.T) {
	for name, c := range map[string]struct {
		owner string // the owner of the pools; "": none
		want  error
	}{
		"the owner accepts the call and never answers": {"10.0.0.1:80", context.DeadlineExceeded},
		"no owner": {"", schemas.ErrNotOwner},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				asking := client(t, &directory{owner: c.owner})
				asking.http.Transport.(*http.Transport).DialContext = silent
				for _, own := range []time.Duration{0, callTimeout / 2, 2 * callTimeout} { // the caller's timeout; 0: none
					ctx, want := t.Context(), callTimeout
					if own > 0 {
						ctx, want = within(t, own), own
					}
					began := time.Now()
					_, err := asking.FeedState(ctx, user, "home")
					if took := time.Since(began); !errors.Is(err, c.want) || took < want || took > want+lookUpEvery {
						t.Errorf("a deadline of %s: got %v after %s, want %v after %s", own, err, took, c.want, want)
					}
				}
			})
		})
	}
}

// silent connects to a process that reads everything and sends nothing.
func silent(context.Context, string, string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	go func() { _, _ = io.Copy(io.Discard, theirs) }() // until ours is closed
	return ours, nil
}

// The number of reads of the directory is bounded for any number of failed calls.
func TestOwners_BoundReadsOfDirectory(t *testing.T) {
	d := &directory{}
	c := client(t, d)
	began := time.Now()
	ctx, giveUp := context.WithCancel(within(t, time.Minute))
	defer giveUp()
	var calls sync.WaitGroup
	for range 200 {
		calls.Go(func() {
			expect.Error(t, expect.ErrorOf(c.Waiting(ctx, user)), "request waiting of user:7", "no owner")
		})
	}
	eventually.True(t, "the directory is read repeatedly", func() bool { return d.reads.Load() >= 6 })
	giveUp()
	calls.Wait()
	expect.AtMost(t, d.reads.Load(), int64(time.Since(began)/freshness)+1, "reads of the directory")
}

func TestClient_ReturnsDirectoryError(t *testing.T) {
	broken := errors.New("no broker answers")
	expect.Is(t, expect.ErrorOf(client(t, &directory{err: broken}).Chunk(t.Context(), request)), broken, "Chunk")
}

// Settle must never delay an answer.
func TestSettle_DoesNotBlock(t *testing.T) {
	c := client(t, &directory{}) // there is no owner
	began := time.Now()
	for range maxSettling + 10 {
		c.Settle(user, "s", schemas.Acknowledged)
	}
	expect.True(t, time.Since(began) < settleTimeout, "settlements above the limit are dropped at once")
}

func TestHandler_RejectsInvalidCalls(t *testing.T) {
	h := Handler(Local{Generator: &fakeGenerator{}})
	for _, c := range []struct {
		name, method, path, body string
		code                     int
	}{
		{"no JSON", "POST", Path + string(callChunk), "{", http.StatusBadRequest},
		{"too long", "POST", Path + string(callChunk), `{"user":"` + strings.Repeat("x", maxRequest) + `"}`, http.StatusBadRequest},
		{"wrong method", "GET", Path + string(callChunk), "", http.StatusMethodNotAllowed},
		{"unknown call", "POST", Path + "erase", "{}", http.StatusNotFound},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequest(c.method, c.path, strings.NewReader(c.body)))
			expect.Equal(t, w.Code, c.code, "status of %s", w.Body)
		})
	}
}

func TestClientID_ContainsAddress(t *testing.T) {
	for id, want := range map[string]string{ClientID("10.0.0.1:8080"): "10.0.0.1:8080", "smartfeed": "", "other@h:1": "h:1"} {
		expect.Equal(t, addressOf(id), want, "address in %q", id)
	}
}

func TestClient_BoundsValuesOfAnswers(t *testing.T) {
	peer := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"items":[`+strings.Repeat("{},", maxValues)+`{}]}`)
	}))
	expect.Error(t, expect.ErrorOf(client(t, &directory{owner: peer}).Pool(within(t, 5*time.Second), user, "x", 3)), "JSON values", "Pool")
}
