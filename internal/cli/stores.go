package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/smartfeed/smartfeed/app"
	"github.com/smartfeed/smartfeed/internal/command"
	"github.com/smartfeed/smartfeed/internal/ops"
	"github.com/smartfeed/smartfeed/serving/feature/pinot"
	"github.com/smartfeed/smartfeed/serving/feedstore/cassandra"
	"github.com/smartfeed/smartfeed/topics"
)

func (p *program) feedStoreCommand() *cobra.Command {
	return group("feed-store", "Create, verify and refill feed stores",
		"  smartfeed feed-store apply --feed_store.cassandra.primary.hosts cassandra-a:9042",
		p.clustersCommand(&cobra.Command{
			Use: "apply", Short: "Create keyspace and tables, and alter options that differ",
			Long: `Create the keyspace and the tables on the primary and, if there is one, on the standby, and alter options that differ. If a
difference cannot be altered in place, the command reports it and does not change this cluster. You can run it at any time:
existing tables keep their rows.`,
		}, cassandra.Setup.Apply),
		p.clustersCommand(&cobra.Command{
			Use: "verify", Short: "Verify that keyspace and tables match the configuration",
		}, cassandra.Setup.Verify),
		p.refillCommand())
}

// clustersCommand completes a command that runs do and prints its reports.
func (p *program) clustersCommand(cmd *cobra.Command, do func(cassandra.Setup, context.Context) ([]cassandra.Report, error)) *cobra.Command {
	cmd.Example = fmt.Sprintf("  smartfeed feed-store %s --feed_store.cassandra.primary.hosts cassandra-a:9042", cmd.Use)
	cmd.RunE = p.prints(with(p.load, func(cmd *cobra.Command, _ []string, cfg app.Config) (any, error) {
		at := cfg.FeedStore.Cassandra
		reports, err := do(cassandra.Setup{Config: at.Config, Primary: at.Primary, Standby: at.Standby}, cmd.Context())
		if reports == nil {
			return nil, err
		}
		return output{value: reports, columns: []string{"cluster", "ok", "done"}, failure: err}, nil
	}))
	return cmd
}

// refillCommand returns the command that refills a feed store from the topics.
func (p *program) refillCommand() *cobra.Command {
	var store string
	cmd := &cobra.Command{
		Use: "refill", Short: "Refill a feed store from the topics",
		Long: `Refill a feed store that lost rows or was restored from a copy: reset its consumer group (materialize, materialize-standby) to
the oldest records in its topics. "smartfeed materialize" continues from there, or "smartfeed serve" with an embedded feed
store. First stop every process that writes the store. If a process still runs, the command resets nothing, and the exit code
is 1.

The store can keep its rows. The topics have no records older than their retention of 7 days. Copy older rows from the other
store, before or after; see docs/operations/failures.md.`,
		Example: "  smartfeed feed-store refill --store standby\n  smartfeed feed-store refill -o json",
		RunE: p.printsOf(func(cmd *cobra.Command, _ []string, setup topics.Setup) (any, error) {
			stores := append([]string{app.PrimaryStore}, setup.FeedStores...)
			if !slices.Contains(stores, store) {
				return nil, command.Usagef("--store: %q: the configuration has %s", store, strings.Join(stores, " and "))
			}
			if store == app.PrimaryStore {
				store = "" // the group of the first store has no suffix
			}
			return ops.Refill(cmd.Context(), setup.Kafka, store)
		}),
	}
	cmd.Flags().StringVar(&store, "store", app.PrimaryStore, "store to refill: primary or standby")
	complete(cmd, "store", app.PrimaryStore, app.StandbyStore)
	return cmd
}

func (p *program) pinotCommand() *cobra.Command {
	return group("pinot", "Create and verify the tables of features in Apache Pinot",
		"  smartfeed pinot apply --pinot.controller pinot-1:9000",
		p.pinotApplyCommand(), p.pinotVerifyCommand())
}

// pinotSetup returns how a command reaches Pinot.
func (p *program) pinotSetup(cmd *cobra.Command) (pinot.Setup, error) {
	cfg, err := p.load(cmd)
	if err != nil {
		return pinot.Setup{}, err
	}
	setup, err := cfg.PinotSetup()
	if errors.Is(err, topics.ErrPartitions) {
		err = usage(err)
	}
	return setup, err
}

func (p *program) pinotApplyCommand() *cobra.Command {
	return &cobra.Command{
		Use: "apply", Short: "Create or update the tables and their schemas for the release of the controller",
		Example: "  smartfeed pinot apply --pinot.controller pinot-1:9000",
		RunE: p.prints(with(p.pinotSetup, func(cmd *cobra.Command, _ []string, setup pinot.Setup) (any, error) {
			return line(struct {
				Tables  []string `json:"tables"`
				Applied bool     `json:"applied"`
			}{pinot.Tables(), true}, "tables %s are applied", strings.Join(pinot.Tables(), ", ")), setup.Apply(cmd.Context())
		})),
	}
}

func (p *program) pinotVerifyCommand() *cobra.Command {
	return &cobra.Command{
		Use: "verify", Short: "Verify that the tables and their schemas match the configuration",
		Example: "  smartfeed pinot verify --pinot.controller pinot-1:9000 -o json",
		RunE: p.prints(with(p.pinotSetup, func(cmd *cobra.Command, _ []string, setup pinot.Setup) (any, error) {
			differences, err := setup.Verify(cmd.Context())
			if err != nil {
				return nil, err
			}
			if len(differences) > 0 {
				err = fmt.Errorf("pinot differs:\n%s", strings.Join(differences, "\n"))
			}
			result := struct {
				Tables  []string `json:"tables"`
				Differs []string `json:"differs"`
			}{pinot.Tables(), append([]string{}, differences...)}
			return output{value: result, text: func(out io.Writer) error {
				if err == nil {
					fmt.Fprintln(out, "tables "+strings.Join(pinot.Tables(), ", ")+" match the configuration")
				}
				return nil
			}, failure: err}, nil
		})),
	}
}
