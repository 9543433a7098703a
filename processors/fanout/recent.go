package fanout

import (
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"time"

	"github.com/smartfeed/smartfeed/processors/ranked"
	"github.com/smartfeed/smartfeed/processors/score"
	"github.com/smartfeed/smartfeed/schemas"
)

// recent is a pin among what a followee published last.
type recent struct {
	schemas.DeliveredPin
	gone bool // deleted, or no longer the followee's: kept so that an older version cannot come back
}

// recentOf returns the recent of a publication.
func recentOf(p *schemas.Publication, halfLife time.Duration) recent {
	return recent{DeliveredPin: delivered(p, halfLife), gone: p.Deleted || !carries(p.Facets, p.Followee)}
}

func delivered(p *schemas.Publication, halfLife time.Duration) schemas.DeliveredPin {
	return schemas.DeliveredPin{
		Pin: p.Pin, Version: p.Version, Facets: p.Facets, Created: p.Created,
		Score: score.Base(p.Quality, p.Created, halfLife), Deleted: p.Deleted,
	}
}

// carries says whether a pin of these facets belongs to the followee.
func carries(f schemas.Facets, followee schemas.Followee) bool {
	return schemas.Followee(f.Author) == followee || schemas.Followee(f.Board) == followee ||
		slices.Contains(f.Interests, schemas.InterestID(followee))
}

// appendRecent appends the row's value: gone (1 byte), version (8 bytes), body. Pin and score are in its name.
func appendRecent(b []byte, r *recent) []byte {
	gone := byte(0)
	if r.gone {
		gone = 1
	}
	b = ranked.AppendVersion(append(b, gone), r.Version)
	return ranked.AppendBody(b, &ranked.Body{Facets: r.Facets, Created: r.Created, Deleted: r.Deleted})
}

// parseRecent reads a row.
func parseRecent(row, value string) (recent, error) {
	const name, head = 1 + ranked.ScoreBytes, 9
	if len(row) <= name || len(value) < head || value[0] > 1 {
		return recent{}, errors.New("parse recent: cut short or malformed")
	}
	body, err := ranked.ParseBody(value[head:])
	if err != nil {
		return recent{}, err
	}
	return recent{
		DeliveredPin: schemas.DeliveredPin{
			Pin: schemas.PinID(row[name:]), Version: ranked.Version(value[1:]), Score: ranked.Score(row[1:]),
			Facets: body.Facets, Created: body.Created, Deleted: body.Deleted,
		},
		gone: value[0] == 1,
	}, nil
}

// known is what the index says of a pin: the version seen last, and the score under which its recent stands.
type known struct {
	version schemas.Version
	score   float64
}

func appendKnown(b []byte, k known) []byte {
	return binary.BigEndian.AppendUint64(ranked.AppendVersion(b, k.version), math.Float64bits(k.score))
}

func parseKnown(value []byte) (known, error) {
	if len(value) != 16 {
		return known{}, errors.New("parse index of recents: cut short or malformed")
	}
	return known{
		version: ranked.Version(string(value[:8])),
		score:   math.Float64frombits(binary.BigEndian.Uint64(value[8:])),
	}, nil
}

// surplus counts recents, best first, and says of each whether it is over the cap. Those that are gone have the same
// cap for themselves.
type surplus struct{ cap, here, gone int }

func (s *surplus) over(gone bool) bool {
	n := &s.here
	if gone {
		n = &s.gone
	}
	*n++
	return *n > s.cap
}

// portions cuts pins into runs that fit a record: at most 250 pins or 256 KiB each, one pin at least.
func portions(pins []schemas.DeliveredPin) [][]schemas.DeliveredPin {
	const mostPins, mostBytes = 250, 256 << 10
	var all [][]schemas.DeliveredPin
	start, size := 0, 0
	for i := range pins {
		n := pinBytes(&pins[i])
		if i > start && (i-start == mostPins || size+n > mostBytes) {
			all, start, size = append(all, pins[start:i]), i, 0
		}
		size += n
	}
	if start < len(pins) {
		all = append(all, pins[start:])
	}
	return all
}

// pinBytes is how long a pin may be in a record: its strings, each with two bytes of length, and its numbers.
func pinBytes(p *schemas.DeliveredPin) int {
	n := len(p.Pin) + len(p.Author) + len(p.Board) + 48
	for _, id := range p.Interests {
		n += len(id) + 2
	}
	return n
}
