package feed

import (
	"time"

	"github.com/smartfeed/smartfeed/schemas"
)

// Page is the answer to a visit or to a request for an older page.
type Page struct {
	Items    []Item   `json:"items"`
	Next     *string  `json:"next"`     // cursor for Older; nil only at the end of the materialized feed
	Degraded []string `json:"degraded"` // missing parts, see the package comment; [] if nothing is missing
}

// Item is a pin in a feed.
type Item struct {
	Pin
	New       bool              `json:"new"`    // first shown by this answer
	Source    schemas.Source    `json:"source"` // of the pool that the item came from
	RankScore schemas.RankScore `json:"score"`  // the generator's score when the item was first shown
}

// Pin is the current state of a pin. The card can be missing, because the store is unavailable or does not have it yet.
// Facets and time are then those of the first time that the pin was shown, and title and link are empty.
type Pin struct {
	ID        schemas.PinID        `json:"pin"`
	Time      time.Time            `json:"time"` // of creation
	Author    schemas.UserID       `json:"author"`
	Board     *schemas.BoardID     `json:"board"` // nil: none
	Interests []schemas.InterestID `json:"interests"`
	Title     string               `json:"title"`
	Link      string               `json:"link"`
}

// ListPage is a page of a followee's publications.
type ListPage struct {
	Items    []Pin    `json:"items"`
	Next     *string  `json:"next"`
	Degraded []string `json:"degraded"`
}

func pinOf(c *schemas.Card) Pin {
	p := Pin{
		ID: c.Pin, Time: c.Created.Writable().Time(),
		Author: c.Author, Interests: c.Interests, Title: c.Title, Link: c.Link,
	}
	if c.Board != "" {
		p.Board = &c.Board
	}
	if p.Interests == nil {
		p.Interests = []schemas.InterestID{}
	}
	return p
}

// page builds the answer. Next points at the position where the reading stopped.
func (r *reader) page(feed string, items []Item) Page {
	p := Page{Items: items, Degraded: r.degraded}
	if !r.ended() {
		next := r.svc.cursors.sealFeed(feedCursor{user: r.user, feed: feed, below: r.next + 1})
		p.Next = &next
	}
	return p.full()
}

// full replaces nil lists by empty ones, which JSON encodes as [].
func (p Page) full() Page {
	if p.Items == nil {
		p.Items = []Item{}
	}
	if p.Degraded == nil {
		p.Degraded = []string{}
	}
	return p
}
