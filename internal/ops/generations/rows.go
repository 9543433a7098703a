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
		own, err := rowsOf(ctx, l, group, owner)
		if err != nil {
			return nil, err
		}
		if len(own) > 0 {
			counts[group] = len(own)
		}
	}
	return counts, nil
}

// rowsOf returns the rows of a user in the pools, values by name. It returns ErrNoData if there are none.
func (a *access) rowsOf(ctx context.Context, user schemas.UserID) (map[string][]byte, error) {
	own, err := rowsOf(ctx, a.log, topics.Pools, user)
	if err == nil && len(own) == 0 {
		err = ErrNoData
	}
	return own, err
}

// rowsOf returns the rows of an owner in the changelog of a group's active generation, values by name.
func rowsOf(ctx context.Context, l *topics.Log, group string, owner schemas.UserID) (map[string][]byte, error) {
	table, err := tableOf(ctx, l, group)
	if err != nil {
		return nil, err
	}
	return RowsIn(ctx, l, table, owner)
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

// ownersOf returns the users with rows in the changelog of a group's active generation, sorted by id. It may include
// users whose rows were all deleted: tracking every row of every user would take more memory than the group itself.
func ownersOf(ctx context.Context, l *topics.Log, group string) ([]schemas.UserID, error) {
	table, err := tableOf(ctx, l, group)
	if err != nil {
		return nil, err
	}
	owners := map[schemas.UserID]struct{}{}
	err = l.ReadAll(ctx, table, func(r *kgo.Record) error {
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

// stateOf returns the present state of a group's generations.
func stateOf(ctx context.Context, l *topics.Log, group string) (generation.Record, error) {
	w := topics.GenerationWatch{Log: l}
	err := w.Refresh(ctx)
	return w.Of(group), err
}

// tableOf returns the changelog of the active generation of a group.
func tableOf(ctx context.Context, l *topics.Log, group string) (string, error) {
	now, err := stateOf(ctx, l, group)
	return topics.TableOf(generation.Name(group, now.Active)), err
}
