package feedstore

import (
	"bytes"

	"github.com/smartfeed/smartfeed/internal/packed"
	"github.com/smartfeed/smartfeed/schemas"
)

// The first byte of a key is the kind of the row. Ids contain no control characters, so a zero byte ends an id.
const (
	kindCard         = 'c' // pin
	kindEdge         = 'e' // user 0 other 0 register
	kindEntry        = 'f' // user 0 position, newest first
	kindDeletedUser  = 'g' // user
	kindPlace        = 'l' // followee 0 created, newest first, pin
	kindListing      = 'p' // followee 0 pin
	kindTrimPosition = 't' // user
)

// registerByte returns the byte of a kind of edge in the key, and false if the kind is unknown.
func registerByte(k schemas.EdgeKind) (byte, bool) {
	switch k {
	case schemas.FollowEdge:
		return 'f', true
	case schemas.BlockEdge:
		return 'b', true
	case schemas.BlockedEdge:
		return 'x', true
	}
	return 0, false
}

func registerOf(b byte) schemas.EdgeKind {
	switch b {
	case 'f':
		return schemas.FollowEdge
	case 'b':
		return schemas.BlockEdge
	}
	return schemas.BlockedEdge
}

func key[S ~string](kind byte, id S) []byte {
	k := make([]byte, 0, 1+len(id))
	return append(append(k, kind), id...)
}

// prefix returns the start of a key: kind, id and the terminator of the id. It has capacity for room further bytes.
func prefix[S ~string](kind byte, id S, room int) []byte {
	k := make([]byte, 0, 2+len(id)+room)
	return append(append(append(k, kind), id...), 0)
}

func cardKey(pin schemas.PinID) []byte           { return key(kindCard, pin) }
func deletedUserKey(user schemas.UserID) []byte  { return key(kindDeletedUser, user) }
func trimPositionKey(user schemas.UserID) []byte { return key(kindTrimPosition, user) }

func entryKey(user schemas.UserID, position int64) []byte {
	return appendDown(prefix(kindEntry, user, 8), position)
}

// positionOf returns the position from the key of an entry.
func positionOf(key []byte) int64 { return down(key[len(key)-8:]) }

// edgesKey returns the prefix of the registers of user toward other.
func edgesKey(user schemas.UserID, other schemas.ID) []byte {
	return append(append(prefix(kindEdge, user, len(other)+2), other...), 0)
}

func edgeKey(user schemas.UserID, other schemas.ID, register byte) []byte {
	return append(edgesKey(user, other), register)
}

// edgesEnd returns the first key after all registers of user.
func edgesEnd(user schemas.UserID) []byte { return append(key(kindEdge, user), 1) }

func listingKey(followee schemas.Followee, pin schemas.PinID) []byte {
	return append(prefix(kindListing, followee, len(pin)), pin...)
}

func placeKey(followee schemas.Followee, p Place) []byte {
	k := appendDown(prefix(kindPlace, followee, 9+len(p.Pin)), int64(p.Created))
	return append(k, p.Pin...)
}

func placesEnd(followee schemas.Followee) []byte { return append(key(kindPlace, followee), 1) }

// placeOf returns the place from the key of a list row.
func placeOf(followee schemas.Followee, key []byte) Place {
	rest := key[2+len(followee):]
	return Place{Created: schemas.Micros(down(rest[:8])), Pin: schemas.PinID(rest[8:])}
}

// after returns the first key after key.
func after(key []byte) []byte { return append(bytes.Clone(key), 0) }

// appendDown appends n so that the bytes sort in the reverse order of the numbers, the greatest first.
func appendDown(b []byte, n int64) []byte {
	return packed.AppendOrdered(b, ^n)
}

func down(b []byte) int64 { return ^packed.FirstOrdered[int64](b) }
