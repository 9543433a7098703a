package app

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/smartfeed/smartfeed/internal/command"
	"github.com/smartfeed/smartfeed/internal/ops"
)

// refillCommand returns the command that refills a feed store from the topics.
func (p *program) refillCommand() *cobra.Command {
	var store string
	var asJSON bool
	cmd := &cobra.Command{
		Use: "refill", Short: "have a feed store that lost rows filled anew from the topics", Args: noArguments,
		Long: `Have a feed store that lost rows, or came back from a copy, filled anew: its group (materialize, materialize-standby) is set
back to the oldest records that its topics hold, and "smartfeed materialize" goes on from there, or "smartfeed serve" with an
embedded feed store. End every process that fills the store first: while one does, nothing is set back, and the exit code is 1.

What the store still has may stay. What is older than the topics hold, 7 days, does not come back by this: it has to be copied
from the other store, before or after; docs/operations.md says how.`,
		Example: "  smartfeed feedstore refill --store standby\n  smartfeed feedstore refill --json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			done, err := p.refill(cmd.Context(), cmd, store)
			if err != nil {
				return err
			}
			if asJSON {
				return command.PrintJSON(cmd.OutOrStdout(), done)
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), done)
			return err
		},
	}
	cmd.Flags().StringVar(&store, "store", primaryStore, "primary or standby")
	complete(cmd, "store", primaryStore, standbyStore)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// refill resets the offsets of a store's consumer group.
func (p *program) refill(ctx context.Context, cmd *cobra.Command, store string) (ops.Refilled, error) {
	setup, err := p.setup(cmd)
	if err != nil {
		return ops.Refilled{}, err
	}
	stores := append([]string{primaryStore}, setup.FeedStores...)
	if !slices.Contains(stores, store) {
		return ops.Refilled{}, command.Usagef("--store %q: the configuration has %s", store, strings.Join(stores, " and "))
	}
	if store == primaryStore {
		store = "" // the group of the first store has no suffix
	}
	return ops.Refill(ctx, setup.Kafka, store)
}
