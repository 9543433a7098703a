package cli

import (
	"github.com/spf13/cobra"

	"github.com/smartfeed/smartfeed/internal/ops"
	"github.com/smartfeed/smartfeed/topics"
)

func (p *program) publishCommand() *cobra.Command {
	var o ops.PublishOptions
	cmd := &cobra.Command{
		Use:   "publish [FILE...]",
		Short: "Publish events, one JSON object per line, from files or standard input",
		Long: `Publish events from files, or from standard input if there are none or one is "-", in the given order.
Each line is one JSON object: {"stream":"actions","id":"e-81","time":"2026-11-20T10:00:00.123Z","actor":"user:7",...}

All lines are checked before any is published. Every bad line is reported on standard error. Then nothing is published and
the exit code is 1, unless --skip-bad skips bad lines. The command returns when the brokers have acknowledged all events.`,
		Example: "  smartfeed publish events.ndjson\n  zcat events.ndjson.gz | smartfeed publish --skip-bad -o json",
		RunE: p.printsOf(func(cmd *cobra.Command, args []string, setup topics.Setup) (any, error) {
			o.Files, o.Stdin, o.Problems = args, cmd.InOrStdin(), cmd.ErrOrStderr()
			done, err := ops.Publish(cmd.Context(), setup, o)
			if done.Events > 0 {
				return output{value: done, failure: err}, nil
			}
			return done, err
		}),
	}
	cmd.Flags().BoolVar(&o.SkipBad, "skip-bad", false, "skip bad lines instead of publishing nothing")
	return cmd
}
