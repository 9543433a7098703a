package ops

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
	"github.com/smartfeed/smartfeed/topics/generation"
)

// readKeyed calls visit for the records in the partition of key.
func readKeyed(ctx context.Context, l *topics.Log, k topics.Kafka, topic, key string, visit func(*kgo.Record) error) error {
	p := topics.Partition(key, k.Partitions)
	starts, err := l.Starts(ctx, topic)
	if err != nil {
		return err
	}
	end, err := l.End(ctx, topic, p)
	if err != nil {
		return err
	}
	return l.ReadTo(ctx, topic, p, starts[topic][p], end, visit)
}

// CountRows returns the number of rows that each group keeps for an owner.
func CountRows(ctx context.Context, l *topics.Log, k topics.Kafka, owner schemas.UserID, groups ...string) (map[string]int, error) {
	counts := map[string]int{}
	for _, group := range groups {
		rows, err := RowsOf(ctx, l, k, group, owner)
		if err != nil {
			return nil, err
		}
		if len(rows) > 0 {
			counts[group] = len(rows)
		}
	}
	return counts, nil
}

// RowsOf returns the rows that the active generation of a group keeps for an owner, as its changelog has them. The map has
// the values by row name.
func RowsOf(ctx context.Context, l *topics.Log, k topics.Kafka, group string, owner schemas.UserID) (map[string][]byte, error) {
	name, err := activeName(ctx, l, group)
	if err != nil {
		return nil, err
	}
	return rowsIn(ctx, l, k, topics.TableOf(name), owner)
}

// rowsIn returns the rows of an owner in a changelog, values by name.
func rowsIn(ctx context.Context, l *topics.Log, k topics.Kafka, table string, owner schemas.UserID) (map[string][]byte, error) {
	rows, prefix := map[string][]byte{}, append([]byte(owner), 0)
	err := readKeyed(ctx, l, k, table, string(owner), func(r *kgo.Record) error {
		row, of := bytes.CutPrefix(r.Key, prefix)
		switch {
		case !of:
		case r.Value == nil:
			delete(rows, string(row))
		default:
			rows[string(row)] = r.Value
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read rows of %s: %w", owner, err)
	}
	return rows, nil
}

// OwnersOf returns the users who have or had rows in the active generation of a group, sorted by id, as its changelog has
// them. The result may include users whose last row was deleted. To track every row of every user would take more memory
// than the group.
func OwnersOf(ctx context.Context, l *topics.Log, group string) ([]schemas.UserID, error) {
	name, err := activeName(ctx, l, group)
	if err != nil {
		return nil, err
	}
	owners := map[schemas.UserID]struct{}{}
	err = l.ReadAll(ctx, topics.TableOf(name), func(r *kgo.Record) error {
		if owner, _, _ := bytes.Cut(r.Key, []byte{0}); len(owner) > 0 && r.Value != nil { // rows without an owner belong to the group itself
			owners[schemas.UserID(owner)] = struct{}{}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read who has rows of %s: %w", group, err)
	}
	return slices.Sorted(maps.Keys(owners)), nil
}

// activeName returns the name of the active generation of a group.
func activeName(ctx context.Context, l *topics.Log, group string) (string, error) {
	w := topics.GenerationWatch{Log: l}
	err := w.Refresh(ctx)
	return generation.Name(group, w.Of(group).Active), err
}
