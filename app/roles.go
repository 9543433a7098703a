package app

import (
	"fmt"

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
