package actors

import (
	"cmp"

	"github.com/smartfeed/smartfeed/schemas"
)

// fate is what becomes of a user event.
type fate int

const (
	loses        fate = iota // an older update: no effect
	wins                     // the profile from now on
	deletes                  // the end of the user
	repeated                 // the event that the profile is made of
	ofDeleted                // the user is gone
	deletesAgain             // the user is gone, and somebody wants to be sure of it
)

// fateOf decides about an event, given the event that the profile is made of: the newest update, the delete, or nil.
func fateOf(held, e *schemas.UserEvent) fate {
	switch {
	case held != nil && held.ID == e.ID:
		return repeated
	case isDelete(held) && e.Verb == schemas.Delete:
		return deletesAgain
	case isDelete(held):
		return ofDeleted
	case e.Verb == schemas.Delete:
		return deletes
	case held == nil || cmp.Or(cmp.Compare(e.Time, held.Time), cmp.Compare(e.ID, held.ID)) > 0:
		return wins
	}
	return loses
}

func isDelete(profile *schemas.UserEvent) bool {
	return profile != nil && profile.Verb == schemas.Delete
}

// attributes returns what actions are joined with, nothing for a user that nothing is known of.
func attributes(profile *schemas.UserEvent) schemas.ActorAttributes {
	if profile == nil {
		return schemas.ActorAttributes{}
	}
	return schemas.ActorAttributes{
		Interests: profile.Interests, Embedding: profile.Embedding, Attributes: profile.Attributes,
	}
}
