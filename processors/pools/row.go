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

// A user's rows, by the first byte of their names.
const (
	rowAffinities = 'a' // the Affinities record
	rowCandidate  = 'c' // source 0x00 score pin 0x00 version → body, see package ranked; best first. Of first versions, see isFirst
	rowChanged    = 'd' // the same of later versions, and of offers by other systems
	rowFrozen     = 'e' // position of the last → the FeedEntries record of a visit, of the newest Frozen entries; see frozen.go
	rowFollows    = 'f' // followCounts
	rowGraph      = 'g' // register, other → of a follow its time and weight, see appendFollow. There is one for each live block and each admitted follow
	rowIndex      = 'i' // position of the last → the pins that a visit showed; see seen.go
	rowState      = 'm' // state
	rowFormer     = 'o' // other → nothing, or formerRefused: there was a follow or a block that is dead now, or was for a time
	rowRefused    = 'r' // other → a live follow over the cap, see followees.go
	rowSeen       = 's' // pin → seen; see seen.go
	rowGivenUp    = 'u' // pins that were deferred for too long, oldest first; see given_up.go
	rowPresence   = 'v' // presence
	rowRefusedBy  = 'w' // time, other → nothing: the refused follows in the order in which they are admitted
)

// registers are the second byte of rows of the graph.
const (
	regFollow  = 'f'
	regBlock   = 'b' // the user blocks
	regBlocked = 'd' // the user is blocked by
)

// table is what reading takes: the rows of an owner in a callback, or in a snapshot.
type table interface {
	Get(row []byte) ([]byte, error)
	Scan(s rows.Scan, visit func(row, value []byte) bool) error
}

func rowOf[T ~string](kind byte, id T) []byte {
	return append(append(make([]byte, 0, 1+len(id)), kind), id...)
}

// positionRow is a row of a position; they sort ascending.
func positionRow(kind byte, position int64) []byte {
	return binary.BigEndian.AppendUint64([]byte{kind}, uint64(position))
}

// positionOf returns the position that positionRow named a row by.
func positionOf(row []byte) int64 { return int64(binary.BigEndian.Uint64(row[1:])) }

// graphRow is the row of a register.
func graphRow(register byte, other schemas.ID) []byte {
	return append([]byte{rowGraph, register}, other...)
}

// candidateKinds are the kinds of rows that candidates stand in.
func candidateKinds() []byte { return []byte{rowCandidate, rowChanged} }

// sourcePrefix is what the candidates of a kind and source begin with.
func sourcePrefix(kind byte, source schemas.Source) []byte {
	return append(rowOf(kind, source), 0)
}

// kindOf is the kind of row for a version of a pin.
func kindOf(first bool) byte {
	if first {
		return rowCandidate
	}
	return rowChanged
}

// appendCandidate appends the name of a candidate's row.
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
	body    string // see ranked.ParseBody: most rows are put in order and looked at no further
}

var errCandidate = errors.New("parse candidate: cut short or malformed")

// parseCandidate takes a row apart whose name begins with a prefix of that many bytes, see sourcePrefix.
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

// place is what the rows of a source are in order by, whatever their kind.
func (r *candidateRow) place() string { return r.name[1:] }

// sources returns the sources that a user has any candidate rows of, by name. It reads one row a source and kind.
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
		from = append(rowOf(kind, list[before]), 1) // behind the terminator
	}
}
