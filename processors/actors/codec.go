package actors

import (
	"encoding/binary"
	"errors"
	"math"

	"github.com/smartfeed/smartfeed/internal/packed"
	"github.com/smartfeed/smartfeed/schemas"
)

// Rows of a user, by the first byte of their names.
const (
	profileRow = 'u' // → the newest update, or the delete, as a record of users
	facetRow   = 'f' // author, board or interest → the affinity for it, see facet.encode; may have a timer
	recentRow  = 'r' // → the last positive actions, newest first, see encodeRecent
	sentRow    = 's' // → when affinities were last sent, see sent.encode; may have a timer
)

// formatFacet, formatSent and formatRecent are the first bytes of the rows' values and identify their layouts.
const (
	formatFacet  = 1
	formatSent   = 1
	formatRecent = 1
)

const (
	facetBytes = 1 + 8 + 8 + 4 + 8 + 8
	sentBytes  = 1 + 8 + 8 + 4
)

var errTorn = errors.New("decode row: cut short, or not of a known form")

// recentAction is a positive action of a user.
type recentAction struct {
	time    schemas.Micros
	encoded []byte                  // a record of related-requests, without Near
	request *schemas.RelatedRequest // the decoded record; nil: not decoded
}

// encodeRecent returns the format, the number of actions (uvarint), and the actions. An action is its time (8 bytes,
// big-endian), the length of its record (uvarint) and its record. One row holds all actions, because they are always read
// together, and a get costs much less than a scan.
func encodeRecent(list []recentAction) []byte {
	size := 1 + binary.MaxVarintLen32
	for _, r := range list {
		size += 8 + binary.MaxVarintLen32 + len(r.encoded)
	}
	return packed.AppendList(append(make([]byte, 0, size), formatRecent), list, func(b []byte, r recentAction) []byte {
		return packed.AppendText(binary.BigEndian.AppendUint64(b, uint64(r.time)), r.encoded)
	})
}

// decodeRecent decodes the output of encodeRecent. It does not decode the records, which share the memory of b.
func decodeRecent(b []byte) ([]recentAction, error) {
	r := packed.NewReader(b)
	if r.Byte() != formatRecent {
		return nil, errTorn
	}
	list := packed.List(r, func(r *packed.Reader) recentAction {
		return recentAction{time: schemas.Micros(r.Uint64()), encoded: r.Bytes()}
	})
	if r.End() != nil {
		return nil, errTorn
	}
	return list, nil
}

func facetName(id schemas.ID) []byte { return append([]byte{facetRow}, id...) }

// facetOf returns the facet of a row or timer name. It returns false for other rows.
func facetOf(name []byte) (schemas.ID, bool) {
	if len(name) < 2 || name[0] != facetRow {
		return "", false
	}
	return schemas.ID(name[1:]), true
}

// encode returns format, sum (IEEE 754), time, told (IEEE 754), moved and wakes, all big-endian.
func (f facet) encode() []byte {
	b := make([]byte, 0, facetBytes)
	b = append(b, formatFacet)
	b = binary.BigEndian.AppendUint64(b, math.Float64bits(f.sum))
	b = binary.BigEndian.AppendUint64(b, uint64(f.time))
	b = binary.BigEndian.AppendUint32(b, math.Float32bits(f.told))
	b = binary.BigEndian.AppendUint64(b, uint64(f.moved))
	return binary.BigEndian.AppendUint64(b, uint64(f.wakes))
}

func decodeFacet(b []byte) (facet, error) {
	if len(b) != facetBytes || b[0] != formatFacet {
		return facet{}, errTorn
	}
	return facet{
		decayed: decayed{sum: math.Float64frombits(binary.BigEndian.Uint64(b[1:])), time: micros8(b[9:])},
		told:    math.Float32frombits(binary.BigEndian.Uint32(b[17:])),
		moved:   micros8(b[21:]),
		wakes:   micros8(b[29:]),
	}, nil
}

// sent records when a user's affinities were last sent.
type sent struct {
	at     schemas.Micros // arrival time; 0: never
	due    schemas.Micros // when the timer sends them again; 0: no timer is set
	facets int            // number of affinity rows
}

// encode returns format, at, due and facets, all big-endian.
func (s sent) encode() []byte {
	b := make([]byte, 0, sentBytes)
	b = append(b, formatSent)
	b = binary.BigEndian.AppendUint64(b, uint64(s.at))
	b = binary.BigEndian.AppendUint64(b, uint64(s.due))
	return binary.BigEndian.AppendUint32(b, uint32(s.facets))
}

func decodeSent(b []byte) (sent, error) {
	if len(b) != sentBytes || b[0] != formatSent {
		return sent{}, errTorn
	}
	return sent{at: micros8(b[1:]), due: micros8(b[9:]), facets: int(binary.BigEndian.Uint32(b[17:]))}, nil
}

func micros8(b []byte) schemas.Micros { return schemas.Micros(binary.BigEndian.Uint64(b)) }
