package app

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/smartfeed/smartfeed/internal/settings"
	"github.com/smartfeed/smartfeed/processors/actors"
	"github.com/smartfeed/smartfeed/processors/fanout"
	"github.com/smartfeed/smartfeed/processors/insights"
	"github.com/smartfeed/smartfeed/processors/interests"
	"github.com/smartfeed/smartfeed/processors/objects"
	"github.com/smartfeed/smartfeed/processors/pools"
	"github.com/smartfeed/smartfeed/processors/related"
	"github.com/smartfeed/smartfeed/processors/retries"
	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/topics"
)

// Role is the part of the pipeline that a process runs.
type Role string

// The roles. Each is also a command.
const (
	Dev         Role = "dev"         // everything, with its own broker and registry
	Process     Role = "process"     // groups with rows, and the content generator if pools is among them
	Serve       Role = "serve"       // the HTTP API
	Materialize Role = "materialize" // fills feed stores on Cassandra
)

// Roles returns all roles.
func Roles() []Role { return []Role{Dev, Process, Serve, Materialize} }

// parts returns the parts of a role. groups are those of the role Process; none: all.
func (r Role) parts(groups []string) ([]opener, error) {
	switch r {
	case Dev:
		return everything(), nil
	case Process:
		if len(groups) == 0 {
			groups = topics.RowGroups()
		}
		return processing(groups), nil
	case Serve:
		return serving(), nil
	case Materialize:
		return materializing(), nil
	}
	return nil, fmt.Errorf("unknown role %q: want one of %v", r, Roles())
}

// everything returns the parts of all roles in one process, with an embedded broker and registry.
func everything() []opener {
	return []opener{
		(*App).openBroker, (*App).openStreams, openGroups(topics.RowGroups()),
		(*App).openFeatures, (*App).openFeedStore, (*App).openSinks, (*App).openFeed, (*App).openServer,
	}
}

// processing returns the parts of the role process with the named groups, on external brokers.
func processing(groups []string) []opener {
	return []opener{
		(*App).openDir, openKafka(topics.RoleProcess), (*App).openStreams, openGroups(groups), (*App).openGeneratorFeatures, (*App).openServer,
	}
}

// materializing returns the parts that fill external feed stores.
func materializing() []opener {
	return []opener{
		(*App).openDir, openKafka(topics.RoleMaterialize), (*App).openStreams,
		(*App).openFeedStore, (*App).openSinks, (*App).openServer,
	}
}

// serving returns the parts that answer requests, with external brokers and pools. They also fill an embedded feed
// store, because only one process can use it.
func serving() []opener {
	return []opener{
		(*App).openDir, openKafka(topics.RoleServe), (*App).openStreams, (*App).openPeers,
		(*App).openFeatures, (*App).openFeedStore, (*App).openOwnSinks, (*App).openFeed, (*App).openServer,
	}
}

// group describes how this package runs a group with rows.
type group struct {
	name   string // one of topics.RowGroups
	define func(*App) rows.Group

	// known means that a user with rows in this group exists.
	known bool
	// read gives the services of this process a reader of the group's rows; nil: they use the rows only for known, if at
	// all.
	read func(*App, *rows.Runner)
	// owners is an input of the group. The member that owns a partition of it answers the requests of peers for the
	// partition's owners; "": peers send none.
	owners string
	// generations means that several generations of the group can run, and that the content generator reads them.
	generations bool
}

// groups returns the groups with rows.
func groups() []group {
	return []group{{
		name: topics.Objects,
		define: func(p *App) rows.Group {
			cfg := p.cfg.Objects
			cfg.CurrentVerbs = p.currentVerbs
			return objects.Group(cfg, p.streams, p.deleted)
		},
	}, {
		name: topics.Actors, // profiles, actions and affinities
		define: func(p *App) rows.Group {
			cfg := p.cfg.Actors
			cfg.CurrentVerbs = p.currentVerbs
			return actors.Group(cfg, p.streams, p.deleted)
		},
		known: true, owners: topics.Users,
	}, {
		name:   topics.Fanout, // pins, followers and blocks by others
		define: func(p *App) rows.Group { return fanout.Group(p.cfg.Fanout, p.cfg.partitions(), p.streams, p.deleted) },
		known:  true, owners: topics.Follows,
	}, {
		name:   topics.Related,
		define: func(p *App) rows.Group { return related.Group(p.cfg.Related, p.streams) },
		read:   func(p *App, r *rows.Runner) { p.services.Neighbors = related.Reader{Rows: r.View()} },
		owners: topics.RelatedPairs,
	}, {
		name:   topics.Pools, // follows, blocks, visits and candidates
		define: func(p *App) rows.Group { return pools.Group(p.cfg.Pools, p.streams, p.deleted) },
		known:  true, owners: topics.Deliveries, generations: true,
	}, {
		name: topics.Interests,
		define: func(p *App) rows.Group {
			return interests.Group(p.cfg.Interests, p.cfg.partitions(), p.streams, p.deleted, p.decided)
		},
		read: func(p *App, r *rows.Runner) {
			p.services.Interests = interests.Reader{Rows: r.View(), Config: p.cfg.Interests, Partitions: p.cfg.partitions(), Now: time.Now}
		},
		owners: topics.InterestMarks,
	}, {
		name:   topics.Insights,
		define: func(p *App) rows.Group { return insights.Group(p.cfg.Insight, p.streams, p.deleted) },
		read: func(p *App, r *rows.Runner) {
			p.services.Insights = insights.NewReader(r.View(), p.cfg.partitions(), p.deleted)
		},
		owners: topics.ActionsEnriched,
	}, {
		name: topics.Retries,
		define: func(p *App) rows.Group {
			return retries.Group(p.cfg.Retries, topics.Catalogue(topics.Profile{Partitions: p.cfg.partitions()}), p.streams)
		},
		read: func(p *App, r *rows.Runner) {
			p.services.Retries = retries.Reader{Rows: r.View(), Config: p.cfg.Retries}
		},
		owners: topics.DeadLetters,
	}}
}

// groupNamed returns the entry of a group, or an error that lists the names.
func groupNamed(name string) (group, error) {
	for _, g := range groups() {
		if g.name == name {
			return g, nil
		}
	}
	return group{}, fmt.Errorf("unknown group %q: want one of %s", name, strings.Join(topics.RowGroups(), ", "))
}

// checkGroups reports every unknown group, and every duplicate.
func checkGroups(names []string) error {
	var problems settings.Problems
	for i, name := range names {
		_, err := groupNamed(name)
		problems.Add(err)
		problems.Want(err != nil || !slices.Contains(names[:i], name), "group %s is listed twice", name)
	}
	return problems.Err()
}

// answersPeers reports whether other processes send requests to a process with these groups; none: all.
func answersPeers(names []string) bool {
	return len(names) == 0 || slices.ContainsFunc(names, func(name string) bool {
		g, err := groupNamed(name)
		return err == nil && g.owners != ""
	})
}
