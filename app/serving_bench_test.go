package app

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/serving/feed"
	"github.com/smartfeed/smartfeed/topics"
)

// Benchmarks of serving, with all parts except the clients in one process. `make bench-serving` runs them.
const (
	servingUsers   = 500
	servingAuthors = 12
	servingPins    = 50 // of each author
	servingFor     = 4 * time.Second
)

// BenchmarkServing compares the throughput of pages with that of a bare handler over the same rows, measures visits, and
// generates three times the capacity. The objectives are 60 % of the bare handler's throughput, and 90 % of the peak at
// three times the capacity.
//
// It fails below half of the first objective, below two thirds of the second, and below one visit per fifty pages of the
// bare handler. It also fails if a page at half of the capacity takes more than five times the objective and more than
// three times the bare handler's latency. Each value is the best of three tries.
func BenchmarkServing(b *testing.B) {
	p := startBench(b)
	p.fillFeeds()
	pages := p.pages()
	for range b.N {
		handler := p.bare(math.MaxInt)
		got := best(b, "pages", func(int) throughput {
			return throughput{bare: capacityOf(b, handler, pages, servingFor), ours: capacityOf(b, p.server.Addr(), pages, servingFor)}
		}, func(got throughput) float64 { return 0.3 * got.bare / got.ours })
		b.ReportMetric(got.bare, "bare-pages/s")
		b.ReportMetric(got.ours, "pages/s")
		b.ReportMetric(100*got.ours/got.bare, "%-of-bare")
		expect.AtLeast(b, got.ours, 0.3*got.bare, "pages/s: 30 %% of the bare handler")
		p.half(b, handler, pages, int(got.ours/2))
		p.overload(b, "pages", pages, got.ours)
		p.overloadBare(b, pages, got.bare)
		p.overload(b, "visits", visitPaths(), p.visits(b, handler, pages, got.bare))
	}
}

// throughput holds responses per second of smartfeed, and of the bare handler in the same try.
type throughput struct{ bare, ours float64 }

// servingTries is the maximum number of measurements.
const servingTries = 3

// best measures until a bound is met, up to servingTries times, because the machine may be busy in some tries. It returns
// the measurement that is closest to the bound. missed returns the factor by which the bound is missed; at most 1: it is
// met.
func best[T any](b testing.TB, what string, measure func(try int) T, missed func(T) float64) T {
	b.Helper()
	found, tries := measure(0), 1
	for ; missed(found) > 1 && tries < servingTries; tries++ {
		if again := measure(tries); missed(again) < missed(found) {
			found = again
		}
	}
	b.Logf("%s: %d of %d tries", what, tries, servingTries)
	return found
}

func TestBest_KeepsBestOfThreeTries(t *testing.T) {
	for name, c := range map[string]struct {
		missed      []float64
		want, tries int
	}{
		"the first meets the bound": {[]float64{1, 0, 0}, 0, 1},
		"the second":                {[]float64{2, 0.5, 0}, 1, 2},
		"the third":                 {[]float64{2, 3, 0.5}, 2, 3},
		"none":                      {[]float64{3, 2, 4, 0}, 1, 3},
	} {
		tries := 0
		got := best(t, name, func(try int) int { tries++; return try }, func(try int) float64 { return c.missed[try] })
		expect.Equal(t, [2]int{got, tries}, [2]int{c.want, c.tries}, "%s: the try that counts, of all tries", name)
	}
}

// capacityOf returns the throughput per second at an address with 16 connections that send the next request after each
// response.
func capacityOf(b *testing.B, address string, paths []string, lasting time.Duration) float64 {
	b.Helper()
	return load{Address: address, Paths: paths, Conns: 16, For: lasting}.generate(b).perSecond(http.StatusOK)
}

// slowest holds the 99th percentiles of pages and of the bare handler at the same rate in the same try.
type slowest struct{ ours, bare time.Duration }

// most returns the maximum latency of a page.
func (s slowest) most() time.Duration { return max(25*time.Millisecond, 3*s.bare) }

// half requests pages at half of the capacity.
func (p *benchProduct) half(b *testing.B, handler string, pages []string, rate int) {
	b.Helper()
	p99 := func(address string) time.Duration {
		return load{Address: address, Paths: pages, Conns: 256, Rate: rate, For: servingFor}.generate(b).quantile(http.StatusOK, 0.99)
	}
	got := best(b, "pages at half of the capacity", func(int) slowest {
		return slowest{ours: p99(p.server.Addr()), bare: p99(handler)}
	}, func(got slowest) float64 { return float64(got.ours) / float64(got.most()) })
	b.ReportMetric(float64(got.ours.Microseconds())/1e3, "half-p99-ms")
	b.ReportMetric(float64(got.bare.Microseconds())/1e3, "bare-half-p99-ms")
	expect.AtMost(b, got.ours, got.most(), "p99 of pages at half of the capacity")
}

// visits sends visits and returns their throughput per second. Further tries also measure the bare handler again.
func (p *benchProduct) visits(b *testing.B, handler string, pages []string, bare float64) float64 {
	b.Helper()
	got := best(b, "visits", func(try int) throughput {
		if try > 0 {
			bare = capacityOf(b, handler, pages, servingFor)
		}
		return throughput{bare: bare, ours: capacityOf(b, p.server.Addr(), visitPaths(), servingFor/2)}
	}, func(got throughput) float64 { return got.bare / 50 / got.ours })
	b.ReportMetric(got.ours, "visits/s")
	expect.AtLeast(b, got.ours, got.bare/50, "visits/s: one per fifty pages of the bare handler")
	return got.ours
}

// overloaded is the result of three times the capacity.
type overloaded struct {
	loaded
	capacity float64
}

// overload generates three times the capacity. Further tries measure the capacity again.
func (p *benchProduct) overload(b *testing.B, what string, paths []string, capacity float64) {
	b.Helper()
	l := best(b, what+" at three times the capacity", func(try int) overloaded {
		if try > 0 {
			capacity = capacityOf(b, p.server.Addr(), paths, servingFor/2)
		}
		return overloaded{load{Address: p.server.Addr(), Paths: paths, Conns: 400, Rate: int(3 * capacity), For: servingFor}.generate(b), capacity}
	}, func(l overloaded) float64 { return 0.6 * l.capacity / l.perSecond(http.StatusOK) })
	b.ReportMetric(100*l.perSecond(http.StatusOK)/l.capacity, what+"-goodput-%")
	expect.AtLeast(b, l.perSecond(http.StatusOK), 0.6*l.capacity, "%s/s at three times the capacity: 60 %% of it", what)
	b.ReportMetric(float64(l.quantile(http.StatusServiceUnavailable, 0.99).Microseconds())/1e3, what+"-refused-p99-ms")
	b.Logf("%s at three times %.0f/s: %v in %.1f s, %d not sent in time; answered p50 %s p99 %s, refused p50 %s p99 %s; bounds %v", what, l.capacity,
		l.Codes, l.Seconds, l.Late, l.quantile(200, 0.5), l.quantile(200, 0.99), l.quantile(503, 0.5), l.quantile(503, 0.99), p.server.Bounds())
}

// overloadBare generates three times the capacity of the bare handler, which rejects requests above the same limit at once.
// This shows the latency of a rejection that is due to the machine, which generates, accepts and rejects requests on the
// same processors.
func (p *benchProduct) overloadBare(b *testing.B, paths []string, capacity float64) {
	b.Helper()
	l := load{Address: p.bare(p.server.Bounds()["feed"]), Paths: paths, Conns: 400, Rate: int(3 * capacity), For: servingFor}.generate(b)
	b.ReportMetric(100*l.perSecond(http.StatusOK)/capacity, "bare-goodput-%")
	b.ReportMetric(float64(l.quantile(http.StatusServiceUnavailable, 0.99).Microseconds())/1e3, "bare-refused-p99-ms")
	b.Logf("bare pages at three times %.0f/s: %v in %.1f s, %d not sent in time", capacity, l.Codes, l.Seconds, l.Late)
}

func servingUser(i int) schemas.UserID { return schemas.UserID(fmt.Sprint("user:reader-", i)) }

// fillFeeds makes every user follow every author, and publishes pins.
func (p *benchProduct) fillFeeds() {
	now := time.Now()
	var follows, pins []schemas.Line
	for a := range servingAuthors {
		author := schemas.UserID(fmt.Sprint("user:author-", a))
		for u := range servingUsers {
			e := &schemas.FollowEvent{Event: p.event(servingUser(u), schemas.Follow, string(author), now.Add(-time.Hour))}
			follows = append(follows, schemas.NewLine(e))
		}
		for i := range servingPins {
			e := &schemas.PinEvent{Event: p.event(author, schemas.Create, fmt.Sprintf("pin:%d-%d", a, i), now.Add(-time.Minute)), Title: "a title of some length", Link: "https://pins.example/1"}
			pins = append(pins, schemas.NewLine(e))
		}
	}
	for _, lines := range [][]schemas.Line{follows, pins} {
		must.OK(p.b, p.publisher.Publish(p.b.Context(), lines))
		must.OK(p.b, topics.Wait(p.b.Context(), p.kafka, schemas.MicrosOf(time.Now()), nil))
	}
}

func visitPaths() []string {
	paths := make([]string, servingUsers)
	for u := range paths {
		paths[u] = "/v1/users/" + string(servingUser(u)) + "/feed?limit=25"
	}
	return paths
}

// pages returns the pages after three visits of each user.
func (p *benchProduct) pages() []string {
	paths := make([]string, servingUsers)
	for u := range paths {
		var page feed.Page
		for range 3 {
			res, err := p.client.Get("http://" + p.server.Addr() + visitPaths()[u])
			if err == nil {
				err = json.NewDecoder(res.Body).Decode(&page)
				_ = res.Body.Close()
			}
			must.OK(p.b, err)
		}
		if page.Next == nil {
			p.b.Fatalf("%s has no older page: %+v", servingUser(u), page)
		}
		paths[u] = "/v1/users/" + string(servingUser(u)) + "/feed?limit=25&cursor=" + url.QueryEscape(*page.Next)
	}
	return paths
}

// rowsOfAPage reads the second page of a user's materialized feed.
func (p *benchProduct) rowsOfAPage(ctx context.Context, user schemas.UserID) ([]byte, error) {
	entries, _, err := p.store.Page(ctx, user, 51, 25)
	if err != nil || len(entries) != 25 {
		return nil, fmt.Errorf("%d entries: %w", len(entries), err)
	}
	pins, authors, others := make([]schemas.PinID, 25), make([]schemas.UserID, 25), make([]schemas.ID, 25)
	for i, e := range entries {
		pins[i], authors[i], others[i] = e.Pin, e.Facets.Author, schemas.ID(e.Facets.Author)
	}
	cards, err := p.store.Cards(ctx, pins)
	if err != nil {
		return nil, err
	}
	edges, err := p.store.Edges(ctx, user, others)
	if err != nil {
		return nil, err
	}
	deletedUsers, err := p.store.DeletedUsers(ctx, authors)
	if err != nil || len(edges) == 0 || len(deletedUsers) != 0 || len(cards) != 25 {
		return nil, fmt.Errorf("%d cards, %d edges, %d deleted users: %w", len(cards), len(edges), len(deletedUsers), err)
	}
	page := feed.Page{Items: make([]feed.Item, 25), Degraded: []string{}}
	for i, e := range entries {
		card := cards[e.Pin]
		page.Items[i] = feed.Item{Pin: feed.Pin{ID: e.Pin, Time: card.Created.Time(), Author: e.Facets.Author, Interests: e.Facets.Interests, Title: card.Title, Link: card.Link}, Source: e.Source, RankScore: e.RankScore}
	}
	return json.Marshal(page)
}

// bare returns the address of a handler that only reads the rows of a page and writes them: entries, the cards of the pins,
// the edges to their authors, and whether the authors are deleted. It rejects requests above most in flight.
func (p *benchProduct) bare(most int) string {
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(p.b)
	var under atomic.Int64
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/users/{user}/feed", func(w http.ResponseWriter, r *http.Request) {
		defer under.Add(-1)
		if under.Add(1) > int64(most) {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		body, err := p.rowsOfAPage(r.Context(), schemas.UserID(r.PathValue("user")))
		if err != nil {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		_, _ = w.Write(body)
	})
	server := &http.Server{Handler: mux}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(l)
	}()
	p.b.Cleanup(func() {
		_ = server.Close()
		<-done
	})
	return l.Addr().String()
}
