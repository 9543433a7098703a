package cli

import (
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/smartfeed/smartfeed/internal/command"
	"github.com/smartfeed/smartfeed/serving/feature"
	"github.com/smartfeed/smartfeed/serving/featurelog"
	"github.com/smartfeed/smartfeed/topics"
)

// featuresCommand returns the commands for definitions and the training log.
func (p *program) featuresCommand() *cobra.Command {
	return group("features", "Try feature definitions, recompute features, and verify the training log", "  smartfeed features verify -o json",
		p.tryFeaturesCommand(), p.verifyFeaturesCommand(), p.historyCommand())
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
		Args:    noArguments,
		RunE: p.printsOf(func(cmd *cobra.Command, _ []string, setup topics.Setup) (any, error) {
			defined, err := p.defined(cmd, setup)
			if err != nil {
				return nil, err
			}
			drifts, err := featurelog.Verify(cmd.Context(), defined, dir)
			write := func(out io.Writer) error { return featurelog.WriteDrifts(out, drifts) }
			return output{value: drifts, text: write, failure: featurelog.CheckDrifts(drifts)}, err
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
		Args:    noArguments,
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

// maxDefinitionBytes is the maximum length of a definition to try, the same as on the server.
const maxDefinitionBytes = 16 << 10

func (p *program) tryFeaturesCommand() *cobra.Command {
	var e evaluation
	cmd := &cobra.Command{
		Use:   "try FILE",
		Short: "Evaluate feature definitions without storing them",
		Long: `Evaluate the features in FILE on a running server, which does not store the definitions. FILE, or standard input for "-", has
one definition, a list of at most ten, or the contents of a features.yaml. Errors have the line of FILE.`,
		Example: "  smartfeed features try saves.yaml --user user:ada\n  smartfeed features try - --user user:ada --pair 'user:ada|pin:42' -o json",
		Args:    cobra.ExactArgs(1),
		RunE: requests(p, (*tables).features, func(cmd *cobra.Command, args []string) (request, error) {
			req, err := e.trial(cmd.InOrStdin(), args[0])
			return request{path: []string{"features", "try"}, body: req}, err
		}),
	}
	e.flags(cmd)
	return cmd
}

// trial returns the request for the file and the flags. Invalid flags are a *command.UsageError.
func (e *evaluation) trial(stdin io.Reader, file string) (feature.TryRequest, error) {
	if e.empty() {
		return feature.TryRequest{}, command.Usagef("want a --user, --pin or --pair")
	}
	of, err := e.entities()
	if err != nil {
		return feature.TryRequest{}, err
	}
	text, err := definitionIn(stdin, file)
	return feature.TryRequest{Definition: text, Users: of.Users, Pins: of.Pins, Pairs: of.Pairs, At: of.At}, err
}

// definitionIn reads a file, or standard input for "-", up to the limit of the server.
func definitionIn(stdin io.Reader, file string) (string, error) {
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return "", fmt.Errorf("read definitions: %w", err)
		}
		defer f.Close()
		stdin = f
	}
	text, err := io.ReadAll(io.LimitReader(stdin, maxDefinitionBytes+1))
	if err == nil && len(text) > maxDefinitionBytes {
		err = fmt.Errorf("more than %d bytes", maxDefinitionBytes)
	}
	if err != nil {
		return "", fmt.Errorf("read definitions: %w", err)
	}
	return string(text), nil
}
