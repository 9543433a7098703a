package cli

import (
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// waited is the result of wait.
type waited struct {
	Done    bool         `json:"done"`
	Lags    []topics.Lag `json:"lags"` // at the last successful check
	Seconds float64      `json:"seconds"`
}

func (p *program) waitCommand() *cobra.Command {
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "wait",
		Short: "Wait until all events published before have had their effect",
		Long: `Wait until all events whose publication was acknowledged before have had their effect in every group and store. After
--timeout the exit code is 1, and the error names the consumers that lag. Until then, unavailable brokers are tried again, and
so is the controller of a Pinot that has the actions. A missing topic is an error, because no consumer can have processed it.`,
		Example: "  smartfeed publish events.ndjson && smartfeed wait --timeout 30s\n  smartfeed wait -o json",
		Args:    noArguments,
		RunE: p.printsOf(func(cmd *cobra.Command, _ []string, setup topics.Setup) (any, error) {
			since := schemas.MicrosOf(time.Now())
			ctx, cancel, err := within(cmd.Context(), timeout)
			if err != nil {
				return nil, err
			}
			defer cancel()
			task := setup.Start("wait", -1)
			var last topics.WaitState
			err = setup.Wait(ctx, since, func(w topics.WaitState) { last = w; task.Say(w.String()) })
			done := waited{Done: err == nil, Lags: append([]topics.Lag{}, last.Lags...), Seconds: task.Done().Seconds()}
			return output{done, func(io.Writer) error { return nil }, err}, nil
		}),
	}
	cmd.Flags().DurationVar(&timeout, "timeout", time.Minute, "maximum time to wait")
	return cmd
}
