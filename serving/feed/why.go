package feed

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/smartfeed/smartfeed/schemas"
)

// Why is the state of a pin for a user, or how a visit now would handle it.
type Why struct {
	User schemas.UserID `json:"user"`
	Pin  schemas.PinID  `json:"pin"`
	Feed string         `json:"feed"`
	Arm  string         `json:"arm,omitempty"` // the experiment arm of the feed that the user is in; "": none

	Fate   schemas.Fate   `json:"fate"`
	Reason schemas.Reason `json:"reason,omitempty"`
	By     []schemas.ID   `json:"by"`              // the users or objects that are the reason
	Place  int            `json:"place,omitempty"` // from 1, in the chunk of a visit now, if the pin would be in it
	Since  *time.Time     `json:"since,omitempty"` // when it was deferred

	Shown      *Shown         `json:"shown"` // nil: it was not shown
	Candidates []WhyCandidate `json:"candidates"`
	Degraded   []string       `json:"degraded"` // the parts that were unavailable
}

// Shown describes how a pin was shown.
type Shown struct {
	Time     time.Time      `json:"time"`
	Position int64          `json:"position"`         // in the materialized feed; the item that was shown first has position 1
	Source   schemas.Source `json:"source,omitempty"` // like Score, "" when the materialized feed no longer holds the item
	Score    *float64       `json:"score,omitempty"`
}

// WhyCandidate is a pin in the pool of one source.
type WhyCandidate struct {
	Source schemas.Source     `json:"source"`
	Reason schemas.Reason     `json:"reason,omitempty"` // why it is not a visible candidate; "": it is one
	Rank   int                `json:"rank,omitempty"`   // among the visible candidates, from 1, by write-time score
	Edges  []schemas.ID       `json:"edges"`            // live edges that justify it
	Score  float64            `json:"score"`            // the score that a response would contain
	Parts  map[string]float64 `json:"parts"`            // the terms whose sum is the score
}

// thoughtOf is the limit of the hypothetical visit that Why evaluates.
const thoughtOf = 25

var errNobodyExplains = errors.New("nobody here can tell why")

// Why reports the state of a pin for a user in a feed. If masked is set, the answer is for that user and does not disclose
// who blocks them. Why returns schemas.ErrUnknownFeed, or an error if the generator is unavailable. If the store is
// unavailable, the answer is less complete and its Degraded says so.
func (s *Service) Why(ctx context.Context, user schemas.UserID, feed string, pin schemas.PinID, masked bool) (Why, error) {
	if len(feed) > maxFeedName {
		return Why{}, fmt.Errorf("feed of %d bytes: %w", len(feed), schemas.ErrUnknownFeed)
	}
	if s.deps.Explainer == nil {
		return Why{}, errNobodyExplains
	}
	if s.deps.Deleted.Has(user) {
		return Why{
			User: user, Pin: pin, Feed: feed, Fate: schemas.FateOut, Reason: schemas.ReasonUserGone,
			By: []schemas.ID{}, Candidates: []WhyCandidate{}, Degraded: []string{},
		}, nil
	}
	defer s.metrics.time("why", s.deps.Now)()
	r := s.newReader(user)
	request := schemas.WhyRequest{
		User: user, Pin: pin, Feed: feed, Limit: thoughtOf, Time: schemas.MicrosOf(s.deps.Now()), Masked: masked,
	}
	if r.learnCards(ctx, []schemas.ServedItem{{Pin: pin}}) {
		request.Card = r.facts.cards[pin]
	}
	said, err := begin(ctx, s.generator, s.cfg.GeneratorTimeout, func(ctx context.Context) (*schemas.Why, error) {
		return s.deps.Explainer.Why(ctx, request)
	}, nil).wait()
	if err != nil {
		return Why{}, fmt.Errorf("why %s for %s: %w", pin, user, err)
	}
	r.degrade(said.Degraded...)
	return r.why(ctx, request, said), nil
}

// why returns the answer for the generator's result.
func (r *reader) why(ctx context.Context, asked schemas.WhyRequest, said *schemas.Why) Why {
	w := Why{
		User: asked.User, Pin: asked.Pin, Feed: asked.Feed, Arm: said.Arm, Fate: said.Fate, Reason: said.Reason,
		By: orEmpty(said.By), Place: said.Place, Shown: r.shown(ctx, asked.Pin, said.Seen), Candidates: []WhyCandidate{},
	}
	if said.Since != 0 {
		at := said.Since.Writable().Time()
		w.Since = &at
	}
	for _, c := range said.Candidates {
		w.Candidates = append(w.Candidates, WhyCandidate{
			Source: c.Source, Reason: c.Reason, Rank: c.Rank, Edges: orEmpty(c.Edges), Score: c.Score, Parts: c.Parts,
		})
	}
	w.Degraded = orEmpty(r.degraded)
	return w
}

// shown describes how a pin was shown. If the generator no longer remembers it, shown reads the materialized feed.
func (r *reader) shown(ctx context.Context, pin schemas.PinID, seen *schemas.WhySeen) *Shown {
	if seen == nil {
		return nil
	}
	s := &Shown{Time: seen.Time.Writable().Time(), Position: seen.Position}
	item := seen.Item
	if item == nil {
		rows, ok := callStore(ctx, r, r.read(seen.Position+1, 1))
		if ok && len(rows.entries) == 1 && rows.entries[0].Pin == pin {
			item = &rows.entries[0].ServedItem
		}
	}
	if item != nil {
		s.Source, s.Score = item.Source, &item.Score
	}
	return s
}

func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
