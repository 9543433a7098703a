package actors

import (
	"cmp"

	"github.com/smartfeed/smartfeed/schemas"
)

// effect is the effect of a user event.
type effect int

const (
	loses        effect = iota // an older update: no effect
	wins                       // it becomes the profile
	deletes                    // it deletes the user
	repeated                   // no effect: the profile already contains this event
	ofDeleted                  // no effect: the user is deleted
	deletesAgain               // the user is deleted; the deletion is announced again
)

// effectOf returns the effect of an event. held is the event in the profile: the newest update, the delete, or nil.
func effectOf(held, e *schemas.UserEvent) effect {
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

// attributes returns the attributes that are joined to actions. They are empty for an unknown user.
func attributes(profile *schemas.UserEvent) schemas.ActorAttributes {
	if profile == nil {
		return schemas.ActorAttributes{}
	}
	return schemas.ActorAttributes{
		Interests: profile.Interests, Embedding: profile.Embedding, Attributes: profile.Attributes,
	}
}
