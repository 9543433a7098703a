package generator

import (
	"context"
	"fmt"

	"github.com/smartfeed/smartfeed/processors/pools/layout"
	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/processors/rules"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/schemas/visibility"
	"github.com/smartfeed/smartfeed/topics"
)

// chunk returns the response for a composition.
func (g *Generator) chunk(c *composition) *schemas.Chunk {
	chunk := &schemas.Chunk{
		Served:   schemas.Served{ID: c.Served, User: c.User, Time: c.Time, Feed: c.Feed, Arm: c.arm},
		Head:     c.head,
		Degraded: c.degraded, Inactive: c.inactive, Announce: c.announce,
	}
	if c.rules.Seen == rules.Reported {
		chunk.Served.ReportWithin = c.rules.ReportTimeout.Microseconds()
	}
	if c.result == nil && !c.repeated {
		chunk.Recent = []schemas.FeedEntry{}
		return chunk
	}
	if c.result != nil {
		chunk.Served.Items, chunk.Served.Memory, chunk.Served.Expired = c.result.Items, c.result.Memory, c.result.Expired
		chunk.Served.Logged = c.logged
	}
	chunk.ReadRecent = func(ctx context.Context) ([]schemas.FeedEntry, error) { return g.recall(ctx, c) }
	return chunk
}

// recall returns the user's newest materialized entries, newest first, as of the time when the rows were read. Each
// entry that was added since replaces the oldest one. Entries that the user may no longer see are empty, like swept
// entries in the store. Callers use the recalled entries when no store can report which entries are visible.
func (g *Generator) recall(ctx context.Context, c *composition) (list []schemas.FeedEntry, err error) {
	err = g.deps.Rows.Read(ctx, string(c.User), func(s rows.Snapshot) (err error) {
		list, err = materializedFrom(s, g.deps.Streams.FeedEntries, c.head, g.pools.MaxRecentItems)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read materialized entries of %s: %w", c.User, err)
	}
	viewer := visibility.NewViewer(c.User, c.graph, g.deps.Deleted)
	for i := range list {
		item := &list[i].ServedItem
		if viewer.Hides(&visibility.Pin{PinContent: schemas.PinContent{Facets: item.Facets}}, visibility.ShownEdges(item)) != "" {
			*item = schemas.ServedItem{}
		}
	}
	return list, nil
}

// materializedFrom returns at most limit materialized entries, newest first, starting at the position head.
func materializedFrom(t layout.Table, s topics.Stream[schemas.FeedEntries], head int64, limit int) ([]schemas.FeedEntry, error) {
	list := []schemas.FeedEntry{}
	scan := rows.Scan{Prefix: []byte{layout.KindMaterialized}, From: layout.PositionRow(layout.KindMaterialized, head), Reverse: true}
	err := rows.ForEach(t, scan, func(_, value []byte) (bool, error) {
		f, err := s.Decode(value)
		if err != nil {
			return false, err
		}
		for p := f.Last(); p >= f.First && len(list) < limit; p-- {
			list = append(list, f.At(p))
		}
		return len(list) < limit, nil
	})
	return list, err
}

// materializedAt returns the materialized entry at a position, or nil if it is no longer kept.
func materializedAt(t layout.Table, s topics.Stream[schemas.FeedEntries], position int64) (found *schemas.FeedEntry, err error) {
	scan := rows.Scan{Prefix: []byte{layout.KindMaterialized}, From: layout.PositionRow(layout.KindMaterialized, position), Limit: 1}
	err = rows.ForEach(t, scan, func(_, value []byte) (bool, error) {
		f, err := s.Decode(value)
		if err == nil && position >= f.First {
			e := f.At(position)
			found = &e
		}
		return false, err
	})
	return found, err
}
