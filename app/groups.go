package app

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

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
		define: func(p *App) rows.Group { return related.Group(p.cfg.Related, p.cfg.partitions(), p.streams) },
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

// knownGroups returns the groups whose rows show that a user exists.
func knownGroups() (names []string) {
	for _, g := range groups() {
		if g.known {
			names = append(names, g.name)
		}
	}
	return names
}

// checkGroups reports every unknown group, and every duplicate.
func checkGroups(names []string) error {
	var problems []error
	for i, name := range names {
		if _, err := groupNamed(name); err != nil {
			problems = append(problems, err)
		} else if slices.Contains(names[:i], name) {
			problems = append(problems, fmt.Errorf("group %s is listed twice", name))
		}
	}
	return errors.Join(problems...)
}

// answersPeers reports whether other processes send requests to a process with these groups; none: all.
func answersPeers(names []string) bool {
	return len(names) == 0 || slices.ContainsFunc(names, func(name string) bool {
		g, err := groupNamed(name)
		return err == nil && g.owners != ""
	})
}
