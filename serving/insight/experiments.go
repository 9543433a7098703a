package insight

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/smartfeed/smartfeed/internal/experiment"
	"github.com/smartfeed/smartfeed/schemas"
)

// effect is the relative effect for which experiments report the days needed.
const effect = 0.05

// Experiments returns the arms of each feed in the last days up to today, with the users' actions from their first visit on.
// There are 1 to MaxActions verbs, and days is at least 1 and at most Config.SequenceDays.
func (s *Service) Experiments(ctx context.Context, verbs []schemas.Verb, days int) ([]experiment.Experiment, error) {
	if err := cmp.Or(within("actions", len(verbs), MaxActions), within("days", days, s.cfg.SequenceDays)); err != nil {
		return nil, err
	}
	return answer(ctx, s, "experiments", func(ctx context.Context) ([]experiment.Experiment, error) {
		arms := experiment.Tallies{Verbs: schemas.Strings(verbs)}
		for feed, shares := range s.cfg.Arms() {
			for arm, share := range shares {
				arms.Of(feed, arm).Share = share
			}
		}
		request := schemas.InsightRequest{Experiments: &schemas.ExperimentsRequest{Verbs: verbs, Days: days}}
		err := s.each(ctx, request, func(p *schemas.InsightPart) error { return addArms(&arms, p.Experiments) })
		return experiment.Compare(arms.All, float64(days), effect), err
	})
}

// addArms adds the users of a partition.
func addArms(arms *experiment.Tallies, part []experiment.Tally) error {
	if part == nil {
		return errors.New("a part has no experiments: run the same release in all processes")
	}
	for _, t := range part {
		if len(t.Actions) != len(arms.Verbs) {
			return fmt.Errorf("a part has %d actions, want %d", len(t.Actions), len(arms.Verbs))
		}
		arms.Of(t.Feed, t.Arm).Merge(t)
	}
	return nil
}
