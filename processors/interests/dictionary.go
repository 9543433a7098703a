package interests

import (
	"encoding/binary"
	"math"
	"strings"

	"github.com/smartfeed/smartfeed/internal/packed"
	"github.com/smartfeed/smartfeed/processors/decay"
	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/schemas"
)

// term holds the counts of a term.
type term struct {
	Pins     int64
	MaxError int64     // maximum by which Pins is too high
	People   int64     // counted authors
	Recent   decay.Sum // decayed sum with a weight of 1 for each pin
}

// Pack implements packed.Row.
func (t *term) Pack(p *packed.Packer) {
	p.Version(format)
	packed.Int(p, &t.Pins)
	packed.Int(p, &t.MaxError)
	packed.Int(p, &t.People)
	packed.Float(p, &t.Recent)
}

// score returns the score of a candidate; recent is the remaining part of its pins. See the package comment.
func (t term) score(name string, recent float64, cfg Config) float64 {
	pins := t.Pins - t.MaxError
	if pins < 1 {
		return 0
	}
	frequency := math.Log1p(float64(pins)) * math.Log2(float64(2+strings.Count(name, " ")))
	spread := float64(t.People) / float64(min(pins, int64(cfg.MaxAuthors)))
	return frequency * min(1, spread) * (1 + recent) / 2
}

// recent returns the part of a term's pins that remains after decay.
func (t term) recent(now schemas.Micros) float64 {
	return min(1, t.Recent.At(now, scale)/float64(max(t.Pins, 1)))
}

// dictionary accesses the terms of a partition.
type dictionary struct {
	tx  *rows.Tx
	own rows.Owner
	cfg Config
}

func rankName(pins int64, name string) []byte {
	return append(binary.BigEndian.AppendUint64([]byte{rowRank}, uint64(pins)), name...)
}

func authorPrefix(name string) []byte { return append(append([]byte{rowAuthor}, name...), 0) }

// apply counts a pin that has a term, or subtracts one that no longer has it.
func (d dictionary) apply(m schemas.TermMark) {
	t, known := rows.Load[term](d.own, rows.Name(rowTerm, m.Term))
	switch {
	case m.Removed && (!known || t.Pins <= t.MaxError):
		return // the pin was counted before the term was evicted
	case m.Removed:
		d.subtract(m, t)
		return
	case !known:
		t = d.admit()
	default:
		d.own.Delete(rankName(t.Pins, m.Term))
	}
	t.Pins++
	t.Recent = t.Recent.Plus(decay.SumOf(1, m.Time, scale))
	d.author(m, &t, 1)
	d.put(m.Term, t)
}

// subtract subtracts a pin.
func (d dictionary) subtract(m schemas.TermMark, t term) {
	d.own.Delete(rankName(t.Pins, m.Term))
	t.Pins--
	d.author(m, &t, -1)
	if t.Pins > 0 {
		d.put(m.Term, t)
		return
	}
	d.drop(m.Term)
	rows.AddNumber(d.own, []byte{rowTerms}, -1)
}

func (d dictionary) put(name string, t term) {
	rows.PutValue(d.own, rows.Name(rowTerm, name), &t)
	d.own.Put(rankName(t.Pins, name), nil)
}

// admit reserves a row for a new term, and returns its initial counts.
func (d dictionary) admit() term {
	n, _ := rows.Load[rows.Number](d.own, []byte{rowTerms})
	if n < rows.Number(d.cfg.MaxTerms) {
		rows.AddNumber(d.own, []byte{rowTerms}, 1)
		return term{Recent: decay.None()}
	}
	fewest := rows.LoadNames(d.own, []byte{rowRank}, 1)
	if len(fewest) == 0 {
		return term{Recent: decay.None()}
	}
	const head = 1 + 8
	pins := int64(binary.BigEndian.Uint64(fewest[0][1:head]))
	d.tx.Effect("evicted_terms", 1)
	d.own.Delete(fewest[0])
	d.drop(string(fewest[0][head:]))
	return term{Pins: pins, MaxError: pins, Recent: decay.None()}
}

// drop deletes a term whose rank is already deleted.
func (d dictionary) drop(name string) {
	rows.DeleteAll(d.own, authorPrefix(name), d.cfg.MaxAuthors)
	d.own.Delete(rows.Name(rowTerm, name))
}

// author adds n to the pins of the author, for at most MaxAuthors authors.
func (d dictionary) author(m schemas.TermMark, t *term, n rows.Number) {
	name := append(authorPrefix(m.Term), m.Author...)
	pins, known := rows.Load[rows.Number](d.own, name)
	switch {
	case !known && (n < 0 || t.People >= int64(d.cfg.MaxAuthors)):
		return
	case !known:
		t.People++
	case pins+n <= 0:
		t.People--
		d.own.Delete(name)
		return
	}
	pins += n
	rows.PutValue(d.own, name, &pins)
}
