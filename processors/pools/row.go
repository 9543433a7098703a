package pools

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
	rowAffinities = 'a' // Affinities record
	// source 0x00 score pin 0x00 version → body, see package ranked; best first; first versions only, see isFirst
	rowCandidate = 'c'
	rowChanged   = 'd' // same for later versions, and for offers of external systems
	rowFrozen    = 'e' // last position → FeedEntries record of a visit; the newest Frozen entries; see frozen.go
	rowFollows   = 'f' // followCounts
	// register, other → for a follow its time and weight, see appendFollow; one row per live block and admitted follow
	rowGraph     = 'g'
	rowIndex     = 'i' // last position → pins that a visit showed; see seen.go
	rowState     = 'm' // state
	rowFormer    = 'o' // other → empty, or formerRefused: there was a follow or block that has ended, or had ended for a time
	rowRefused   = 'r' // other → live follow over the cap; see followees.go
	rowSeen      = 's' // pin → seen; see seen.go
	rowGivenUp   = 'u' // pins that were deferred for too long, oldest first; see given_up.go
	rowPresence  = 'v' // presence
	rowRefusedBy = 'w' // time, other → empty: the refused follows in the order of admission
)

// Registers: the second byte of the names of rowGraph.
const (
	regFollow  = 'f'
	regBlock   = 'b' // the user blocks
	regBlocked = 'd' // the user is blocked by other
)

// table is read access to the rows of an owner, in a callback or in a snapshot.
type table interface {
	Get(row []byte) ([]byte, error)
	Scan(s rows.Scan, visit func(row, value []byte) bool) error
}

func rowOf[T ~string](kind byte, id T) []byte {
	return append(append(make([]byte, 0, 1+len(id)), kind), id...)
}

// positionRow returns the name of the row of a position. Names sort in ascending order of positions.
func positionRow(kind byte, position int64) []byte {
	return binary.BigEndian.AppendUint64([]byte{kind}, uint64(position))
}

// positionOf returns the position in a name that positionRow returned.
func positionOf(row []byte) int64 { return int64(binary.BigEndian.Uint64(row[1:])) }

// graphRow returns the name of the row of a register.
func graphRow(register byte, other schemas.ID) []byte {
	return append([]byte{rowGraph, register}, other...)
}

// candidateKinds returns the kinds of candidate rows.
func candidateKinds() []byte { return []byte{rowCandidate, rowChanged} }

// sourcePrefix returns the prefix of the candidate rows of a kind and source.
func sourcePrefix(kind byte, source schemas.Source) []byte {
	return append(rowOf(kind, source), 0)
}

// kindOf returns the kind of row for a version of a pin.
func kindOf(first bool) byte {
	if first {
		return rowCandidate
	}
	return rowChanged
}

// appendCandidate appends the name of a candidate row.
func appendCandidate(b []byte, kind byte, source schemas.Source, score float64, pin schemas.PinID, v schemas.Version) []byte {
	b = append(append(append(b, kind), source...), 0)
	b = ranked.AppendScore(b, score)
	return ranked.AppendVersion(append(append(b, pin...), 0), v)
}

// candidateRow is a version of a pin in a pool.
type candidateRow struct {
	pin     schemas.PinID
	version schemas.Version
	score   float64
	created schemas.Micros
	deleted bool
	name    string // of the row
	body    string // see ranked.ParseBody; most rows are only sorted, so it is parsed on demand
}

var errCandidate = errors.New("parse candidate: cut short or malformed")

// parseCandidate parses a row. prefix is the length of the row's sourcePrefix.
func parseCandidate(prefix int, name, value string) (candidateRow, error) {
	const tail = 1 + 8 // terminator, version
	pin := len(name) - prefix - ranked.ScoreBytes - tail
	if pin <= 0 {
		return candidateRow{}, errCandidate
	}
	created, deleted, err := ranked.ParseHead(value)
	if err != nil {
		return candidateRow{}, err
	}
	rest := name[prefix+ranked.ScoreBytes:]
	if rest[pin] != 0 {
		return candidateRow{}, errCandidate
	}
	return candidateRow{
		pin: schemas.PinID(rest[:pin]), version: ranked.Version(rest[pin+1:]), score: ranked.Score(name[prefix:]),
		created: created, deleted: deleted, name: name, body: value,
	}, nil
}

// place returns the part of the name that orders the rows of a source, whatever their kind.
func (r *candidateRow) place() string { return r.name[1:] }

// sources returns the sources of which a user has candidate rows, by name. It reads one row per source and kind.
func sources(t table) ([]schemas.Source, error) {
	var list []schemas.Source
	for _, kind := range candidateKinds() {
		more, err := sourcesOf(t, kind)
		if err != nil {
			return nil, err
		}
		list = append(list, more...)
	}
	slices.Sort(list)
	return slices.Compact(list), nil
}

func sourcesOf(t table, kind byte) ([]schemas.Source, error) {
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
		from = append(rowOf(kind, list[before]), 1) // after the terminator
	}
}
