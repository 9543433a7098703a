package rows

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/smartfeed/smartfeed/topics"
)

// Gathering is an output stream whose records hold the items of many callbacks: all items that a transaction has for a partition
// travel together. A record for each callback costs much more than its items. The records have no key. A Gathering is safe for
// concurrent use.
type Gathering[I any] struct{ to *gathering }

// gathering is the part of a Gathering that does not depend on the type of the items.
type gathering struct {
	topic   string
	records func(items []gathered) ([][]byte, error)
}

// gathered is an item for one partition.
type gathered struct {
	item       any
	to         *gathering
	topic      uint16 // index into the group's outputs
	partition  int32
	traced     uint16 // see emit
	originTime int64
}

// Gather returns a Gathering of items for a stream of the group's outputs. join makes records from at least one item, in the order of
// the items. It must bound their size, and their items must not make a callback exceed its limits.
func Gather[I, R any](s topics.Stream[R], join func([]I) []*R) *Gathering[I] {
	return &Gathering[I]{&gathering{s.Name, func(list []gathered) ([][]byte, error) {
		items := make([]I, len(list))
		for i := range list {
			items[i] = list[i].item.(I)
		}
		var values [][]byte
		for _, rec := range join(items) {
			value, err := s.Encode(rec)
			if err != nil {
				return nil, err
			}
			values = append(values, value)
		}
		return values, nil
	}}}
}

// Add adds an item for a partition. bytes is its size in a record, and counts for the limits of the callback.
func (g *Gathering[I]) Add(tx *Tx, partition int32, item I, bytes int) {
	if topic, ok := tx.output(g.to.topic, partition); ok && tx.hasRoom(bytes) && !tx.s.silent {
		b := tx.s.pending
		b.gathered = append(b.gathered, gathered{item, g.to, topic, partition, b.traces.now, tx.originTime()})
		b.gatheredBytes += bytes
	}
}

// emitGathered adds the records of the gathered items.
func (b *batch) emitGathered() error {
	slices.SortStableFunc(b.gathered, func(x, y gathered) int {
		return cmp.Or(cmp.Compare(x.topic, y.topic), cmp.Compare(x.partition, y.partition))
	})
	for rest := b.gathered; len(rest) > 0; {
		first := rest[0]
		end := slices.IndexFunc(rest, func(g gathered) bool { return g.topic != first.topic || g.partition != first.partition })
		if end < 0 {
			end = len(rest)
		}
		values, err := first.to.records(rest[:end])
		if err != nil {
			return fmt.Errorf("gather %s: %w", first.to.topic, err)
		}
		oldest := slices.MinFunc(rest[:end], func(x, y gathered) int { return cmp.Compare(x.originTime, y.originTime) })
		for _, value := range values {
			b.emit(first.topic, first.partition, "", value, oldest.originTime).traced = first.traced
		}
		rest = rest[end:]
	}
	return nil
}
