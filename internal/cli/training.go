package cli

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/smartfeed/smartfeed/internal/command"
	"github.com/smartfeed/smartfeed/internal/tools/export"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// trainingCommand returns the commands for training data.
func (p *program) trainingCommand() *cobra.Command {
	return group("training", "Export training data", "  smartfeed training export --label save=24h --out training", p.exportCommand())
}

func (p *program) exportCommand() *cobra.Command {
	cfg := export.DefaultConfig()
	var labels []string
	var since, until string
	cmd := &cobra.Command{
		Use:   "export",
		Short: "Write the items of logged visits with labels from later actions as Parquet",
		Long: `Join the visits in the topic visit-log with the later actions in actions-enriched, and write Parquet files, one row per
shown item, to OUT/day=YYYY-MM-DD. Before it reads, the command waits until the groups objects and actors have processed all
published actions. Each --label VERB=WINDOW adds two columns:

  label_VERB        whether the user acted on the pin with the verb within the window after the visit; null if unknown
  label_VERB_after  seconds from the visit to the first such action; null if there was none

A label is unknown if the window has not ended, or if the topic no longer has all actions of the window. A repeated command
continues after the files in OUT. It replaces files of visits whose windows had not ended, which end in -open.parquet. Visits of
deleted users are skipped.`,
		Example: "  smartfeed training export --label save=24h --label hide=24h --out training\n" +
			"  smartfeed training export --label save=1h --out training --since 2026-11-20T00:00:00Z -o json",
		Args: noArguments,
		RunE: p.printsOf(func(cmd *cobra.Command, _ []string, setup topics.Setup) (any, error) {
			cfg.Now = time.Now()
			if err := parseExport(&cfg, labels, since, until, setup.Verbs); err != nil {
				return nil, usage(err)
			}
			return export.Run(cmd.Context(), setup, cfg)
		}),
	}
	f := cmd.Flags()
	f.StringArrayVar(&labels, "label", nil, "label VERB=WINDOW, such as save=24h, at most 168h; repeat it for several verbs")
	f.StringVar(&cfg.Dir, "out", "", "directory of the files; is created if it does not exist")
	f.StringVar(&since, "since", "", "skip visits before this time (RFC 3339)")
	f.StringVar(&until, "until", "", "stop in each partition before the first visit at or after this time (RFC 3339)")
	_ = cmd.MarkFlagDirname("out") // the flag exists: it was added above
	return cmd
}

// parseExport sets the labels and the times of a configuration. allowed may be nil for the predefined verbs.
func parseExport(cfg *export.Config, labels []string, since, until string, allowed schemas.Verbs) (err error) {
	if cfg.Dir == "" {
		return command.Usagef("want --out")
	}
	if cfg.Labels, err = export.ParseLabels(labels, schemas.DefaultVerbs().With(allowed)); err != nil {
		return err
	}
	if cfg.Since, err = parseTime("since", since); err != nil {
		return err
	}
	if cfg.Until, err = parseTime("until", until); err != nil {
		return err
	}
	if !cfg.Until.IsZero() && !cfg.Until.After(cfg.Since) {
		return command.Usagef("--until: %s: want a time after --since", until)
	}
	return nil
}
