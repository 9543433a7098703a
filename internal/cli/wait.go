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
		Short: "Wait until all published events are processed",
		Long: `Wait until every group and store has processed all events that the brokers acknowledged before this command started. After
--timeout the exit code is 1, and the error names the consumers that lag. Until then, the command retries unavailable
brokers and an unavailable Pinot controller. A missing topic is an error.`,
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
			return output{value: done, text: func(io.Writer) error { return nil }, failure: err}, nil
		}),
	}
	cmd.Flags().DurationVar(&timeout, "timeout", time.Minute, "maximum time to wait")
	return cmd
}
