package generations

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
	"github.com/smartfeed/smartfeed/topics/generation"
)

// ErrNoData is returned when no data of a user exists. Most often the id has a typo.
var ErrNoData = errors.New("no data of this user exists: check the id")

// CountRows returns the number of rows of an owner in the active generation of each group. It omits groups without any.
func CountRows(ctx context.Context, l *topics.Log, owner schemas.UserID, groups ...string) (map[string]int, error) {
	counts := map[string]int{}
	for _, group := range groups {
		own, err := RowsOf(ctx, l, group, owner)
		if err != nil {
			return nil, err
		}
		if len(own) > 0 {
			counts[group] = len(own)
		}
	}
	return counts, nil
}

// RowsOf returns the rows of an owner in the changelog of a group's active generation. The map has the values by row
// name.
func RowsOf(ctx context.Context, l *topics.Log, group string, owner schemas.UserID) (map[string][]byte, error) {
	name, err := activeName(ctx, l, group)
	if err != nil {
		return nil, err
	}
	return RowsIn(ctx, l, topics.TableOf(name), owner)
}

// RowsIn returns the rows of an owner in a changelog, values by name.
func RowsIn(ctx context.Context, l *topics.Log, table string, owner schemas.UserID) (map[string][]byte, error) {
	found := map[string][]byte{}
	err := l.ReadKey(ctx, table, string(owner), func(r *kgo.Record) error {
		of, row, _ := rows.ParseKey(r.Key)
		switch {
		case string(of) != string(owner):
		case r.Value == nil:
			delete(found, string(row))
		default:
			found[string(row)] = r.Value
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read rows of %s: %w", owner, err)
	}
	return found, nil
}

// OwnersOf returns the users with rows in the changelog of a group's active generation, sorted by id. It may include
// users whose rows were all deleted: tracking every row of every user would take more memory than the group itself.
func OwnersOf(ctx context.Context, l *topics.Log, group string) ([]schemas.UserID, error) {
	name, err := activeName(ctx, l, group)
	if err != nil {
		return nil, err
	}
	owners := map[schemas.UserID]struct{}{}
	err = l.ReadAll(ctx, topics.TableOf(name), func(r *kgo.Record) error {
		if owner, _, _ := rows.ParseKey(r.Key); len(owner) > 0 && r.Value != nil { // rows without an owner belong to the group itself
			owners[schemas.UserID(owner)] = struct{}{}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the owners of rows of %s: %w", group, err)
	}
	return slices.Sorted(maps.Keys(owners)), nil
}

// activeName returns the name of the active generation of a group.
func activeName(ctx context.Context, l *topics.Log, group string) (string, error) {
	w := topics.GenerationWatch{Log: l}
	err := w.Refresh(ctx)
	return generation.Name(group, w.Of(group).Active), err
}
