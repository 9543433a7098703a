package cli

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/smartfeed/smartfeed/internal/command"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/serving/feature"
	"github.com/smartfeed/smartfeed/serving/featurelog"
	"github.com/smartfeed/smartfeed/topics"
)

// evaluation has the flags for the entities and the time of a request for features.
type evaluation struct {
	sets               []string // only of featureCommand
	users, pins, pairs []string
	at                 string
}

func (p *program) featureCommand() *cobra.Command {
	var e evaluation
	cmd := &cobra.Command{
		Use:   "features [NAME...]",
		Short: "Evaluate features, or list all features",
		Example: `  smartfeed query features
  smartfeed query features interests_24h last_actions --user user:ada
  smartfeed query features pair_author_96h --pair 'user:ada|pin:42'
  smartfeed query features --set ranking --user user:ada --pin pin:42`,
		Args: cobra.ArbitraryArgs,
		RunE: p.prints(func(cmd *cobra.Command, names []string) (any, error) {
			req, err := e.request(names)
			if err != nil {
				return nil, err
			}
			if e.empty() {
				answer, err := p.ask(cmd, request{path: []string{"features"}})
				return output{value: answer, columns: []string{"name", "entity", "window", "aggregate", "description"}}, err
			}
			return p.ask(cmd, request{path: []string{"features"}, body: req})
		}),
	}
	cmd.Flags().StringArrayVar(&e.sets, "set", nil, "feature set to evaluate (repeatable)")
	e.flags(cmd)
	return cmd
}

// flags adds the flags for the entities and the time.
func (e *evaluation) flags(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&e.users, "user", nil, "user to evaluate for (repeatable)")
	cmd.Flags().StringArrayVar(&e.pins, "pin", nil, "pin to evaluate for (repeatable)")
	cmd.Flags().StringArrayVar(&e.pairs, "pair", nil, "pair to evaluate for, USER|PIN (repeatable)")
	cmd.Flags().StringVar(&e.at, "at", "", "end of the windows, RFC 3339 (default now)")
}

// empty reports whether no entity is given.
func (e *evaluation) empty() bool { return len(e.users)+len(e.pins)+len(e.pairs) == 0 }

// request returns the request for the flags, or a *command.UsageError.
func (e *evaluation) request(names []string) (feature.Request, error) {
	if (len(names)+len(e.sets) == 0) != e.empty() {
		return feature.Request{}, command.Usagef("want names of features and a --user, --pin or --pair, or a --set in place of the names; to list the features, want neither")
	}
	req, err := e.entities()
	req.Features, req.FeatureSets = names, e.sets
	return req, err
}

// entities parses the entities and the time in the flags. Its error is a *command.UsageError.
func (e *evaluation) entities() (req feature.Request, err error) {
	if req.Users, err = parsed(e.users, schemas.ParseUserID); err != nil {
		return req, err
	}
	if req.Pins, err = parsed(e.pins, schemas.ParsePinID); err != nil {
		return req, err
	}
	if req.Pairs, err = parsed(e.pairs, parsePair); err != nil {
		return req, err
	}
	if at, err := parseTime("at", e.at); err != nil {
		return req, usage(err)
	} else if !at.IsZero() {
		req.At = &at
	}
	return req, nil
}

func parsed[T any](texts []string, parse func(string) (T, error)) ([]T, error) {
	all := make([]T, 0, len(texts))
	for _, text := range texts {
		v, err := parse(text)
		if err != nil {
			return nil, usage(err)
		}
		all = append(all, v)
	}
	return all, nil
}

// parsePair parses a pair in the form of answers, user:…|pin:…. The user ends at the first |pin:.
func parsePair(text string) (feature.UserPin, error) {
	user, pin, ok := strings.Cut(text, "|pin:")
	if !ok {
		return feature.UserPin{}, fmt.Errorf("pair: %.64q: want USER|PIN", text)
	}
	u, err := schemas.ParseUserID(user)
	if err != nil {
		return feature.UserPin{}, err
	}
	p, err := schemas.ParsePinID("pin:" + pin)
	return feature.UserPin{User: u, Pin: p}, err
}

// parseTime parses the value of a flag. The zero time stands for "".
func parseTime(flag, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return t, fmt.Errorf("--%s: %q: want a time such as 2026-11-20T10:00:00Z", flag, text)
	}
	return t, nil
}

// featuresCommand returns the commands for the training log.
func (p *program) featuresCommand() *cobra.Command {
	return group("features", "Recompute features, and verify the training log", "  smartfeed features verify -o json",
		p.verifyFeaturesCommand(), p.historyCommand())
}

func (p *program) verifyFeaturesCommand() *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:   "verify",
		Short: "Recompute logged features and report the drift",
		Long: `Read logged features from the topic feature-log, or with --dir from files. Recompute them from all actions in the topic
actions-enriched and from impressions and pin-attributes, and compare. The report separates values that differ
because a record was late from values that differ for no known reason. If there are any of the latter, the exit code is 1.

These values are not compared: means of pins' recent actors, values that were not evaluated in time, and values that depend on
actions or changes of pins that are no longer in their topics.`,
		Example: "  smartfeed features verify\n  smartfeed features verify --dir data/feature-log -o json",
		RunE: p.printsOf(func(cmd *cobra.Command, _ []string, setup topics.Setup) (any, error) {
			defined, err := p.defined(cmd, setup)
			if err != nil {
				return nil, err
			}
			drifts, err := featurelog.Verify(cmd.Context(), defined, dir)
			return output{value: drifts, failure: featurelog.CheckDrifts(drifts)}, err
		}),
	}
	cmd.Flags().StringVar(&dir, "dir", "", "directory with the files of the log (default: read the topic)")
	return cmd
}

// defined adds the definitions of the configuration to a setup.
func (p *program) defined(cmd *cobra.Command, setup topics.Setup) (featurelog.Setup, error) {
	cfg, err := p.load(cmd)
	if err != nil {
		return featurelog.Setup{}, err
	}
	definitions, err := feature.Load(cfg.FeaturesFile)
	return featurelog.Setup{Setup: setup, Definitions: definitions}, err
}

func (p *program) historyCommand() *cobra.Command {
	var names []string
	var files featurelog.HistoryFiles
	cmd := &cobra.Command{
		Use:   "history",
		Short: "Add the values that features had at the times of the rows of a file",
		Long: `Read JSON lines with the keys user, pin and time (RFC 3339), and any others. Write each with the values that the features
had at its time in "values". They are computed from the topics actions-enriched, impressions and pin-attributes, with the
records that had arrived by then. "missing" has reasons by feature, those of POST /v1/features and: "retention" if the
topics no longer have all data, and "order" for means of pins' recent actors. If a row is invalid, nothing is written.

The topics are read once for every 100,000 rows. Rows in the order of their time need less memory.`,
		Example: "  smartfeed features history --rows rows.jsonl --features taste_24h,pair_author_96h,@ranking --out examples.jsonl",
		RunE: p.printsOf(func(cmd *cobra.Command, _ []string, setup topics.Setup) (any, error) {
			if files.Rows == "" || files.Out == "" || len(names) == 0 {
				return nil, command.Usagef("want --rows, --out and --features")
			}
			defined, err := p.defined(cmd, setup)
			if err != nil {
				return nil, err
			}
			rows, err := featurelog.History(cmd.Context(), defined, names, files)
			return line(map[string]int{"rows": rows}, "wrote %d rows", rows), err
		}),
	}
	cmd.Flags().StringVar(&files.Rows, "rows", "", "file to read")
	cmd.Flags().StringVar(&files.Out, "out", "", "file to write")
	cmd.Flags().StringSliceVar(&names, "features", nil, "names of features, and of feature sets after @")
	return cmd
}
