package app

import (
	"context"

	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/serving/peers"
	"github.com/smartfeed/smartfeed/topics"
)

// groupRows are readers of the knownGroups that run in this process, by group.
type groupRows map[string]rows.Reader

// Known implements peers.Known.
func (g groupRows) Known(ctx context.Context, group string, user schemas.UserID) (bool, error) {
	r, ok := g[group]
	if !ok {
		return false, schemas.ErrNotOwner
	}
	return rows.HasRows(ctx, r, string(user))
}

// knownUsers implements api.KnownUsers.
type knownUsers struct {
	deleted topics.DeletedUsers
	groups  peers.Known
}

// Known reports whether a user was deleted, or has a row in one of knownGroups. It returns an error if the owner of the
// partition does not respond.
func (k knownUsers) Known(ctx context.Context, user schemas.UserID) (bool, error) {
	if k.deleted.Has(user) {
		return true, nil
	}
	for _, group := range knownGroups() {
		if known, err := k.groups.Known(ctx, group, user); known || err != nil {
			return known, err
		}
	}
	return false, nil
}
