package visits

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/internal/testkit/oracle"
	"github.com/smartfeed/smartfeed/schemas"
)

const (
	reader = schemas.UserID("user:u")
	limit  = 7
)

// fakeFeed is one user's correct feed, computed from the product: each visit has two new items of each source. The
// function bend can modify every response.
type fakeFeed struct {
	product  *oracle.Product
	frozen   []shown   // oldest first; the position is the index
	reversed bool      // the items of a visit are materialized in reverse order
	caughtUp time.Time // pages before this time are stale
	bend     func(call int, p *Page)
	calls    int
}

func (f *fakeFeed) Visit(_ context.Context, user schemas.UserID) (Page, error) {
	var page Page
	below := len(f.frozen)
	for n, source := range edgeSources() {
		for _, c := range f.product.Pool(user, source, 4) {
			taken := slices.ContainsFunc(page.Items, func(i Item) bool { return i.Pin == c.Pin })
			if len(page.Items) < 2*(n+1) && !taken {
				page.Items = append(page.Items, f.item(shown{c.Pin, source}, schemas.RankScore(c.PoolScore), true))
			}
		}
	}
	fresh := make([]shown, len(page.Items))
	for i, item := range page.Items {
		fresh[i] = shown{item.Pin, item.Source}
	}
	if !f.reversed { // the newest position is read first
		slices.Reverse(fresh)
	}
	f.fill(&page, user, below)
	f.frozen = append(f.frozen, fresh...)
	return f.bent(page), nil
}

func (f *fakeFeed) Older(_ context.Context, user schemas.UserID, cursor string) (Page, error) {
	below, err := strconv.Atoi(cursor)
	if err != nil {
		return Page{}, err
	}
	if time.Now().Before(f.caughtUp) {
		return Page{Next: &cursor, Degraded: []string{"stale"}}, nil
	}
	var page Page
	f.fill(&page, user, below)
	return f.bent(page), nil
}

// fill appends visible materialized items below a position, up to the limit.
func (f *fakeFeed) fill(page *Page, user schemas.UserID, below int) {
	for below > 0 && len(page.Items) < limit {
		below--
		if s := f.frozen[below]; f.product.VisibleMaterialized(user, s.source, s.pin) {
			page.Items = append(page.Items, f.item(s, 0, false))
		}
	}
	if below > 0 {
		next := strconv.Itoa(below)
		page.Next = &next
	}
}

func (f *fakeFeed) item(s shown, score schemas.RankScore, fresh bool) Item {
	pin, _ := f.product.Pin(s.pin)
	item := Item{Pin: s.pin, New: fresh, Source: s.source, Score: score, Time: pin.Created.Time(), Author: pin.Author,
		Interests: pin.Interests, Title: pin.Title, Link: pin.Link}
	if pin.Board != "" {
		item.Board = &pin.Board
	}
	return item
}

func (f *fakeFeed) bent(page Page) Page {
	f.calls++
	if f.bend != nil {
		f.bend(f.calls, &page)
	}
	return page
}

// product has an author and an interest that the reader follows, with the given number of pins each. Every third pin of the
// author is in the interest, too.
func product(pins int) *oracle.Product {
	p := oracle.New(oracle.Config{HalfLife: time.Hour})
	follow(p, 1, schemas.Follow, "user:a")
	follow(p, 1, schemas.Follow, "interest:i")
	for n := range pins {
		publish(p, n)
	}
	return p
}

func publish(p *oracle.Product, n int) {
	own, other := schemas.PinEvent{Board: "board:a-b"}, schemas.PinEvent{Interests: []schemas.InterestID{"interest:i"}}
	if n%3 == 0 {
		own.Interests = other.Interests
	}
	for author, e := range map[schemas.UserID]*schemas.PinEvent{"user:a": &own, "user:b": &other} {
		e.Event = schemas.Event{
			ID: fmt.Sprint(author, n), Time: schemas.Micros(1000+n) * 1e6, Actor: author, Verb: schemas.Create,
			Object: schemas.ID(fmt.Sprintf("pin:%c%d", author[5], n)),
		}
		e.Title, e.Link = "title of "+string(e.Object), "https://pins.example/"+string(e.Object)
		p.Apply(schemas.NewLine(e))
	}
}

func follow(p *oracle.Product, at int, v schemas.Verb, other schemas.ID) {
	e := &schemas.FollowEvent{Event: schemas.Event{
		ID: fmt.Sprint(at, v, other), Time: schemas.Micros(at) * 1e6, Actor: reader, Verb: v, Object: other,
	}}
	p.Apply(schemas.NewLine(e))
}

func config() Config { return Config{Limit: limit, Cap: 500, Plain: true} }

func TestReader_AcceptsCorrectFeed(t *testing.T) {
	p := product(30)
	r := NewReader(config(), &fakeFeed{product: p}, p, reader)
	if err := r.ReadAll(t.Context()); err != nil {
		t.Error(err)
	}
	if r.Shown() != 60 {
		t.Errorf("%d pins served, want 60", r.Shown())
	}
}

func TestReader_AcceptsConcurrentChanges(t *testing.T) {
	p := product(12)
	r := NewReader(config(), &fakeFeed{product: p}, p, reader)
	step := func(err error) {
		t.Helper()
		must.OK(t, err)
	}
	visit := func() *Walk {
		t.Helper()
		w, err := r.Visit(t.Context())
		step(err)
		return w
	}
	for range 5 {
		visit()
	}
	first := visit()
	step(first.Next(t.Context()))
	publish(p, 100)
	second := visit()
	follow(p, 2, schemas.Block, "user:a")
	step(first.Finish(t.Context()))
	step(second.Next(t.Context()))
	follow(p, 3, schemas.Unblock, "user:a")
	step(second.Finish(t.Context()))
	follow(p, 4, schemas.Unfollow, "interest:i")
	step(r.ReadAll(t.Context()))
	follow(p, 5, schemas.Follow, "interest:i")
	step(r.ReadAll(t.Context()))
	if r.Shown() != 26 {
		t.Errorf("%d pins served, want 26", r.Shown())
	}
}

func TestReader_RejectsIncorrectResponses(t *testing.T) {
	// Calls: 1 is the first visit (4 new), 2 the second visit (4 new, 3 materialized, one more page), 3 its page (1
	// materialized).
	tests := []struct {
		name string
		call int
		bend func(p *Page)
		want string
	}{
		{"degraded", 1, func(p *Page) { p.Degraded = []string{"store"} }, "degraded: [store]"},
		{"too many", 1, func(p *Page) { p.Items = append(p.Items, p.Items...) }, "8 items, requested 7"},
		{"repeated in a visit", 1, func(p *Page) { p.Items = append(p.Items, p.Items[0]) }, "repeated in the same walk"},
		{"new twice", 2, func(p *Page) { p.Items[4].New = true }, "no visible, unseen candidate"},
		{"unknown pin", 1, func(p *Page) { p.Items[0].Pin = "pin:x" }, "pin:x: this pin does not exist"},
		{"another source", 1, func(p *Page) { p.Items[0].Source = schemas.FromInterest }, "no visible, unseen candidate of interest"},
		{"not the best", 1, func(p *Page) { p.Items = p.Items[1:] }, "pin:a28 has rank 1 in following, want pin:a29"},
		{"another score", 1, func(p *Page) { p.Items[0].Score *= 1.01 }, "score "},
		{"ascending", 1, func(p *Page) { p.Items[0], p.Items[1] = p.Items[1], p.Items[0] }, "of the same source"},
		{"author", 1, func(p *Page) { p.Items[0].Author = "user:x" }, "pin:a29: author user:x, want user:a"},
		{"board", 1, func(p *Page) { p.Items[0].Board = nil }, "pin:a29: board , want board:a-b"},
		{"interests", 2, func(p *Page) { p.Items[0].Interests = []schemas.InterestID{"interest:x"} }, "interests [interest:x], want [interest:i]"},
		{"time", 1, func(p *Page) { p.Items[0].Time = p.Items[0].Time.Add(time.Microsecond) }, "pin:a29: time "},
		{"title", 1, func(p *Page) { p.Items[0].Title = "" }, "pin:a29: title "},
		{"link", 1, func(p *Page) { p.Items[0].Link = "" }, "pin:a29: link "},
		{"new below old", 2, func(p *Page) { p.Items[3], p.Items[4] = p.Items[4], p.Items[3] }, "new below an item that is not new"},
		{"new on a page", 3, func(p *Page) { p.Items[0].New = true }, "new on a page"},
		{"a gap in a visit", 2, func(p *Page) { p.Items = slices.Delete(p.Items, 5, 6) }, "missing before"},
		{"a gap at the end", 3, func(p *Page) { p.Items = nil }, "missing at the end"},
		{"an early end", 2, func(p *Page) { p.Next = nil }, "missing at the end"},
		{"out of order", 2, func(p *Page) { p.Items[4], p.Items[6] = p.Items[6], p.Items[4] }, "missing before"},
		{"repeated on a page", 3, func(p *Page) { p.Items = append(p.Items, p.Items[0]) }, "repeated in the same walk"},
		{"new items omitted", 2, func(p *Page) { p.Items = p.Items[4:] }, "end without pin:"},
		{"old, but never served", 1, func(p *Page) { p.Items[3].New = false }, "not among the remaining items of earlier visits"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			p := product(30)
			bent := false
			f := &fakeFeed{product: p, bend: func(call int, page *Page) {
				if call == test.call {
					bent = true
					test.bend(page)
				}
			}}
			err := NewReader(config(), f, p, reader).ReadAll(t.Context())
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want one with %q", err, test.want)
			}
			if !bent {
				t.Errorf("only %d answers", f.calls)
			}
		})
	}
}

func TestReader_RejectsInvisibleItems(t *testing.T) {
	p := product(6)
	f := &fakeFeed{product: p}
	r := NewReader(config(), f, p, reader)
	must.Get(r.Visit(t.Context()))(t)
	f.bend = func(_ int, page *Page) {
		for i := range page.Items { // the block takes effect after the response was computed
			if page.Items[i].Author == "user:a" && !page.Items[i].New {
				follow(p, 2, schemas.Block, "user:a")
			}
		}
	}
	if _, err := r.Visit(t.Context()); err == nil || !strings.Contains(err.Error(), "no longer visible") {
		t.Errorf("got error %v, want an invisible item", err)
	}
}

// Later pages have the items of a visit in the same order.
func TestReader_ChecksOrderOfMaterializedItems(t *testing.T) {
	p := product(30)
	err := NewReader(config(), &fakeFeed{product: p, reversed: true}, p, reader).ReadAll(t.Context())
	if err == nil || !strings.Contains(err.Error(), "missing before") {
		t.Errorf("error %v", err)
	}
}

// A store that lags returns short pages with a next cursor until it has caught up.
func TestReader_RetriesStalePages(t *testing.T) {
	tests := []struct {
		name   string
		stale  time.Duration
		behind time.Duration
		want   string
	}{
		{"allowed", time.Second, 500 * time.Millisecond, ""},
		{"for too long", time.Second, time.Hour, "the store lags by more than 1s"},
		{"not allowed", 0, time.Millisecond, "degraded: [stale]"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := product(12)
				cfg := config()
				cfg.Stale = test.stale
				f := &fakeFeed{product: p, caughtUp: time.Now().Add(test.behind)}
				err := NewReader(cfg, f, p, reader).ReadAll(t.Context())
				if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
					t.Errorf("error %v, want %q", err, test.want)
				}
			})
		})
	}
}

func TestReader_AcceptsOtherOrderWithRules(t *testing.T) {
	p := product(30)
	f := &fakeFeed{product: p, bend: func(_ int, page *Page) {
		if len(page.Items) > 0 && page.Items[0].New {
			page.Items[0].Score *= 2 // re-scored
		}
	}}
	cfg := config()
	cfg.Plain = false
	if err := NewReader(cfg, f, p, reader).ReadAll(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestReader_AcceptsExplorationOfVisiblePins(t *testing.T) {
	p := product(30)
	r := NewReader(config(), &fakeFeed{product: p}, p, reader)
	for source, want := range map[schemas.Source]bool{schemas.Explore: true, schemas.FromInterest: false} {
		if got := r.canBeNew(Item{Pin: "pin:a1", Source: source}); got != want {
			t.Errorf("pin:a1 from %s: %t, want %t", source, got, want)
		}
	}
}

func TestHTTP_ReadsFeed(t *testing.T) {
	p := product(30)
	fake := &fakeFeed{product: p}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		if r.URL.EscapedPath() != "/v1/users/user:u/feed" || q.Get("limit") != "7" || (q.Get("feed") == "plain") == q.Has("cursor") {
			http.Error(w, "unexpected "+r.URL.String(), http.StatusBadRequest)
			return
		}
		answer := fake.Visit
		if q.Has("cursor") {
			answer = func(ctx context.Context, user schemas.UserID) (Page, error) {
				return fake.Older(ctx, user, q.Get("cursor"))
			}
		}
		page, err := answer(r.Context(), reader)
		if err == nil {
			err = json.NewEncoder(w).Encode(page)
		}
		if err != nil {
			t.Error(err)
		}
	}))
	defer server.Close()
	h := &HTTP{URL: server.URL, Client: server.Client(), Feed: "plain", Limit: limit}
	if err := NewReader(config(), h, p, reader).ReadAll(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestHTTP_ReturnsErrors(t *testing.T) {
	tests := []struct {
		name    string
		handler http.HandlerFunc
		want    string
	}{
		{"rejected", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "too many", 503) }, "503 Service Unavailable: too many"},
		{"no JSON", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") }, "read answer: invalid character"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			server := httptest.NewServer(test.handler)
			defer server.Close()
			h := &HTTP{URL: server.URL, Client: server.Client(), Feed: "plain", Limit: limit}
			_, err := NewReader(config(), h, product(1), reader).Visit(t.Context())
			if err == nil || !strings.Contains(err.Error(), "visit of user:u: "+test.want) {
				t.Errorf("error %v, want one with %q", err, test.want)
			}
		})
	}
	ended, end := context.WithCancel(t.Context())
	end()
	h := &HTTP{URL: "http://127.0.0.1:1", Client: http.DefaultClient, Limit: limit}
	if _, err := h.Visit(ended, reader); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}
