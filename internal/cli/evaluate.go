package cli

import (
	"cmp"

	"github.com/spf13/cobra"

	"github.com/smartfeed/smartfeed/internal/tools/evaluate"
	"github.com/smartfeed/smartfeed/internal/training"
)

func (p *program) evaluateCommand() *cobra.Command {
	cfg, policy := evaluate.DefaultConfig(), ""
	cmd := &cobra.Command{
		Use:   "evaluate DIR",
		Short: "Compare experiment arms, and estimate a new policy, from exported training rows",
		Long: `Read the rows that "smartfeed training export" has written to DIR. For each arm, print the rates of the actions per item and per
visit, and the difference to the first arm, with 95 % confidence intervals that treat users, not items, as independent. Check
whether the numbers of users match the shares of the arms, and compute the days after which an effect would be detected.

With --policy, estimate the rates of a policy that did not run, from the visits of a feed with "randomize": by inverse
propensity scoring (IPS), self-normalized (SNIPS), and doubly robust. The file has the keys feed, shares (by source), utility
(weights of the model's outputs), score (weight of the generator's score) and temperature. The exit code is 1 if the log has too
little of what the policy would do.`,
		Example: "  smartfeed evaluate rows --action save --action hide\n  smartfeed evaluate rows --policy policy.yaml -o json",
		Args:    cobra.ExactArgs(1),
		RunE: p.prints(func(_ *cobra.Command, args []string) (_ any, err error) {
			if policy != "" {
				cfg.Policy, err = evaluate.ReadPolicy(policy)
			}
			if err = cmp.Or(err, cfg.Validate()); err != nil {
				return nil, usage(err)
			}
			log, err := training.Open(args[0])
			if err != nil {
				return nil, err
			}
			report, err := evaluate.Run(log, cfg)
			if report == nil {
				return nil, err
			}
			return output{value: report, failure: err}, nil
		}),
	}
	f := cmd.Flags()
	f.StringArrayVar(&cfg.Actions, "action", nil, "verb of the actions; repeatable (default all labels)")
	f.StringVar(&policy, "policy", "", "file with a policy to estimate")
	f.Float64Var(&cfg.MinOverlap, "min-overlap", cfg.MinOverlap, "minimum effective sample size for a policy, as a share of the places")
	f.Float64Var(&cfg.Effect, "effect", cfg.Effect, "relative effect to detect, 0.05 for 5 %")
	_ = cmd.MarkFlagFilename("policy", "yaml", "yml") // the flag exists: it was added above
	return cmd
}
