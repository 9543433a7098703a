package interests

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/smartfeed/smartfeed/internal/convert"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/schemas/visibility"
	"github.com/smartfeed/smartfeed/topics"
)

// Service handles requests about the terms of all partitions with their decisions, and about the interests of users.
type Service struct {
	Config     Config
	Partitions int32 // of the group's topics
	Rows       AllRows
	Decisions  AllDecisions
	Deleted    visibility.DeletedUsers
	Pins       PinCards
	Publisher  Publisher
}

// AllRows reads the rows of the group in all processes. See Reader.
type AllRows interface {
	Terms(ctx context.Context, partition int32, limit int, named []string) ([]schemas.DictionaryTerm, error)
	Interests(ctx context.Context, user schemas.UserID, limit int) ([]schemas.UserInterest, error)
	Engagement(ctx context.Context, interest schemas.InterestID, days int) ([]schemas.SourceEngagement, error)
}

// AllDecisions are Decisions that can be listed. *topics.GlobalTable implements it.
type AllDecisions interface {
	Decisions
	Each(visit func(term string, decision *schemas.InterestDecision))
	Len() int
}

// PinCards returns the current pins. Feed stores implement it.
type PinCards interface {
	Cards(ctx context.Context, pins []schemas.PinID) (map[schemas.PinID]schemas.Card, error)
}

// Publisher publishes decisions. *topics.Publisher implements it.
type Publisher interface {
	Decide(ctx context.Context, decision *schemas.InterestDecision) error
}

// Terms returns at most limit terms of a state: candidates by score, the others by name. A blocked term is in no other
// state, regardless of decisions.
func (s Service) Terms(ctx context.Context, state schemas.TermState, limit int) ([]schemas.DictionaryTerm, error) {
	switch state {
	case schemas.TermBlocked:
		return s.blocked(limit), nil
	case schemas.TermCandidate:
		return s.candidates(ctx, limit)
	}
	return s.withDecision(ctx, state, limit)
}

// blocked returns the terms of the configured list, and terms with a decision that are blocked now.
func (s Service) blocked(limit int) []schemas.DictionaryTerm {
	why, reasons := s.Config.Blocked(), map[string]string{}
	for term := range s.Config.BlockedTerms {
		reasons[Fold(term)] = why(Fold(term))
	}
	s.Decisions.Each(func(_ string, decision *schemas.InterestDecision) {
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
func (s Service) candidates(ctx context.Context, limit int) ([]schemas.DictionaryTerm, error) {
	list, err := s.fromAll(ctx, limit+s.Decisions.Len(), nil) // up to Len of them have a decision
	if err != nil {
		return nil, err
	}
	list = slices.DeleteFunc(list, func(t schemas.DictionaryTerm) bool {
		decision, ok := s.Decisions.Get(t.Term)
		return ok && decision.State != schemas.TermCandidate
	})
	slices.SortFunc(list, func(a, b schemas.DictionaryTerm) int { return cmp.Or(cmp.Compare(b.Score, a.Score), byName(a, b)) })
	return list[:min(limit, len(list))], nil
}

// withDecision returns the terms with the given decision, and their counts.
func (s Service) withDecision(ctx context.Context, state schemas.TermState, limit int) ([]schemas.DictionaryTerm, error) {
	list, blocked := []schemas.DictionaryTerm{}, s.Config.Blocked()
	s.Decisions.Each(func(_ string, decision *schemas.InterestDecision) {
		if decision.State == state && blocked(decision.Term) == "" {
			list = append(list, schemas.DictionaryTerm{
				Term: decision.Term, State: state, Interest: decision.Interest, Into: decision.Into,
				Reason: decision.Reason, Operator: decision.Operator, Decided: new(schemas.Timestamp(decision.Time)),
			})
		}
	})
	slices.SortFunc(list, byName)
	list = list[:min(limit, len(list))]
	names := convert.All(list, func(t schemas.DictionaryTerm) string { return t.Term })
	found, err := s.fromAll(ctx, 0, names)
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

// fromAll requests the terms from every partition.
func (s Service) fromAll(ctx context.Context, limit int, named []string) ([]schemas.DictionaryTerm, error) {
	of := make([][]string, s.Partitions)
	for _, name := range named {
		p := topics.Partition(name, s.Partitions)
		of[p] = append(of[p], name)
	}
	return topics.Gather(ctx, len(of), func(ctx context.Context, p int) ([]schemas.DictionaryTerm, error) {
		if limit <= 0 && of[p] == nil {
			return nil, nil
		}
		return s.Rows.Terms(ctx, int32(p), limit, of[p])
	})
}

// Fold normalizes a text to a term.
func (s Service) Fold(text string) string { return Fold(text) }

// Blocked returns the reason why the configuration blocks a term, or "" if it does not.
func (s Service) Blocked(term string) string { return s.Config.Blocked()(term) }

// Decided returns the last decision about a term in this process.
func (s Service) Decided(term string) (schemas.InterestDecision, bool) {
	decision, ok := s.Decisions.Get(term)
	if !ok {
		return schemas.InterestDecision{}, false
	}
	return *decision, true
}

// Decide publishes a decision.
func (s Service) Decide(ctx context.Context, decision schemas.InterestDecision) error {
	return s.Publisher.Decide(ctx, &decision)
}

// Interests returns a user's interests, none for a deleted user. It removes deleted pins from the evidence. It
// returns an error if no feed store can return the deleted pins.
func (s Service) Interests(ctx context.Context, user schemas.UserID, limit int) ([]schemas.UserInterest, error) {
	if s.Deleted.Has(user) {
		return []schemas.UserInterest{}, nil
	}
	list, err := s.Rows.Interests(ctx, user, limit)
	if err != nil {
		return nil, err
	}
	deleted, err := s.deletedPins(ctx, list)
	if err != nil {
		return nil, err
	}
	for i := range list {
		list[i].Evidence = slices.DeleteFunc(list[i].Evidence, func(e schemas.Evidence) bool { return deleted[e.Pin] })
	}
	return list, nil
}

// deletedPins returns the pins of the evidence that are deleted or have a deleted author.
func (s Service) deletedPins(ctx context.Context, list []schemas.UserInterest) (map[schemas.PinID]bool, error) {
	pins := map[schemas.PinID]bool{}
	for _, i := range list {
		for _, e := range i.Evidence {
			pins[e.Pin] = true
		}
	}
	if len(pins) == 0 {
		return nil, nil
	}
	cards, err := s.Pins.Cards(ctx, slices.Sorted(maps.Keys(pins)))
	if err != nil {
		return nil, fmt.Errorf("read cards of evidence: %w", err)
	}
	deleted := map[schemas.PinID]bool{}
	for pin, c := range cards {
		deleted[pin] = c.Deleted || s.Deleted.Has(c.Author)
	}
	return deleted, nil
}

// Engagement returns the engagement with an interest's pins, by source.
func (s Service) Engagement(ctx context.Context, interest schemas.InterestID, days int) ([]schemas.SourceEngagement, error) {
	return s.Rows.Engagement(ctx, interest, days)
}
