// Package visits reads feeds like users, visit by visit and page by page. It checks the responses against these
// guarantees and against the brute-force product of package oracle:
//
//   - No pin is new twice to a user. A visit and its pages contain no pin twice.
//   - New items are on top. Each one is a visible, unseen candidate of the source that it names, with its current attributes.
//     In a feed without rules, they are the best of each pool, in order and with the scores of the pool.
//   - The other items, and all pages, are the items of earlier visits, newest visit first, without items that are no
//     longer visible. There is no gap, no repeat and no early end, even if events arrive in the meantime.
//   - No response is degraded.
//
// The caller applies events to the product after the pipeline has processed them. The readers record the served items.
// HTTP reads feeds, pools and features from a server.
package visits

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/smartfeed/smartfeed/internal/testkit/oracle"
	"github.com/smartfeed/smartfeed/schemas"
)

// Feed answers visits and pages; see HTTP.
type Feed interface {
	// Visit returns the first page of a feed, new items on top.
	Visit(ctx context.Context, user schemas.UserID) (Page, error)
	// Older returns the page of a cursor.
	Older(ctx context.Context, user schemas.UserID, cursor string) (Page, error)
}

// Page is a response.
type Page struct {
	Items    []Item   `json:"items"`
	Next     *string  `json:"next"` // nil at the end of the feed
	Degraded []string `json:"degraded"`
}

// Item is one pin in a response.
type Item struct {
	Pin       schemas.PinID        `json:"pin"`
	New       bool                 `json:"new"`
	Source    schemas.Source       `json:"source"`
	Score     schemas.RankScore    `json:"score"`
	Time      time.Time            `json:"time"`
	Author    schemas.UserID       `json:"author"`
	Board     *schemas.BoardID     `json:"board"`
	Interests []schemas.InterestID `json:"interests"`
	Title     string               `json:"title"`
	Link      string               `json:"link"`
}

// Config describes the expected feed.
type Config struct {
	Limit int  // items per response, as the Feed requests them
	Cap   int  // minimum number of candidates that a pool keeps
	Plain bool // the feed has no rules: it serves the best of each pool, in order, until none is left
}

// Reader is a user who reads a feed. It is not safe for concurrent use.
type Reader struct {
	cfg     Config
	feed    Feed
	product *oracle.Product
	user    schemas.UserID
	seen    map[schemas.PinID]bool // pins that were served as new
	history []visit                // newest first
}

// visit holds the new items of one visit, in order.
type visit []shown

type shown struct {
	pin    schemas.PinID
	source schemas.Source
}

// NewReader returns a reader without visits.
func NewReader(cfg Config, feed Feed, product *oracle.Product, user schemas.UserID) *Reader {
	return &Reader{cfg: cfg, feed: feed, product: product, user: user, seen: map[schemas.PinID]bool{}}
}

// Shown returns the number of pins that were served as new so far.
func (r *Reader) Shown() int { return len(r.seen) }

// Visit makes a visit, checks the response, and returns the walk that its cursor starts. The error joins all problems of the
// response.
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

// ReadAll makes visits, and reads all pages of each, until a visit has no new item. A plain feed must then have served
// every candidate within the minimum capacity of the pools. ReadAll returns after the first response with problems.
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
		if !r.seen[s.pin] && r.product.Visible(r.user, s.source, s.pin) {
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

// edgeSources returns the sources with pools in the product.
func edgeSources() []schemas.Source { return []schemas.Source{schemas.Following, schemas.FromInterest} }

// remember records the new items of a visit as seen.
func (r *Reader) remember(items []Item) {
	var v visit
	for _, item := range items {
		r.seen[item.Pin] = true
		r.product.Serve(r.user, item.Pin)
		v = append(v, shown{item.Pin, item.Source})
	}
	if len(v) > 0 {
		r.history = slices.Insert(r.history, 0, v)
	}
}
