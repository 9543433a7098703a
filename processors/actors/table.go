package actors

import (
	"github.com/smartfeed/smartfeed/internal/packed"
	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/schemas"
)

// Rows of a user, by the first byte of their names.
const (
	profileRow = 'u' // → the newest update, or the delete, as a record of users
	facetRow   = 'f' // author, board or interest → the affinity for it, a facet; may have a timer
	recentRow  = 'r' // → the last positive actions, newest first: recentActions
	sentRow    = 's' // → when affinities were last sent: sent; may have a timer
	numberRow  = 'n' // → the number of the last action: rows.Number
)

// sent records when a user's affinities were last sent.
type sent struct {
	at     schemas.Micros // arrival time; 0: never
	due    schemas.Micros // when the timer sends them again; 0: no timer is set
	facets int            // number of affinity rows
}

// Pack implements packed.Row.
func (s *sent) Pack(p *packed.Packer) {
	p.Version(2)
	packed.Int(p, &s.at)
	packed.Int(p, &s.due)
	packed.Int(p, &s.facets)
}

// table accesses the rows of one user during one callback, and emits records.
type table struct {
	tx  *rows.Tx
	own rows.Owner
	*group
}

func (g *group) table(tx *rows.Tx, own rows.Owner) table { return table{tx, own, g} }

func (t table) now() schemas.Micros { return schemas.MicrosOf(t.tx.Time()) }

// user returns the owner of the rows.
func (t table) user() schemas.UserID { return schemas.UserID(t.tx.Key()) }

// profile returns the event in the profile: the newest update, or the delete. It returns nil for an unknown user.
func (t table) profile() *schemas.UserEvent {
	return rows.Record(t.own, []byte{profileRow}, t.streams.Users)
}

func (t table) putProfile(e *schemas.UserEvent) {
	rows.PutRecord(t.own, []byte{profileRow}, t.streams.Users, e)
}

// erase deletes all rows of the user except the delete itself.
func (t table) erase(e *schemas.UserEvent) {
	t.rankings().drop(e.Actor)
	t.dropFacets(e)
	t.own.Delete([]byte{recentRow})
	s := t.sent()
	if s.due != 0 {
		t.own.DropTimer(s.due.Time(), []byte{sentRow})
	}
	t.own.Delete([]byte{sentRow})
	t.own.Delete([]byte{numberRow})
	t.putProfile(&schemas.UserEvent{Event: e.Event})
	t.announceDeleted(e)
}

// announceDeleted announces that the user is deleted, and requests the erasure of the user's rows in the other groups.
func (t table) announceDeleted(e *schemas.UserEvent) {
	rows.Send(t.tx, t.streams.UsersDeleted, string(e.Actor), &schemas.DeletedUser{User: e.Actor, Time: e.Time})
	rows.Send(t.tx, t.streams.Erasures, string(e.Actor), &schemas.Erasure{User: e.Actor, Step: schemas.EraseUser, Time: e.Time})
}

// dropFacets removes all affinities and notifies their followees, which may store an edge weight.
func (t table) dropFacets(e *schemas.UserEvent) {
	t.eachFacet(func(id schemas.ID, f facet) {
		t.dropFacet(id, f)
		erasure := schemas.Erasure{User: e.Actor, Step: schemas.EraseFollower, Time: e.Time}
		rows.Send(t.tx, t.streams.Erasures, string(id), &erasure)
	})
}
