package app

import (
	"context"

	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/serving/peers"
	"github.com/smartfeed/smartfeed/topics"
)

// userGroups returns the groups whose rows make a user known: actors has profiles, actions and affinities; fanout has pins,
// followers and whoever blocks the user; pools has follows, blocks, visits and candidates.
func userGroups() []string { return []string{topics.Actors, topics.Fanout, topics.Pools} }

// groupRows are the rows of those of userGroups that run in this process, by group.
type groupRows map[string]rows.Reader

// Known implements peers.Known.
func (g groupRows) Known(ctx context.Context, group string, user schemas.UserID) (bool, error) {
	r, ok := g[group]
	if !ok {
		return false, schemas.ErrElsewhere
	}
	return rows.HasRows(ctx, r, string(user))
}

// knownUsers reports whether users are known; see api.KnownUsers.
type knownUsers struct {
	deleted topics.DeletedUsers
	groups  peers.Known
}

// Known reports whether a user was deleted, or has a row in one of userGroups. It fails when an owner of the rows does not
// answer.
func (k knownUsers) Known(ctx context.Context, user schemas.UserID) (bool, error) {
	if k.deleted.Has(user) {
		return true, nil
	}
	for _, group := range userGroups() {
		if known, err := k.groups.Known(ctx, group, user); known || err != nil {
			return known, err
		}
	}
	return false, nil
}
