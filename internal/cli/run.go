package cli

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/smartfeed/smartfeed/app"
	"github.com/smartfeed/smartfeed/internal/tools/simulate"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

func (p *program) processCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "process [GROUP…]",
		Short: "Run the groups that process events",
		Long: fmt.Sprintf(`Run the named groups, by default all of them (%s). They use the brokers at --kafka and the registry at --registry,
and keep local copies of their rows in --dir. Any number of processes share the partitions. If a process stops or fails, the
others own its partitions. "smartfeed serve" sends requests for a user's pools to the process that owns them, at
--advertise (default: --http).

The topics must exist: see "smartfeed topics apply".`, strings.Join(topics.RowGroups(), ", ")),
		Example: "  smartfeed process --kafka kafka-1:9092 --advertise 10.0.0.7:8080\n  smartfeed process pools fanout --config smartfeed.yaml",
		Args:    cobra.ArbitraryArgs, ValidArgs: topics.RowGroups(),
		RunE: func(cmd *cobra.Command, groups []string) error { return p.runRole(cmd, app.Process, groups...) },
	}
}

func (p *program) materializeCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "materialize",
		Short: "Write the feed stores on Cassandra from the topics",
		Long: `Write the feed store on Cassandra, and the standby if there is one, from the topics. Any number of processes share the
partitions. The tables must exist: see "smartfeed feed-store apply". "smartfeed serve" writes an embedded feed store.`,
		Example: "  smartfeed materialize --feed_store.cassandra.primary.hosts cassandra-a:9042",
		RunE:    func(cmd *cobra.Command, _ []string) error { return p.runRole(cmd, app.Materialize) },
	}
}

func (p *program) serveCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "serve",
		Short: "Serve feeds, features and the console over HTTP",
		Long: `Serve feeds, pools, lists, features, events and the console over HTTP. The server requests chunks and pools from the
processes that run the group pools; without them, feeds contain only materialized items. It writes its embedded stores in
--dir from the topics; with Cassandra and Pinot, it has none. "smartfeed materialize" writes feed stores on Cassandra.`,
		Example: "  smartfeed serve --kafka kafka-1:9092 --http 127.0.0.1:8080",
		RunE:    func(cmd *cobra.Command, _ []string) error { return p.runRole(cmd, app.Serve) },
	}
}

// runRole runs a role until ctx of the command is done.
func (p *program) runRole(cmd *cobra.Command, role app.Role, groups ...string) error {
	return p.run(cmd, app.Options{Role: role, Groups: groups}, func(ctx context.Context, a *app.App, dir string) error {
		if a.Ready(ctx) == nil {
			fmt.Fprintf(cmd.OutOrStdout(), "smartfeed is ready\n  http   %s/\n  kafka  %s\n  state  %s\n",
				a.URL(), strings.Join(a.Brokers(), ","), dir)
		}
		return nil
	})
}

// run opens and runs an app with the configuration of the command line, until ctx of the command is done. It calls then
// with the state directory, in parallel.
func (p *program) run(cmd *cobra.Command, o app.Options, then func(ctx context.Context, a *app.App, dir string) error) error {
	var err error
	if o.Config, err = p.load(cmd); err != nil {
		return err
	}
	if err := o.Config.Check(o.Role, o.Groups...); err != nil {
		return usage(err)
	}
	o.Log = o.Config.Log.Logger(cmd.ErrOrStderr())
	p.file = p.configFile() // a reload reads the same file, even if it was removed
	o.File = app.ConfigFile{Path: p.file, Load: func() (app.Config, error) { return p.load(cmd) }}
	a, err := app.Open(cmd.Context(), o)
	if err != nil {
		return err
	}
	return a.RunAndClose(cmd.Context(), func(ctx context.Context) error { return then(ctx, a, o.Config.Dir) })
}

func (p *program) devCommand() *cobra.Command {
	var withDemo bool
	cmd := &cobra.Command{
		Use:   "dev",
		Short: "Run everything in one process, with embedded parts",
		Long: `Run broker, registry, groups, stores and HTTP server in this process, with all state in --dir. After a stop or a kill, it
resumes from this directory. Other programs on this machine reach the broker at --kafka and the registry at --registry.`,
		Example: "  smartfeed dev --demo\n  smartfeed dev --dir /var/lib/smartfeed --http 127.0.0.1:8090",
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
