package cli

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/smartfeed/smartfeed/internal/command"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/serving/client"
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
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: p.completeNames(func(n names) []string { return n.features }),
		RunE: func(cmd *cobra.Command, names []string) error {
			req, err := e.request(names)
			if err != nil {
				return err
			}
			calls := requests(p, (*tables).features, func(*cobra.Command, []string) (request, error) {
				return request{path: []string{"features"}, body: req}, nil
			})
			if e.empty() {
				calls = requests(p, (*tables).definitions, get("features"))
			}
			return calls(cmd, names)
		},
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

// definitions is the answer of GET /v1/features.
type definitions struct {
	Features    []client.Definition
	FeatureSets map[string][]string `json:"feature_sets"`
}

func (t *tables) definitions(d definitions) {
	t.row("NAME", "OF", "WINDOW", "AGGREGATE", "MEANING")
	for _, f := range d.Features {
		t.row(f.Name, f.Entity, f.Window, f.Aggregate, f.Description)
	}
	for _, set := range slices.Sorted(maps.Keys(d.FeatureSets)) {
		t.row(fmt.Sprintf("set %s: %s", set, strings.Join(d.FeatureSets[set], ", ")))
	}
}

// featureValues is an answer with decoded values.
type featureValues struct {
	client.FeaturesAnswer
	Values map[string]map[string]any `json:"values"`
}

func (t *tables) features(v featureValues) {
	t.row("ENTITY", "FEATURE", "VALUE")
	for _, entity := range slices.Sorted(maps.Keys(v.Values)) {
		for _, name := range slices.Sorted(maps.Keys(v.Values[entity])) {
			for _, text := range spelled(v.Values[entity][name]) {
				t.row(entity, name, text)
			}
		}
	}
	for _, m := range v.Missing {
		t.row(fmt.Sprintf("missing: %s of %s: %s", m.Feature, m.Entity, m.Reason))
	}
	t.degraded(v.Degraded)
	t.row("as of " + local(v.AsOf))
}

// spelled formats a value as one text per part: the groups, greatest first, or the entries of a list.
func spelled(value any) (texts []string) {
	switch v := value.(type) {
	case map[string]any:
		if times, ok := v["time"].([]any); ok {
			texts = spelledSequence(times, v)
			break
		}
		groups := slices.Sorted(maps.Keys(v))
		slices.SortStableFunc(groups, func(a, b string) int { return cmp.Compare(number(v[b]), number(v[a])) })
		for _, g := range groups {
			texts = append(texts, formatted(v[g])+" "+g)
		}
	case []any:
		texts = spelledList(v)
	default:
		return []string{formatted(v)}
	}
	if len(texts) == 0 {
		return []string{"none"}
	}
	return texts
}

// spelledSequence returns a text per action, with the elements of its columns.
func spelledSequence(times []any, columns map[string]any) (texts []string) {
	for i, at := range times {
		text := ""
		for _, name := range slices.Sorted(maps.Keys(columns)) {
			column, _ := columns[name].([]any)
			if i >= len(column) {
				continue
			}
			switch v := column[i].(type) {
			case string:
				text += v + " "
			case []any:
				text += vector(v) + " "
			}
		}
		texts = append(texts, text+"at "+local(time.UnixMilli(int64(number(at)))))
	}
	return texts
}

func number(v any) float64 {
	n, _ := v.(float64)
	return n
}

func spelledList(list []any) (texts []string) {
	for _, entry := range list {
		switch e, _ := entry.(map[string]any); {
		case e == nil: // a number
			return []string{vector(list)}
		case e["value"] != nil: // of top
			texts = append(texts, formatted(e["count"])+" "+formatted(e["value"]))
		default: // of last
			texts = append(texts, formatted(e["verb"])+" "+formatted(e["object"])+" at "+formatted(e["timestamp"]))
		}
	}
	return texts
}

// vector formats the first numbers of a vector and how many there are.
func vector(list []any) string {
	const most = 4
	first := make([]string, min(len(list), most))
	for i := range first {
		first[i] = formatted(list[i])
	}
	dots := ""
	if len(list) > most {
		dots = " …"
	}
	return fmt.Sprintf("[%s%s] %d numbers", strings.Join(first, " "), dots, len(list))
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
			text := asTables(func(t *tables) { t.drifts(drifts) })
			return output{value: drifts, text: text, failure: featurelog.CheckDrifts(drifts)}, err
		}),
	}
	cmd.Flags().StringVar(&dir, "dir", "", "directory with the files of the log (default: read the topic)")
	return cmd
}

func (t *tables) drifts(drifts []featurelog.Drift) {
	if len(drifts) == 0 {
		t.row("the log is empty")
		return
	}
	t.row("feature", "compared", "equal", "late", "mismatched", "missing", "skipped", "smape")
	for _, d := range drifts {
		t.row(d.Feature, d.Compared, d.Equal, d.Late, d.Mismatched, d.Missing, d.Skipped, fmt.Sprintf("%.6f", d.SMAPE))
	}
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
