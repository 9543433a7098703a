package app

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/smartfeed/smartfeed/processors/interests"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/serving/peers"
	"github.com/smartfeed/smartfeed/topics"
)

// dictionary gives the API access to the terms of all partitions with their decisions, and to the known interests of
// users.
type dictionary struct {
	cfg        interests.Config
	partitions int32
	publisher  *topics.Publisher
	known      peers.Interests
	decided    *topics.GlobalTable[schemas.InterestDecision]
	deleted    topics.DeletedUsers
	present    interface { // the current pins; implemented by feed stores
		Cards(ctx context.Context, pins []schemas.PinID) (map[schemas.PinID]schemas.Card, error)
	}
}

// Terms returns at most limit terms of a state: candidates by score, the others by name. A blocked term is in no other
// state, whatever was decided about it.
func (d dictionary) Terms(ctx context.Context, state schemas.TermState, limit int) ([]schemas.DictionaryTerm, error) {
	switch state {
	case schemas.TermBlocked:
		return d.blocked(limit), nil
	case schemas.TermCandidate:
		return d.candidates(ctx, limit)
	}
	return d.decisions(ctx, state, limit)
}

// blocked returns the terms of the configured list, and terms with a decision that are blocked now.
func (d dictionary) blocked(limit int) []schemas.DictionaryTerm {
	why, reasons := d.cfg.Blocked(), map[string]string{}
	for term := range d.cfg.Block {
		reasons[interests.Fold(term)] = why(interests.Fold(term))
	}
	d.decided.Each(func(_ string, decision *schemas.InterestDecision) {
		if reason := why(decision.Term); reason != "" && decision.State != schemas.TermCandidate {
			reasons[decision.Term] = reason
		}
	})
	list := []schemas.DictionaryTerm{}
	for term, reason := range reasons {
		list = append(list, schemas.DictionaryTerm{Term: term, State: schemas.TermBlocked, Reason: reason})
	}
	slices.SortFunc(list, byName)
	return list[:min(limit, len(list))]
}

func byName(a, b schemas.DictionaryTerm) int { return cmp.Compare(a.Term, b.Term) }

// candidates returns the terms without a decision.
func (d dictionary) candidates(ctx context.Context, limit int) ([]schemas.DictionaryTerm, error) {
	open := func(t schemas.DictionaryTerm) bool {
		decision, ok := d.decided.Get(t.Term)
		return !ok || decision.State == schemas.TermCandidate
	}
	list, err := d.ask(ctx, limit+d.decided.Len(), nil) // that many may have a decision
	if err != nil {
		return nil, err
	}
	list = slices.DeleteFunc(list, func(t schemas.DictionaryTerm) bool { return !open(t) })
	slices.SortFunc(list, func(a, b schemas.DictionaryTerm) int { return cmp.Or(cmp.Compare(b.Score, a.Score), byName(a, b)) })
	return list[:min(limit, len(list))], nil
}

// decisions returns the terms with the given decision and what is known about them.
func (d dictionary) decisions(ctx context.Context, state schemas.TermState, limit int) ([]schemas.DictionaryTerm, error) {
	list, blocked := []schemas.DictionaryTerm{}, d.cfg.Blocked()
	d.decided.Each(func(_ string, decision *schemas.InterestDecision) {
		if decision.State == state && blocked(decision.Term) == "" {
			list = append(list, schemas.DictionaryTerm{
				Term: decision.Term, State: state, Interest: decision.Interest, Into: decision.Into,
				Reason: decision.Reason, Operator: decision.Operator, Decided: decision.Time,
			})
		}
	})
	slices.SortFunc(list, byName)
	list = list[:min(limit, len(list))]
	var names []string
	for _, t := range list {
		names = append(names, t.Term)
	}
	found, err := d.ask(ctx, 0, names)
	if err != nil {
		return nil, err
	}
	counted := map[string]schemas.DictionaryTerm{}
	for _, t := range found {
		counted[t.Term] = t
	}
	for i := range list {
		t := counted[list[i].Term]
		list[i].Score, list[i].Pins, list[i].People, list[i].Recent = t.Score, t.Pins, t.People, t.Recent
	}
	return list, nil
}

// ask requests the terms from every partition.
func (d dictionary) ask(ctx context.Context, most int, named []string) ([]schemas.DictionaryTerm, error) {
	of := make([][]string, d.partitions)
	for _, name := range named {
		p := topics.Partition(name, d.partitions)
		of[p] = append(of[p], name)
	}
	answers := make([][]schemas.DictionaryTerm, d.partitions)
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(topicsAtOnce)
	for p := range d.partitions {
		if most == 0 && of[p] == nil {
			continue
		}
		g.Go(func() error {
			var err error
			answers[p], err = d.known.Terms(ctx, p, most, of[p])
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	return slices.Concat(answers...), nil
}

// Fold normalizes a text to a term.
func (d dictionary) Fold(text string) string { return interests.Fold(text) }

// Blocked returns why the configuration blocks a term, or "" if it does not.
func (d dictionary) Blocked(term string) string { return d.cfg.Blocked()(term) }

// Decided returns the last decision about a term that this process knows.
func (d dictionary) Decided(term string) (schemas.InterestDecision, bool) {
	decision, ok := d.decided.Get(term)
	if !ok {
		return schemas.InterestDecision{}, false
	}
	return *decision, true
}

// Decide publishes a decision.
func (d dictionary) Decide(ctx context.Context, decision schemas.InterestDecision) error {
	return d.publisher.Decide(ctx, &decision)
}

// Interests returns a user's interests, none for a deleted user. It removes deleted pins from the evidence, because the
// rows include only deletions that the users who liked a pin saw recently. It returns an error if no feed store can
// tell which pins are deleted.
func (d dictionary) Interests(ctx context.Context, user schemas.UserID, limit int) ([]schemas.UserInterest, error) {
	if d.deleted.Has(user) {
		return []schemas.UserInterest{}, nil
	}
	list, err := d.known.Interests(ctx, user, limit)
	if err != nil {
		return nil, err
	}
	gone, err := d.gone(ctx, list)
	if err != nil {
		return nil, err
	}
	for i := range list {
		list[i].Evidence = slices.DeleteFunc(list[i].Evidence, func(e schemas.Evidence) bool { return gone[e.Pin] })
	}
	return list, nil
}

// gone returns the pins of the evidence that are deleted or whose author is.
func (d dictionary) gone(ctx context.Context, list []schemas.UserInterest) (map[schemas.PinID]bool, error) {
	asked := map[schemas.PinID]bool{}
	for _, i := range list {
		for _, e := range i.Evidence {
			asked[e.Pin] = true
		}
	}
	if len(asked) == 0 {
		return nil, nil
	}
	cards, err := d.present.Cards(ctx, slices.Sorted(maps.Keys(asked)))
	if err != nil {
		return nil, fmt.Errorf("read cards of evidence: %w", err)
	}
	gone := map[schemas.PinID]bool{}
	for pin, c := range cards {
		gone[pin] = c.Deleted || d.deleted.Has(c.Author)
	}
	return gone, nil
}

// Engagement returns the engagement with an interest's pins, by source.
func (d dictionary) Engagement(ctx context.Context, interest schemas.InterestID, days int) ([]schemas.SourceEngagement, error) {
	return d.known.Engagement(ctx, interest, days)
}
