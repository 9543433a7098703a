package api

import (
	"cmp"
	"context"
	"strings"

	"github.com/smartfeed/smartfeed/schemas"
)

// Directory lists users and their graphs.
type Directory interface {
	// Users returns at most limit users whose ids start with prefix, in ascending order.
	Users(ctx context.Context, prefix string, limit int) ([]schemas.UserID, error)
	// Graph returns what a user follows and blocks, at most limit of each, and the number of followers.
	Graph(ctx context.Context, user schemas.UserID, limit int) (*schemas.UserGraph, error)
}

// MaxUsers is the maximum number of users, or of a user's follows, of an answer.
const MaxUsers = 1000

// users answers with the users whose ids start with a text.
func (s *Server) users(p *parameters) computation {
	const kind = "user:"
	prefix, limit := cmp.Or(p.text("prefix"), kind), p.limit(DefaultLimit, MaxUsers)
	if !strings.HasPrefix(prefix, kind) {
		p.wrong("prefix " + quote(prefix) + ": want user:…")
	}
	return func(ctx context.Context) (any, error) { return listOf(s.deps.Directory.Users(ctx, prefix, limit)) }
}

func (s *Server) graph(p *parameters) computation {
	user, limit := p.user(), p.limit(DefaultLimit, MaxUsers)
	return func(ctx context.Context) (any, error) { return s.deps.Directory.Graph(ctx, user, limit) }
}

// config answers with the configuration of this process.
func (s *Server) config(p *parameters) computation {
	changed := p.boolean("changed")
	return func(context.Context) (any, error) { return s.deps.Config(changed) }
}
