package app

import (
	"fmt"
	"time"

	"github.com/smartfeed/smartfeed/internal/ops"
	"github.com/smartfeed/smartfeed/serving/feature/pinot"
)

// Remains returns the data of an erased user that the stores still hold, although no answer includes it. No data of the
// user arrives after now.
func (c *Config) Remains(now time.Time) []ops.Remain {
	return []ops.Remain{
		c.remainingActions(now),
		{Where: "features of pins", What: "anonymous shares in counts, sketches and means"},
		{Where: "insights", What: "the days on which the user acted, which no answer counts", Note: fmt.Sprintf("until the next sweep, within %s, of each serve that runs", c.Insight.SweepEvery)},
		{Where: "files of the feature log", What: "answered features, and in whatever was trained from them", Note: "until you delete the files, in every serve that writes them"},
		{
			Where: "backups", What: "everything that was there when they were made",
			Note: `until you delete them; after you restore one, run "smartfeed erase again" (see docs/operations/failures.md)`,
		},
		{Where: "rows of actors", What: "how much others cared for the user", Note: "until what each cares for is sent next"},
		{Where: "rows of actors", What: "the user's pins among what others acted on last", Note: "until others take their place"},
		{Where: "rows of related", What: "the user's pins among the last that were saved to boards", Note: "until others take their place"},
		{Where: "rows of interests", What: "the user's id as one who saw pins, and the user's pins in others' evidence, hidden", Note: "until the impression or the evidence is old"},
		{Where: "rows of retries", What: "records that could not be read", Note: "until they are retried or given up"},
		{Where: "rows of retries", What: "the reasons, which may quote the user's id", Note: "until others take their place"},
		{Where: "frozen feeds of others", What: "the user's pins, hidden", Note: fmt.Sprintf("until %d newer items were shown", c.FeedStore.MaxFeed)},
		{Where: "pools of others", What: "the user's pins, hidden, where they came by a follow that stands", Note: "for a day or two"},
		{
			Where: "pools of others", What: "the user's pins, hidden, that came by a follow which has ended, by one of a followee who is pulled, as neighbours or offers",
			Note: "until the pool is trimmed, or for ever where nothing more comes",
		},
	}
}

// remainingActions returns until when the feature store holds actions that arrived by now.
func (c *Config) remainingActions(now time.Time) ops.Remain {
	r := ops.Remain{Where: "the embedded feature store", What: "actions, which features of the user are not answered from"}
	until := c.Feature.KeptUntil(now)
	if c.actionsInPinot() {
		until, r.Where = pinot.KeptUntil(now), "Pinot"
		r.What += fmt.Sprintf("; where its controller looks every %.0f hours and keeps deleted segments for %.0f days, as by default",
			pinot.RetentionEvery.Hours(), pinot.DeletedKept.Hours()/24)
	}
	r.Until = &until
	return r
}
