// Package layout defines the rows of the pools, which the group pools writes and the generator reads. See package pools.
package layout

import (
	"encoding/binary"
	"errors"
	"slices"
	"strings"

	"github.com/smartfeed/smartfeed/processors/ranked"
	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/schemas"
)

// Kinds of rows of a user: the first byte of their names.
const (
	KindAffinities = 'a' // Affinities record
	// source 0x00 score pin 0x00 version → body, see package ranked; best first; first versions only
	KindFirstVersion = 'c'
	KindLaterVersion = 'd' // same for later versions, and for offers of external systems
	KindMaterialized = 'e' // last position → FeedEntries record of a visit; the newest Config.MaxRecentItems entries
	KindFollowCounts = 'f' // counts of the follows
	// register, other → for a follow its time and weight; one row per live block and admitted follow
	KindGraph         = 'g'
	KindSeenIndex     = 'i' // last position → pins that a visit showed; see seen.go
	KindState         = 'm' // State
	KindFormer        = 'o' // other → empty, or 1 if the follow was refused when it ended; a follow or block that has ended at least once
	KindReported      = 'p' // reported pins that were not seen; exists if a feed of the user waits for reports
	KindUnreported    = 'q' // last position → pins of a visit that the client has not reported; may have a timer
	KindRefused       = 'r' // other → live follow over the cap
	KindSeen          = 's' // pin → Seen
	KindExpired       = 'u' // pins that were deferred for too long, oldest first; see expired.go
	KindActivity      = 'v' // Activity
	KindRefusedByTime = 'w' // time, other → empty: the refused follows in the order of admission
)

// Registers: the second byte of the names of KindGraph.
const (
	RegisterFollow    = 'f'
	RegisterBlock     = 'b' // the user blocks
	RegisterBlockedBy = 'd' // the user is blocked by other
)

// Table is read access to the rows of an owner, in a callback or in a snapshot.
type Table = rows.RowReader

// PositionRow returns the name of the row of a position. Names sort in ascending order of positions.
func PositionRow(kind byte, position int64) []byte {
	return binary.BigEndian.AppendUint64([]byte{kind}, uint64(position))
}

// PositionOf returns the position in a name that PositionRow returned.
func PositionOf(row []byte) int64 { return int64(binary.BigEndian.Uint64(row[1:])) }

// GraphRow returns the name of the row of a register.
func GraphRow(register byte, other schemas.ID) []byte {
	return append([]byte{KindGraph, register}, other...)
}

// CandidateKinds returns the kinds of candidate rows.
func CandidateKinds() []byte { return []byte{KindFirstVersion, KindLaterVersion} }

// SourcePrefix returns the prefix of the candidate rows of a kind and source.
func SourcePrefix(kind byte, source schemas.Source) []byte {
	return append(rows.Name(kind, source), 0)
}

// VersionKind returns the kind of row for a version of a pin.
func VersionKind(first bool) byte {
	if first {
		return KindFirstVersion
	}
	return KindLaterVersion
}

// AppendCandidate appends the name of a candidate row.
func AppendCandidate(b []byte, kind byte, source schemas.Source, score schemas.PoolScore, pin schemas.PinID, v schemas.Version) []byte {
	b = append(append(append(b, kind), source...), 0)
	b = ranked.AppendScore(b, score)
	return ranked.AppendVersion(append(append(b, pin...), 0), v)
}

// CandidateRow is a version of a pin in a pool.
type CandidateRow struct {
	Pin       schemas.PinID
	Version   schemas.Version
	PoolScore schemas.PoolScore
	Created   schemas.Micros
	deleted   bool
	Name      string // of the row
	body      string // see ranked.ParseBody; most rows are only sorted, so it is parsed on demand
}

var errCandidate = errors.New("parse candidate: truncated or malformed")

// ParseCandidate parses a row. prefix is the length of the row's SourcePrefix.
func ParseCandidate(prefix int, name, value string) (CandidateRow, error) {
	const tail = 1 + 8 // terminator, version
	pin := len(name) - prefix - ranked.ScoreBytes - tail
	if pin <= 0 {
		return CandidateRow{}, errCandidate
	}
	created, deleted, err := ranked.ParseHead(value)
	if err != nil {
		return CandidateRow{}, err
	}
	rest := name[prefix+ranked.ScoreBytes:]
	if rest[pin] != 0 {
		return CandidateRow{}, errCandidate
	}
	return CandidateRow{
		Pin: schemas.PinID(rest[:pin]), Version: ranked.Version(rest[pin+1:]), PoolScore: ranked.Score[schemas.PoolScore](name[prefix:]),
		Created: created, deleted: deleted, Name: name, body: value,
	}, nil
}

// Place returns the part of the name that orders the rows of a source, regardless of their kind.
func (r *CandidateRow) Place() string { return r.Name[1:] }

// Sources returns the sources of a user's candidate rows, by name. It reads one row per source and kind.
func Sources(t Table) ([]schemas.Source, error) {
	var list []schemas.Source
	for _, kind := range CandidateKinds() {
		more, err := sourcesOfKind(t, kind)
		if err != nil {
			return nil, err
		}
		list = append(list, more...)
	}
	slices.Sort(list)
	return slices.Compact(list), nil
}

func sourcesOfKind(t Table, kind byte) ([]schemas.Source, error) {
	var list []schemas.Source
	from := []byte(nil)
	for {
		before := len(list)
		err := t.Scan(rows.Scan{Prefix: []byte{kind}, From: from, Limit: 1}, func(row, _ []byte) bool {
			source, _, _ := strings.Cut(string(row[1:]), "\x00")
			list = append(list, schemas.Source(source))
			return false
		})
		if err != nil || len(list) == before {
			return list, err
		}
		from = append(rows.Name(kind, list[before]), 1) // after the terminator
	}
}
