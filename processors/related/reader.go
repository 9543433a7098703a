package related

import (
	"context"
	"fmt"

	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/schemas"
)

// Reader returns the neighbors of pins and interests whose partitions this process owns.
type Reader struct{ Rows rows.Reader }

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
