// Package deletedtest has a set of deleted users for tests.
package deletedtest

import (
	"sync"

	"github.com/smartfeed/smartfeed/schemas"
)

// Users is a set of deleted users, each with the time of the deletion. The zero value is an empty set.
type Users struct{ sync.Map }

// Of returns the set of the given users.
func Of(users ...schemas.UserID) *Users {
	u := new(Users)
	for _, user := range users {
		u.Note(user, 0)
	}
	return u
}

// Has reports whether a user is in the set.
func (u *Users) Has(user schemas.UserID) bool {
	_, deleted := u.Load(user)
	return deleted
}

// Len returns the number of users.
func (u *Users) Len() (n int) {
	u.Range(func(any, any) bool { n++; return true })
	return n
}

// Note adds a user.
func (u *Users) Note(user schemas.UserID, at schemas.Micros) { u.Store(user, at) }
