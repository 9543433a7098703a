package cli

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/smartfeed/smartfeed/app"
	"github.com/smartfeed/smartfeed/internal/tools/simulate"
	"github.com/smartfeed/smartfeed/schemas"
)

func (p *program) devCommand() *cobra.Command {
	var withDemo bool
	cmd := &cobra.Command{
		Use:   "dev",
		Short: "Run everything in one process, with embedded parts",
		Long: `Run broker, registry, groups, stores and HTTP server in this process, with all state in --dir. After a stop or a kill, it
resumes from this directory. Other programs on this machine reach the broker at --kafka and the registry at --registry.`,
		Example: "  smartfeed dev --demo\n  smartfeed dev --dir /var/lib/smartfeed --http 127.0.0.1:8090",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.run(cmd, app.Options{Role: app.Dev}, func(ctx context.Context, a *app.App, dir string) error {
				if a.Ready(ctx) != nil {
					return nil // stopped before
				}
				out := cmd.OutOrStdout()
				fmt.Fprintf(out, "smartfeed is ready\n  console   %s/\n  kafka     %s\n  registry  %s\n  state     %s\n",
					a.URL(), a.Brokers()[0], a.RegistryURL(), dir)
				if !withDemo {
					return nil
				}
				return demo(ctx, a, out, dir)
			})
		},
	}
	cmd.Flags().BoolVar(&withDemo, "demo", false, "load simulated data and simulate users")
	return cmd
}

// demoRate is the number of events per second of the demo. It shows changes at little load.
const demoRate = 5

// demo simulates users until ctx is done.
func demo(ctx context.Context, a *app.App, out io.Writer, dir string) error {
	setup, err := a.Setup()
	if err != nil {
		return err
	}
	cfg := simulate.DefaultConfig()
	cfg.Rate = demoRate
	_, err = simulate.Run(ctx, setup, cfg, simulate.Forever, func(ctx context.Context) error {
		if err := setup.Wait(ctx, schemas.MicrosOf(time.Now()), nil); err != nil {
			return err
		}
		printDemo(out, a.URL(), dir)
		return nil
	})
	if ctx.Err() != nil {
		return nil // stopped
	}
	return err
}

// printDemo prints what to try with the demo data.
func printDemo(out io.Writer, url, dir string) {
	user := simulate.DemoUsers(1)[0]
	fmt.Fprintf(out, `the demo data is loaded, and users are simulated; try
  open %[1]s/?user=%[2]s
  curl -s '%[1]s/v1/users/%[2]s/feed?limit=5'
  curl -s '%[1]s/v1/users/%[2]s/pools?source=interest&limit=5'
  smartfeed query features interests_24h --user %[2]s
stop with ctrl-c; the data stays in %[3]s
`, url, user, dir)
}
