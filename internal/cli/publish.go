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
		Short: "Publish events from files or standard input, one JSON object per line",
		Long: `Publish events from the files in the given order. Without files, and for the file "-", it reads standard input. Each line is
one JSON object: {"stream":"actions","id":"e-81","time":"2026-11-20T10:00:00.123Z","actor":"user:7",...}

The command checks all lines before it publishes any, and reports every bad line on standard error. If there is a bad line, it
publishes nothing and the exit code is 1, unless you set --skip-bad. It returns when the brokers have acknowledged all
events.`,
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
