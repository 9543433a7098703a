package cli

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/smartfeed/smartfeed/internal/tools/simulate"
	"github.com/smartfeed/smartfeed/topics"
)

func (p *program) simulateCommand() *cobra.Command {
	cfg := simulate.DefaultConfig()
	span := "forever"
	cmd := &cobra.Command{
		Use:   "simulate",
		Short: "Simulate users, boards, follows, pins and actions",
		Long: `Publish a simulated population with boards, interests, follows and pins. The same seed gives the same population. Then
simulate users who create pins, follow, view, click and save, at a given rate. A second run with the same seed continues with
the same population.`,
		Example: "  smartfeed simulate --users 200 --pins 1000 --rate 20 --for 5m\n  smartfeed simulate --for 0 -o json",
		Args:    noArguments,
		RunE: p.printsOf(func(cmd *cobra.Command, _ []string, setup topics.Setup) (any, error) {
			duration, err := parseSpan(span)
			if err := errors.Join(cfg.Validate(), err); err != nil {
				return nil, usage(err)
			}
			return simulate.Run(cmd.Context(), setup, cfg, duration, nil)
		}),
	}
	f := cmd.Flags()
	f.IntVar(&cfg.Users, "users", cfg.Users, "number of users")
	f.IntVar(&cfg.BoardsPerUser, "boards-per-user", cfg.BoardsPerUser, "number of boards per user")
	f.IntVar(&cfg.Interests, "interests", cfg.Interests, "number of interests")
	f.IntVar(&cfg.Pins, "pins", cfg.Pins, "initial number of pins")
	f.IntVar(&cfg.Follows, "follows", cfg.Follows, "number of follows per user; 0: varies from 3, few users follow many")
	f.IntVar(&cfg.Star, "star", cfg.Star, "number of additional followers of the first user")
	f.Float64Var(&cfg.Rate, "rate", cfg.Rate, "events per second after the population; 0: no limit")
	f.Uint64Var(&cfg.Seed, "seed", cfg.Seed, "seed of the population")
	f.StringVar(&span, "for", span, `duration of the simulation, "forever", or 0 to publish only the population`)
	return cmd
}

// parseSpan parses a duration that may be forever.
func parseSpan(text string) (time.Duration, error) {
	if text == "forever" {
		return simulate.Forever, nil
	}
	span, err := time.ParseDuration(text)
	if err != nil || span < 0 {
		return 0, fmt.Errorf(`for: %q: want a duration such as 90s, 0, or "forever"`, text)
	}
	return span, nil
}
