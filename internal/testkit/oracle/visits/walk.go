package visits

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/smartfeed/smartfeed/schemas"
)

// Walk reads the materialized feed from a visit to its end, page by page. Other visits and walks of the same user can
// happen in between.
type Walk struct {
	reader *Reader
	next   *string
	page   int
	fresh  int                    // number of new items of the visit
	held   map[schemas.PinID]bool // items of the visit and its pages
	track  *track
}

// track holds the items that a walk must still return: those of earlier visits, newest visit first, in their order.
type track struct {
	left []shown
	lost error // first item that deviates from the track
}

// track returns the track that starts at the newest visit so far.
func (r *Reader) track() *track {
	t := &track{}
	for _, v := range r.history {
		t.left = append(t.left, v...)
	}
	return t
}

// Next reads and checks the next page. The error joins all problems of the page.
func (w *Walk) Next(ctx context.Context) error {
	w.page++
	where := fmt.Sprintf("page %d below a visit of %s", w.page, w.reader.user)
	page, err := w.reader.feed.Older(ctx, w.reader.user, *w.next)
	if err != nil {
		return fmt.Errorf("%s: %w", where, err)
	}
	w.next = page.Next
	problems := w.reader.checkPage(page)
	for _, item := range page.Items {
		if item.New {
			problems = append(problems, fmt.Errorf("%s: new on a page", item.Pin))
		}
	}
	if problems = append(problems, w.take(page.Items)...); len(problems) > 0 {
		return fmt.Errorf("%s: %w", where, errors.Join(problems...))
	}
	return nil
}

// Finish reads and checks pages to the end.
func (w *Walk) Finish(ctx context.Context) error {
	for w.next != nil {
		if err := w.Next(ctx); err != nil {
			return err
		}
	}
	return nil
}

// take checks the items of a response against the track.
func (w *Walk) take(items []Item) []error {
	var problems []error
	frozen := false
	for _, item := range items {
		if w.held[item.Pin] {
			problems = append(problems, fmt.Errorf("%s: repeated in the same walk", item.Pin))
		}
		w.held[item.Pin] = true
		if item.New && frozen {
			problems = append(problems, fmt.Errorf("%s: new below an item that is not new", item.Pin))
		}
		if frozen = frozen || !item.New; !item.New {
			w.track.follow(w.reader, item.Pin)
		}
	}
	if w.next == nil {
		w.track.end(w.reader)
	}
	if w.track.lost != nil {
		problems = append(problems, w.track.lost)
	}
	return problems
}

// follow advances the track to the pin. All skipped items must be invisible.
func (t *track) follow(r *Reader, pin schemas.PinID) {
	at := slices.IndexFunc(t.left, func(s shown) bool { return s.pin == pin })
	switch {
	case t.lost != nil:
	case at < 0:
		t.lost = fmt.Errorf("%s: not among the remaining items of earlier visits", pin)
	default:
		t.passOver(r, t.left[:at], "before "+string(pin))
		t.left = t.left[at+1:]
	}
}

// end checks that no visible item is left.
func (t *track) end(r *Reader) {
	if t.lost == nil {
		t.passOver(r, t.left, "at the end")
	}
}

func (t *track) passOver(r *Reader, gap []shown, where string) {
	for _, s := range gap {
		if r.product.VisibleMaterialized(r.user, s.source, s.pin) {
			t.lost = fmt.Errorf("%s: missing %s", s.pin, where)
			return
		}
	}
}
