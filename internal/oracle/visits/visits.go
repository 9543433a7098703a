// Package visits reads feeds as people do, visit after visit and page after page, and holds what it is shown against
// the promises and against the brute-force product of package oracle:
//
//   - no pin is new twice to a user, and a visit and its pages hold no pin twice;
//   - new items are on top, each one a visible, unseen candidate of the source it names, described as it is now; of a
//     feed without rules they are the best of each pool, in order and with the pool's scores;
//   - the rest, and all pages after it, is what was shown before, the newest visit first, without what has become
//     invisible: no gap, no repeat, no early end, whatever arrives meanwhile;
//   - nothing is degraded, but for being stale where that is allowed.
//
// The caller tells the product of events once they are worked off; what was shown the readers tell it themselves.
// HTTP reads feeds, and pools and features for comparison, from a server.
package visits

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/smartfeed/smartfeed/internal/oracle"
	"github.com/smartfeed/smartfeed/schemas"
)

// Feed answers visits and pages; see HTTP.
type Feed interface {
	// Visit returns a feed's first page, new items on top.
	Visit(ctx context.Context, user schemas.UserID) (Page, error)
	// Older returns the page that the cursor of another names.
	Older(ctx context.Context, user schemas.UserID, cursor string) (Page, error)
}

// Page is an answer.
type Page struct {
	Items    []Item   `json:"items"`
	Next     *string  `json:"next"` // nil at the end
	Degraded []string `json:"degraded"`
}

// Item is one pin of an answer.
type Item struct {
	Pin       schemas.PinID        `json:"pin"`
	New       bool                 `json:"new"`
	Source    schemas.Source       `json:"source"`
	Score     float64              `json:"score"`
	Time      time.Time            `json:"time"`
	Author    schemas.UserID       `json:"author"`
	Board     *schemas.BoardID     `json:"board"`
	Interests []schemas.InterestID `json:"interests"`
	Title     string               `json:"title"`
	Link      string               `json:"link"`
}

// Config says what to expect of the feed.
type Config struct {
	Limit int  // items of an answer, as the Feed asks for them
	Cap   int  // candidates that a pool is sure to keep
	Plain bool // the feed has no rules: each pool's best, in order, until nothing is left
	// Stale is how long the store may be behind: answers may end early and say that they are stale, without being the
	// end, and such a page is asked for again until this much time has passed without an item.
	Stale time.Duration
}

// Reader is one user who reads a feed. It is not for concurrent use.
type Reader struct {
	cfg     Config
	feed    Feed
	product *oracle.Product
	user    schemas.UserID
	news    map[schemas.PinID]bool // what was ever new
	history []visit                // newest first
}

// visit is what one visit showed as new, in its order.
type visit []shown

type shown struct {
	pin    schemas.PinID
	source schemas.Source
}

// NewReader returns a reader to whom nothing was shown yet.
func NewReader(cfg Config, feed Feed, product *oracle.Product, user schemas.UserID) *Reader {
	return &Reader{cfg: cfg, feed: feed, product: product, user: user, news: map[schemas.PinID]bool{}}
}

// Shown returns how many pins were new to the user so far.
func (r *Reader) Shown() int { return len(r.news) }

// Visit makes a visit, checks the answer and returns the walk that its cursor begins. All that is wrong with the answer
// is joined.
func (r *Reader) Visit(ctx context.Context) (*Walk, error) {
	page, err := r.feed.Visit(ctx, r.user)
	if err != nil {
		return nil, fmt.Errorf("visit of %s: %w", r.user, err)
	}
	fresh := 0
	for fresh < len(page.Items) && page.Items[fresh].New {
		fresh++
	}
	problems := append(r.checkPage(page), r.checkNew(page.Items[:fresh])...)
	w := &Walk{reader: r, next: page.Next, fresh: fresh, held: map[schemas.PinID]bool{}, track: r.track()}
	r.remember(page.Items[:fresh])
	problems = append(problems, w.take(page.Items)...)
	if len(problems) > 0 {
		return w, fmt.Errorf("visit %d of %s: %w", len(r.history), r.user, errors.Join(problems...))
	}
	return w, nil
}

// ReadAll visits, and pages to the end of what was frozen, until a visit brings nothing new. Of a plain feed everything
// that the pools were sure to keep must have been shown then. It returns after the first answer with problems.
func (r *Reader) ReadAll(ctx context.Context) error {
	sure := r.sure()
	for {
		w, err := r.Visit(ctx)
		if err != nil {
			return err
		}
		if err := w.Finish(ctx); err != nil {
			return err
		}
		if w.fresh == 0 {
			break
		}
	}
	if !r.cfg.Plain {
		return nil
	}
	for _, s := range sure {
		if !r.news[s.pin] && r.product.Visible(r.user, s.source, s.pin) {
			return fmt.Errorf("visits of %s end without %s of pool %s", r.user, s.pin, s.source)
		}
	}
	return nil
}

// sure returns the candidates that no cap may have dropped.
func (r *Reader) sure() []shown {
	var sure []shown
	for _, source := range edgeSources() {
		for _, item := range r.product.Pool(r.user, source, r.cfg.Cap) {
			sure = append(sure, shown{item.Pin, source})
		}
	}
	return sure
}

// edgeSources are the sources that the product has pools of.
func edgeSources() []schemas.Source { return []schemas.Source{schemas.Following, schemas.FromInterest} }

// remember adds a visit's new items to what was shown.
func (r *Reader) remember(items []Item) {
	var v visit
	for _, item := range items {
		r.news[item.Pin] = true
		r.product.Serve(r.user, item.Pin)
		v = append(v, shown{item.Pin, item.Source})
	}
	if len(v) > 0 {
		r.history = slices.Insert(r.history, 0, v)
	}
}
