package related

import (
	"context"
	"fmt"

	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/schemas"
)

// Rows reads the committed rows of the partitions that are here. *rows.View does.
type Rows interface {
	Read(ctx context.Context, owner string, f func(rows.Snapshot) error) error
}

// Reader answers which pins and interests go together, of the partitions that are here.
type Reader struct{ Rows Rows }

// Neighbours returns the strongest neighbours of a pin or an interest, at most so many, strongest first. Of one that
// nobody has seen with another there are none. It fails with a *rows.NotHereError when the partition is not here.
func (r Reader) Neighbours(ctx context.Context, of schemas.ID, most int) ([]schemas.RelatedItem, error) {
	items := []schemas.RelatedItem{}
	err := r.Rows.Read(ctx, string(of), func(s rows.Snapshot) error {
		list, err := best(s, most)
		for i := range list {
			n := &list[i]
			items = append(items, schemas.RelatedItem{ID: n.id, Score: n.share, Facets: n.body.Facets, Created: n.body.Created})
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("neighbours of %s: %w", of, err)
	}
	return items, nil
}
