package interests

import (
	"encoding/binary"
	"fmt"

	"github.com/smartfeed/smartfeed/internal/packed"
	"github.com/smartfeed/smartfeed/processors/decay"
	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/schemas"
)

// format is the first byte of every row's value. It identifies the layout. The rest is packed: an action reads and writes
// eight rows or more, and as JSON these were most of the cost of the group.
const format = 1

// record is the value of a row.
type record[T any] interface {
	*T
	appendTo(b []byte) []byte
	readFrom(r *packed.Reader)
}

func encode[T any, R record[T]](rec R) []byte {
	return rec.appendTo(append(make([]byte, 0, 128), format))
}

// decode is the reverse of encode. It returns an error for any other bytes, including every truncation.
func decode[T any, R record[T]](value []byte) (rec T, err error) {
	r := packed.NewReader(value)
	if r.Byte() != format {
		return rec, packed.ErrTorn
	}
	R(&rec).readFrom(r)
	return rec, r.End()
}

// get returns a row, or the zero value if there is none.
func get[T any, R record[T]](own getter, name []byte) (rec T, found bool, err error) {
	value, err := own.Get(name)
	if err != nil || value == nil {
		return rec, false, err
	}
	if rec, err = decode[T, R](value); err != nil {
		return rec, false, fmt.Errorf("read row %q: %w", name, err)
	}
	return rec, true, nil
}

func put[T any, R record[T]](own rows.Owner, name []byte, rec R) error {
	return own.Put(name, encode[T](rec))
}

// number is a row that holds a number.
type number int64

func (n *number) appendTo(b []byte) []byte  { return binary.AppendVarint(b, int64(*n)) }
func (n *number) readFrom(r *packed.Reader) { *n = number(r.Varint()) }

func (s *saying) appendTo(b []byte) []byte {
	b = binary.AppendVarint(b, int64(s.Version))
	b = packed.AppendText(b, s.Author)
	b = binary.AppendVarint(b, int64(s.Created))
	b = packed.AppendList(b, s.Interests, packed.AppendText)
	b = packed.AppendList(b, s.Terms, packed.AppendText)
	return packed.AppendFlag(b, s.Deleted)
}

func (s *saying) readFrom(r *packed.Reader) {
	s.Version = schemas.Version(r.Varint())
	s.Author = packed.Text[schemas.UserID](r)
	s.Created = schemas.Micros(r.Varint())
	s.Interests = packed.List(r, packed.Text[schemas.InterestID])
	s.Terms = packed.List(r, packed.Text[string])
	s.Deleted = r.Flag()
}

func (v *visitor) appendTo(b []byte) []byte {
	b = packed.AppendText(b, v.Source)
	b = binary.AppendVarint(b, int64(v.Time))
	b = packed.AppendFlag(b, v.Liked)
	return binary.AppendVarint(b, int64(v.Forget))
}

func (v *visitor) readFrom(r *packed.Reader) {
	v.Source = packed.Text[schemas.Source](r)
	v.Time = schemas.Micros(r.Varint())
	v.Liked = r.Flag()
	v.Forget = schemas.Micros(r.Varint())
}

func (l *liking) appendTo(b []byte) []byte {
	b = packed.AppendFloat(b, float64(l.Strength))
	return packed.AppendList(b, l.Evidence, func(b []byte, e schemas.Evidence) []byte {
		b = packed.AppendText(packed.AppendText(b, e.Pin), e.Verb)
		return binary.AppendVarint(packed.AppendFloat(b, e.Weight), int64(e.Time))
	})
}

func (l *liking) readFrom(r *packed.Reader) {
	l.Strength = decay.Sum(r.Float())
	l.Evidence = packed.List(r, func(r *packed.Reader) schemas.Evidence {
		return schemas.Evidence{
			Pin: packed.Text[schemas.PinID](r), Verb: packed.Text[schemas.Verb](r), Weight: r.Float(), Time: schemas.Micros(r.Varint()),
		}
	})
}

func (t *term) appendTo(b []byte) []byte {
	b = binary.AppendVarint(binary.AppendVarint(binary.AppendVarint(b, t.Pins), t.Over), t.People)
	return packed.AppendFloat(b, float64(t.Recent))
}

func (t *term) readFrom(r *packed.Reader) {
	t.Pins, t.Over, t.People = r.Varint(), r.Varint(), r.Varint()
	t.Recent = decay.Sum(r.Float())
}
