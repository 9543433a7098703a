package related

import (
	"context"
	"fmt"

	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/schemas"
)

// Rows reads the committed rows of the partitions that this process owns. *rows.View implements it.
type Rows interface {
	Read(ctx context.Context, owner string, f func(rows.Snapshot) error) error
}

// Reader returns the neighbors of pins and interests whose partitions this process owns.
type Reader struct{ Rows Rows }

// Neighbors returns up to limit neighbors of a pin or an interest, strongest first. The result is empty if there are
// none. It returns a *rows.NotOwnerError if this process does not own the partition.
func (r Reader) Neighbors(ctx context.Context, of schemas.ID, limit int) ([]schemas.RelatedItem, error) {
	items := []schemas.RelatedItem{}
	err := r.Rows.Read(ctx, string(of), func(s rows.Snapshot) error {
		list, err := best(s, limit)
		for i := range list {
			n := &list[i]
			items = append(items, schemas.RelatedItem{ID: n.ID, Share: n.share, Facets: n.Facets, Created: n.Created})
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read neighbors of %s: %w", of, err)
	}
	return items, nil
}
