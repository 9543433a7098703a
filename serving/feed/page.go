package feed

import (
	"time"

	"github.com/smartfeed/smartfeed/schemas"
)

// Page is the answer to a visit, or an older page of one.
type Page struct {
	Items    []Item   `json:"items"`
	Next     *string  `json:"next"`     // for Older; nil at the end of the frozen feed, and only there
	Degraded []string `json:"degraded"` // what is missing, see the package comment; [] when nothing is
}

// Item is a pin in a feed.
type Item struct {
	Pin
	New    bool           `json:"new"`    // first shown by this answer
	Source schemas.Source `json:"source"` // of the pool it was taken from
	Score  float64        `json:"score"`  // the generator's, when it was first shown
}

// Pin is what is shown of a pin, as it is now. Without its card (the store is away, or has not got it yet) facets and
// time are those of the moment it was first shown, and title and link are empty.
type Pin struct {
	ID        schemas.PinID        `json:"pin"`
	Time      time.Time            `json:"time"` // of its creation
	Author    schemas.UserID       `json:"author"`
	Board     *schemas.BoardID     `json:"board"` // nil: on none
	Interests []schemas.InterestID `json:"interests"`
	Title     string               `json:"title"`
	Link      string               `json:"link"`
}

// ListPage is a page of what a followee published.
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

// full makes empty lists of missing ones, so that they are [] in JSON.
func (p Page) full() Page {
	if p.Items == nil {
		p.Items = []Item{}
	}
	if p.Degraded == nil {
		p.Degraded = []string{}
	}
	return p
}
