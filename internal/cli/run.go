package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/smartfeed/smartfeed/app"
	"github.com/smartfeed/smartfeed/topics"
)

func (p *program) processCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "process [GROUP…]",
		Short: "Run groups on the brokers at --kafka",
		Long: fmt.Sprintf(`Run the named groups, by default all of them (%s), on the brokers at --kafka and the registry at --registry, with
local copies of their rows in --dir. Any number of processes share the partitions; if one stops or is killed, the others
take its partitions. "smartfeed serve" sends requests for a user's pools to the process that owns them, at --advertise
(default: --http).

The topics must exist: see "smartfeed topics apply".`, strings.Join(topics.RowGroups(), ", ")),
		Example:   "  smartfeed process --kafka kafka-1:9092 --advertise 10.0.0.7:8080\n  smartfeed process pools fanout --config smartfeed.yaml",
		ValidArgs: topics.RowGroups(),
		RunE: func(cmd *cobra.Command, groups []string) error {
			return p.runRole(cmd, app.Process, groups...)
		},
	}
}

func (p *program) materializeCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "materialize",
		Short: "Fill the feed stores on Cassandra from the topics",
		Long: `Fill the feed store on Cassandra, and the standby if there is one, from the topics. Any number of processes share the work.
The tables must exist: see "smartfeed feedstore apply". An embedded feed store is filled by the process that serves.`,
		Example: "  smartfeed materialize --feed_store.cassandra.primary.hosts cassandra-a:9042",
		Args:    noArguments,
		RunE:    func(cmd *cobra.Command, _ []string) error { return p.runRole(cmd, app.Materialize) },
	}
}

func (p *program) serveCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "serve",
		Short: "Serve feeds, features and the console over HTTP",
		Long: `Serve over HTTP: feeds, pools, lists, features, events, the console. Chunks and pools are requested from the processes that
run the group pools; without them, feeds contain only materialized items. Embedded stores in --dir belong to this process,
which fills them from the topics. "smartfeed materialize" fills feed stores on Cassandra.`,
		Example: "  smartfeed serve --kafka kafka-1:9092 --http 127.0.0.1:8080",
		Args:    noArguments,
		RunE:    func(cmd *cobra.Command, _ []string) error { return p.runRole(cmd, app.Serve) },
	}
}

// runRole runs a role until the process is asked to stop.
func (p *program) runRole(cmd *cobra.Command, role app.Role, groups ...string) error {
	return p.run(cmd, app.Options{Role: role, Groups: groups}, func(ctx context.Context, a *app.App, dir string) error {
		if a.Ready(ctx) == nil {
			fmt.Fprintf(cmd.OutOrStdout(), "smartfeed is ready\n  http   %s/\n  kafka  %s\n  state  %s\n",
				a.URL(), strings.Join(a.Brokers(), ","), dir)
		}
		return nil
	})
}

// run opens and runs an app with the configuration of the command line, until the process is asked to stop. then runs at
// the same time, with the state directory.
func (p *program) run(cmd *cobra.Command, o app.Options, then func(ctx context.Context, a *app.App, dir string) error) error {
	var err error
	if o.Config, err = p.load(cmd); err != nil {
		return err
	}
	if err := o.Config.Check(o.Role, o.Groups...); err != nil {
		return usage(err)
	}
	o.Log = o.Config.Log.Logger(cmd.ErrOrStderr())
	a, err := app.Open(cmd.Context(), o)
	if err != nil {
		return err
	}
	return a.RunAndClose(cmd.Context(), func(ctx context.Context) error { return then(ctx, a, o.Config.Dir) })
}
