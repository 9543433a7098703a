package interests

import (
	"cmp"
	"encoding/binary"
	"math"
	"strings"

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
func (t term) recent(now schemas.Micros, scale decay.Scale) float64 {
	return min(1, t.Recent.At(now, scale)/float64(max(t.Pins, 1)))
}

// dictionary accesses the terms of a partition.
type dictionary struct {
	tx    *rows.Tx
	own   rows.Owner
	cfg   Config
	scale decay.Scale
}

func termName(name string) []byte { return append([]byte{rowTerm}, name...) }

func rankName(pins int64, name string) []byte {
	return append(binary.BigEndian.AppendUint64([]byte{rowRank}, uint64(pins)), name...)
}

func authorPrefix(name string) []byte { return append(append([]byte{rowAuthor}, name...), 0) }

// apply counts a pin that has a term, or subtracts one that no longer has it.
func (d dictionary) apply(m schemas.TermMark) error {
	t, known, err := rows.Value[term](d.own, termName(m.Term))
	switch {
	case err != nil:
		return err
	case m.Removed && (!known || t.Pins <= t.MaxError):
		return nil // the pin was counted before the term was evicted
	case m.Removed:
		return d.subtract(m, t)
	case !known:
		if t, err = d.admit(); err != nil {
			return err
		}
	default:
		if err := d.own.Delete(rankName(t.Pins, m.Term)); err != nil {
			return err
		}
	}
	t.Pins++
	t.Recent = t.Recent.Plus(decay.SumOf(1, m.Time, d.scale))
	if err := d.author(m, &t, 1); err != nil {
		return err
	}
	return d.put(m.Term, t)
}

// subtract subtracts a pin.
func (d dictionary) subtract(m schemas.TermMark, t term) error {
	if err := d.own.Delete(rankName(t.Pins, m.Term)); err != nil {
		return err
	}
	t.Pins--
	if err := d.author(m, &t, -1); err != nil {
		return err
	}
	if t.Pins > 0 {
		return d.put(m.Term, t)
	}
	return cmp.Or(d.drop(m.Term), d.number(-1))
}

func (d dictionary) put(name string, t term) error {
	return cmp.Or(rows.PutValue(d.own, termName(name), &t), d.own.Put(rankName(t.Pins, name), nil))
}

// admit reserves a row for a new term, and returns its initial counts.
func (d dictionary) admit() (term, error) {
	n, _, err := rows.Value[number](d.own, []byte{rowTerms})
	if err != nil || n < number(d.cfg.MaxTerms) {
		return term{Recent: decay.None()}, cmp.Or(err, d.number(1))
	}
	fewest, err := rows.Names(d.own, []byte{rowRank}, 1)
	if err != nil || len(fewest) == 0 {
		return term{Recent: decay.None()}, err
	}
	const head = 1 + 8
	pins := int64(binary.BigEndian.Uint64(fewest[0][1:head]))
	d.tx.Effect("evicted_terms", 1)
	err = cmp.Or(d.own.Delete(fewest[0]), d.drop(string(fewest[0][head:])))
	return term{Pins: pins, MaxError: pins, Recent: decay.None()}, err
}

// drop deletes a term whose rank is already deleted.
func (d dictionary) drop(name string) error {
	authors, err := rows.Names(d.own, authorPrefix(name), d.cfg.MaxAuthors)
	if err != nil {
		return err
	}
	for _, a := range authors {
		if err := d.own.Delete(a); err != nil {
			return err
		}
	}
	return d.own.Delete(termName(name))
}

// number adds to the number of terms.
func (d dictionary) number(n number) error {
	was, _, err := rows.Value[number](d.own, []byte{rowTerms})
	is := was + n
	return cmp.Or(err, rows.PutValue(d.own, []byte{rowTerms}, &is))
}

// author adds n to the pins of the author, for at most MaxAuthors authors.
func (d dictionary) author(m schemas.TermMark, t *term, n number) error {
	name := append(authorPrefix(m.Term), m.Author...)
	pins, known, err := rows.Value[number](d.own, name)
	switch {
	case err != nil:
		return err
	case !known && (n < 0 || t.People >= int64(d.cfg.MaxAuthors)):
		return nil
	case !known:
		t.People++
	case pins+n <= 0:
		t.People--
		return d.own.Delete(name)
	}
	pins += n
	return rows.PutValue(d.own, name, &pins)
}
