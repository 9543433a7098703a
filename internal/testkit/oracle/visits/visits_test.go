package visits

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
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
	product *oracle.Product
	frozen  []shown // oldest first; the position is the index
	bend    func(call int, p *Page)
	calls   int
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
	slices.Reverse(fresh) // the newest position is read first
	f.fill(&page, user, below)
	f.frozen = append(f.frozen, fresh...)
	return f.bent(page), nil
}

func (f *fakeFeed) Older(_ context.Context, user schemas.UserID, cursor string) (Page, error) {
	below, err := strconv.Atoi(cursor)
	if err != nil {
		return Page{}, err
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
			expect.Error(t, NewReader(config(), f, p, reader).ReadAll(t.Context()), test.want, "ReadAll")
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
	expect.Error(t, expect.ErrorOf(r.Visit(t.Context())), "no longer visible", "Visit")
}
