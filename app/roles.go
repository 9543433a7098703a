package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/smartfeed/smartfeed/internal/command"
	"github.com/smartfeed/smartfeed/topics"
)

// everything returns the parts of all roles in one process, with an embedded broker and registry.
func everything() []opener {
	return []opener{
		(*product).openBroker, (*product).openStreams, openGroups(topics.RowGroups()),
		(*product).openFeatures, (*product).openFeedStore, (*product).openSinks, (*product).openFeed, (*product).openServer,
	}
}

// processing returns the parts of the role process with the named groups, on external brokers.
func processing(names []string) []opener {
	return []opener{
		(*product).openDir, openKafka(topics.RoleProcess), (*product).openStreams, openGroups(names), (*product).openServer,
	}
}

// materializing returns the parts that fill external feed stores.
func materializing() []opener {
	return []opener{
		(*product).openDir, openKafka(topics.RoleMaterialize), (*product).openStreams,
		(*product).openFeedStore, (*product).openSinks, (*product).openServer,
	}
}

// serving returns the parts that answer requests, with external brokers and pools. They also fill an embedded feed
// store, because only one process can use it.
func serving() []opener {
	return []opener{
		(*product).openDir, openKafka(topics.RoleServe), (*product).openStreams, (*product).openPeers,
		(*product).openFeatures, (*product).openFeedStore, (*product).openOwnSinks, (*product).openFeed, (*product).openServer,
	}
}

func (p *program) processCommand() *cobra.Command {
	all := strings.Join(topics.RowGroups(), ", ")
	return &cobra.Command{
		Use:   "process [GROUP…]",
		Short: "run groups on the brokers at --kafka",
		Long: fmt.Sprintf(`Run the named groups, without a name all of them (%s), on the brokers at --kafka and the registry at --registry, with
local copies of their rows below --dir. Any number of processes share the partitions; one that ends or is killed leaves
its own to the others. Whoever serves asks the process that has a user's pools, at --advertise (default: --http).

The topics must be there: see "smartfeed topics apply".`, all),
		Example:   "  smartfeed process --kafka kafka-1:9092 --advertise 10.0.0.7:8080\n  smartfeed process pools fanout --config smartfeed.yaml",
		ValidArgs: topics.RowGroups(),
		RunE: func(cmd *cobra.Command, names []string) error {
			if len(names) == 0 {
				names = topics.RowGroups()
			}
			if err := checkGroups(names); err != nil {
				return err
			}
			return p.runRole(cmd, processing(names), Process, names...)
		},
	}
}

// checkGroups reports every unknown group, and every group that is named twice.
func checkGroups(names []string) error {
	var problems []error
	for i, name := range names {
		switch {
		case !slices.Contains(topics.RowGroups(), name):
			problems = append(problems, fmt.Errorf("there is no group %q, but %s", name, strings.Join(topics.RowGroups(), ", ")))
		case slices.Contains(names[:i], name):
			problems = append(problems, fmt.Errorf("group %s is named twice", name))
		}
	}
	if err := errors.Join(problems...); err != nil {
		return &command.UsageError{Err: err}
	}
	return nil
}

func (p *program) materializeCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "materialize",
		Short: "fill the feed stores at --feed_store.cassandra.…",
		Long: `Fill the feed store on Cassandra, and the standby if there is one, from the topics. Any number of processes share the work.
The tables must be there: see "smartfeed feedstore apply". An embedded feed store is filled by the process that serves.`,
		Example: "  smartfeed materialize --feed_store.cassandra.primary.hosts cassandra-a:9042",
		Args:    noArguments,
		RunE:    func(cmd *cobra.Command, _ []string) error { return p.runRole(cmd, materializing(), Materialize) },
	}
}

func (p *program) serveCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "serve",
		Short: "answer feeds and features, on the brokers at --kafka",
		Long: `Answer over HTTP: feeds, pools, lists, features, events, the console. Chunks and pools are asked of the processes that run
the group pools; without them feeds go on with what is frozen. Embedded stores below --dir are this process's own, and it
fills them from the topics; feed stores on Cassandra are filled by "smartfeed materialize".`,
		Example: "  smartfeed serve --kafka kafka-1:9092 --http 127.0.0.1:8080",
		Args:    noArguments,
		RunE:    func(cmd *cobra.Command, _ []string) error { return p.runRole(cmd, serving(), Serve) },
	}
}

// runRole runs a role until the process is asked to stop.
func (p *program) runRole(cmd *cobra.Command, pieces []opener, role Role, groups ...string) error {
	cfg, err := p.load(cmd)
	if err != nil {
		return err
	}
	if err := cfg.check(role, groups...); err != nil {
		return err
	}
	if err := cfg.Peers.CheckAddress(cfg.peerAddress()); err != nil {
		return command.Usagef("--http, --advertise: %w", err)
	}
	return runProduct(cmd, cfg, pieces, func(ctx context.Context, product *product) error {
		if product.awaitReady(ctx) {
			fmt.Fprintf(cmd.OutOrStdout(), "smartfeed is ready\n  http   %s/\n  kafka  %s\n  state  %s\n",
				product.url(), strings.Join(product.kafka.Brokers, ","), cfg.Dir)
		}
		return nil
	})
}

// runProduct opens, runs and closes a product, and runs then concurrently. It shuts down within EndTimeout.
func runProduct(cmd *cobra.Command, cfg Config, pieces []opener, then func(context.Context, *product) error) error {
	product, err := openProduct(cmd.Context(), cfg, logger(cmd, cfg.Log), pieces)
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() {
		group, ctx := errgroup.WithContext(cmd.Context())
		group.Go(func() error { return product.Run(ctx) })
		group.Go(func() error { return then(ctx, product) })
		err := group.Wait()
		ended <- errors.Join(err, product.Close())
	}()
	return endWithin(cmd.Context(), EndTimeout, ended, func() string { return stuck(product.supervisor.State()) })
}
