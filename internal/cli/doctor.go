package cli

import (
	"cmp"
	"time"

	"github.com/spf13/cobra"

	"github.com/smartfeed/smartfeed/app"
	"github.com/smartfeed/smartfeed/internal/command"
	"github.com/smartfeed/smartfeed/internal/tools/doctor"
)

func (p *program) doctorCommand() *cobra.Command {
	timeout := 10 * time.Second
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check all dependencies and print what to fix",
		Long: `Check brokers, topics, transactions, groups, registry, stores, the state directory, clocks and the process at --http, in
parallel. For each problem, print what to do. If the process at --http is a server, the report has the versions of all other
processes, why they are not ready, and which do not answer. The command changes nothing: it aborts its test transaction.

The exit code is 1 if there is a problem, and 0 if there are only warnings and notes. The command works with and without a
running "smartfeed dev". Without --dir it checks the directory of the process at --http, if it runs on this machine.`,
		Example: "  smartfeed doctor\n  smartfeed doctor --config production.yaml -o json",
		Args:    noArguments,
		RunE: p.prints(func(cmd *cobra.Command, _ []string) (any, error) {
			if timeout <= 0 {
				return nil, command.Usagef("--timeout: %s: want above 0", timeout)
			}
			cfg, err := p.load(cmd)
			if err != nil {
				return nil, err
			}
			if cfg.Dir == app.DefaultConfig().Dir {
				cfg.Dir = cfg.RunningDir(cmd.Context(), p.environ)
			}
			checks, err := cfg.DoctorChecks(p.environ, cmp.Or(p.configFile(), "without a file"))
			if err != nil {
				return nil, err
			}
			report := doctor.NewReport(app.Version(), doctor.Run(cmd.Context(), timeout, checks...))
			return output{value: report, failure: report.Err()}, nil
		}),
	}
	cmd.Flags().DurationVar(&timeout, "timeout", timeout, "timeout of each check")
	return cmd
}
