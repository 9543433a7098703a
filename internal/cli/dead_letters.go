package cli

import (
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/smartfeed/smartfeed/internal/command"
	"github.com/smartfeed/smartfeed/internal/convert"
	"github.com/smartfeed/smartfeed/internal/ops"
	"github.com/smartfeed/smartfeed/serving/api"
)

const operatorUsage = "name of the operator to record (default: your login name and host)"

func (p *program) deadLettersCommand() *cobra.Command {
	return group("dead-letters", "List and retry dead letters: records that could not be processed", "  smartfeed dead-letters list --limit 10",
		p.listDeadLettersCommand(), p.retryDeadLettersCommand())
}

// maxListed limits the memory of the command list.
const maxListed = 10_000

func (p *program) listDeadLettersCommand() *cobra.Command {
	var limit int
	cmd := &cobra.Command{
		Use: "list", Short: "List the newest dead letters in the order of their times",
		Example: "  smartfeed dead-letters list --limit 10\n  smartfeed dead-letters list -o json",
		RunE: p.prints(func(cmd *cobra.Command, _ []string) (any, error) {
			if limit < 1 || limit > maxListed {
				return nil, command.Usagef("--limit: %d is out of range [1, %d]", limit, maxListed)
			}
			setup, streams, err := p.streams(cmd)
			if err != nil {
				return nil, err
			}
			found, err := ops.ListDeadLetters(cmd.Context(), setup.Kafka, streams, limit)
			text := func(out io.Writer) error { return printDeadLetters(out, found) }
			return output{value: append([]api.DeadLetter{}, found...), text: text}, err
		}),
	}
	cmd.Flags().IntVar(&limit, "limit", 100, "maximum number of dead letters, 1-10000")
	return cmd
}

// printDeadLetters prints dead letters with their times as text, without keys and values.
func printDeadLetters(out io.Writer, list []api.DeadLetter) error {
	type row struct {
		Time time.Time `json:"time"` // instead of that of the dead letter, which is a number in JSON
		api.DeadLetter
	}
	rows := convert.All(list, func(l api.DeadLetter) row { return row{l.Time.Time(), l} })
	columns := []string{"time", "topic", "dead_letter_partition", "dead_letter_offset", "group", "retried", "reason", "unreadable"}
	return printTables(out, rows, columns)
}

func (p *program) retryDeadLettersCommand() *cobra.Command {
	var operator string
	cmd := &cobra.Command{
		Use: "retry", Short: "Retry immediately the dead letters since the last retry",
		Example: "  smartfeed dead-letters retry\n  smartfeed dead-letters retry -o json",
		RunE: p.prints(func(cmd *cobra.Command, _ []string) (any, error) {
			setup, streams, err := p.streams(cmd)
			if err != nil {
				return nil, err
			}
			done, err := ops.RetryDeadLetters(cmd.Context(), setup.Kafka, streams, command.Operator(operator))
			o := line(done, "retried %s, skipped %d", command.Count(done.Published, "dead letter"), done.Skipped)
			o.failure = err
			return o, nil
		}),
	}
	cmd.Flags().StringVar(&operator, "operator", "", operatorUsage)
	return cmd
}
