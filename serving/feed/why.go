package feed

import (
	"context"
	"errors"
	"fmt"

	"github.com/smartfeed/smartfeed/schemas"
)

// whyLimit is the limit of the hypothetical visit that Why evaluates.
const whyLimit = 25

var errNoExplainer = errors.New("why: this process has no explainer")

// Why reports the state of a pin for a user in a feed. If masked is set, the answer is for that user and does not disclose
// who blocks them. Why returns schemas.ErrUnknownFeed, or an error if the generator is unavailable. If the store is
// unavailable, the answer is less complete and its Degraded says so.
func (s *Service) Why(ctx context.Context, user schemas.UserID, feed string, pin schemas.PinID, masked bool) (*schemas.Why, error) {
	if len(feed) > maxFeedName {
		return nil, fmt.Errorf("feed of %d bytes: %w", len(feed), schemas.ErrUnknownFeed)
	}
	if s.deps.Explainer == nil {
		return nil, errNoExplainer
	}
	if s.deps.Deleted.Has(user) {
		return &schemas.Why{User: user, Pin: pin, Feed: feed, Fate: schemas.FateOut, Reason: schemas.ReasonUserDeleted}, nil
	}
	defer s.metrics.time("why", s.deps.Now)()
	r := s.newReader(user)
	request := schemas.WhyRequest{
		User: user, Pin: pin, Feed: feed, Limit: whyLimit, Time: schemas.MicrosOf(s.deps.Now()), Masked: masked,
	}
	if r.loadCards(ctx, []schemas.ServedItem{{Pin: pin}}) {
		request.Card = r.facts.cards[pin]
	}
	why, err := begin(ctx, s.generator, s.cfg.GeneratorTimeout, func(ctx context.Context) (*schemas.Why, error) {
		return s.deps.Explainer.Why(ctx, request)
	}, nil).wait()
	if err != nil {
		return nil, fmt.Errorf("why %s for %s: %w", pin, user, err)
	}
	why.User, why.Pin, why.Feed = user, pin, feed
	r.complete(ctx, why)
	return why, nil
}

// complete adds data from the store to the generator's answer.
func (r *reader) complete(ctx context.Context, why *schemas.Why) {
	r.degrade(why.Degraded...)
	if why.Shown != nil && why.Shown.RankScore == nil {
		r.readShown(ctx, why.Pin, why.Shown)
	}
	why.Degraded = r.degraded
}

// readShown reads the source and score of a pin that the generator no longer remembers from the materialized feed.
func (r *reader) readShown(ctx context.Context, pin schemas.PinID, shown *schemas.Shown) {
	rows, ok := callStore(ctx, r, r.read(shown.Position+1, 1))
	if ok && len(rows.entries) == 1 && rows.entries[0].Pin == pin {
		shown.Source, shown.RankScore = rows.entries[0].Source, &rows.entries[0].RankScore
	}
}
