package app

import (
	"fmt"
	"time"

	"github.com/smartfeed/smartfeed/internal/ops"
	"github.com/smartfeed/smartfeed/serving/feature/pinot"
)

// Remains returns the data of a user erased at now that rows and stores still hold, although no response includes it.
func (c *Config) Remains(now time.Time) []ops.Remain {
	all := []ops.Remain{
		c.remainingActions(now),
		{Where: "features of pins", What: "anonymous shares in counts, sketches and means"},
		{Where: "files of the feature log", What: "served features, and every model trained on them", Note: "until you delete the files of every serve process"},
		{
			Where: "backups", What: "all data of the user at the time of the backup",
			Note: `until you delete them; after you restore one, run "smartfeed erase reapply" (see docs/operations/failures.md)`,
		},
		{Where: "rows of actors", What: "the affinities of other users for the user", Note: "until each of them is next published"},
		{Where: "rows of actors", What: "the user's pins among the latest actions of other users", Note: "until newer actions replace them"},
		{Where: "rows of related", What: "the user's pins among the latest saves to boards", Note: "until newer saves replace them"},
		{Where: "rows of interests", What: "the user's id in impressions, and the user's pins, hidden, in the evidence of other users", Note: "until the impression or the evidence expires"},
		{Where: "rows of retries", What: "unreadable records", Note: "until a retry succeeds or their retries expire"},
		{Where: "rows of retries", What: "error messages, which may contain the user's id", Note: "until newer ones replace them"},
		{Where: "materialized feeds of other users", What: "the user's pins, hidden", Note: fmt.Sprintf("until %d newer items are served", c.FeedStore.MaxItems)},
		{Where: "pools of other users", What: "the user's pins, hidden, from existing follows", Note: "for a day or two"},
		{
			Where: "pools of other users", What: "the user's pins, hidden, from ended follows, pulled followees, related pins or offers",
			Note: "until the pool is trimmed; forever if it receives no more candidates",
		},
	}
	if c.usesPinot() {
		all = append(all, ops.Remain{Where: "Pinot's table pins", What: "earlier versions of the user's pins, which no query returns", Note: "until you recreate the table"})
	}
	return all
}

// remainingActions returns how long the feature store holds actions that arrived by now.
func (c *Config) remainingActions(now time.Time) ops.Remain {
	r := ops.Remain{Where: "the embedded feature store", What: "the user's actions, which no response uses"}
	until := c.Feature.KeptUntil(now)
	if c.usesPinot() {
		until, r.Where = pinot.KeptUntil(now, c.Feature.SequenceRetention), "Pinot"
		r.What += fmt.Sprintf("; if its controller has the defaults: retention checks every %.0f hours, deleted segments kept for %.0f days",
			pinot.RetentionEvery.Hours(), pinot.DeletedKept.Hours()/24)
	}
	r.Until = &until
	return r
}
