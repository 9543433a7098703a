package app

import (
	"context"
	"slices"

	"github.com/smartfeed/smartfeed/processors/fanout"
	"github.com/smartfeed/smartfeed/processors/pools/layout"
	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/serving/peers"
	"github.com/smartfeed/smartfeed/topics"
)

// userRows implements peers.Users with the groups that run in this process.
type userRows struct {
	pools  *poolGenerations // nil: in other processes
	fanout rows.Reader      // nil: in other processes
}

// Users returns the first users of a partition whose ids start with prefix. A deleted user has no rows in the pools.
func (u userRows) Users(ctx context.Context, partition int32, prefix string, most int) (list []schemas.UserID, err error) {
	if u.pools == nil {
		return nil, schemas.ErrNotOwner
	}
	err = u.pools.view.Load().Owners(ctx, partition, prefix, func(owner string) bool {
		list = append(list, schemas.UserID(owner))
		return len(list) < most
	})
	return list, err
}

// Graph returns the part of a user's graph that a group has.
func (u userRows) Graph(ctx context.Context, group string, user schemas.UserID, most int) (*schemas.UserGraph, error) {
	switch {
	case group == topics.Pools && u.pools != nil:
		return layout.UserGraph(ctx, u.pools, user, most)
	case group == topics.Fanout && u.fanout != nil:
		n, err := fanout.Followers(ctx, u.fanout, schemas.Followee(user))
		return &schemas.UserGraph{Followers: n}, err
	}
	return nil, schemas.ErrNotOwner
}

// users implements api.Directory.
type users struct {
	rows       peers.Users
	partitions int32
}

// Users returns the first users whose ids start with prefix, from all partitions. It returns an error if an owner of a
// partition does not respond.
func (u users) Users(ctx context.Context, prefix string, limit int) ([]schemas.UserID, error) {
	list, err := topics.Gather(ctx, int(u.partitions), func(ctx context.Context, p int) ([]schemas.UserID, error) {
		return u.rows.Users(ctx, int32(p), prefix, limit)
	})
	slices.Sort(list)
	return list[:min(limit, len(list))], err
}

// Graph returns what a user follows and blocks, and the number of followers.
func (u users) Graph(ctx context.Context, user schemas.UserID, limit int) (*schemas.UserGraph, error) {
	followers, err := u.rows.Graph(ctx, topics.Fanout, user, limit)
	if err != nil {
		return nil, err
	}
	g, err := u.rows.Graph(ctx, topics.Pools, user, limit)
	if err == nil {
		g.Followers = followers.Followers
	}
	return g, err
}

// groupRows are readers of the known groups that run in this process, by group; see group.known.
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

// Known reports whether a user was deleted, or has a row in one of the known groups. It returns an error if the owner of
// the partition does not respond.
func (k knownUsers) Known(ctx context.Context, user schemas.UserID) (bool, error) {
	if k.deleted.Has(user) {
		return true, nil
	}
	for _, g := range groups() {
		if !g.known {
			continue
		}
		if known, err := k.groups.Known(ctx, g.name, user); known || err != nil {
			return known, err
		}
	}
	return false, nil
}
