package feed

import "github.com/smartfeed/smartfeed/schemas"

// DeletedUsers is the set of deleted users that this process holds in memory.
type DeletedUsers interface {
	Has(user schemas.UserID) bool
	// Ready is closed when the set contains every deletion that was published before the process started.
	Ready() <-chan struct{}
}

// unreadUsers replaces a set that is never read.
type unreadUsers struct{}

func (unreadUsers) Has(schemas.UserID) bool { return false }
func (unreadUsers) Ready() <-chan struct{}  { return nil }

// isComplete reports whether the set contains every deletion that was published before the process started. Until then, the
// store is asked as well.
func isComplete(d DeletedUsers) bool {
	select {
	case <-d.Ready():
		return true
	default:
		return false
	}
}
