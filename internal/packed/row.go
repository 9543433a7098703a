package packed

import "encoding/binary"

// Row is a type that is stored as the value of a row. Its method Pack lists the fields once, for reading and writing. It
// calls Packer.Version first.
type Row[T any] interface {
	*T
	Pack(p *Packer)
}

// Encode returns the bytes of a row.
func Encode[T any, R Row[T]](row R) []byte { return AppendRow(make([]byte, 0, 64), row) }

// AppendRow appends the bytes of a row.
func AppendRow[T any, R Row[T]](b []byte, row R) []byte {
	p := Packer{out: b}
	row.Pack(&p)
	return p.out
}

// Decode is the reverse of Encode. It returns ErrTorn for a truncated or malformed row, and a *VersionError for a row of
// another version.
func Decode[T any, R Row[T]](b []byte) (row T, err error) {
	p := Packer{reader: Reader{rest: b}}
	p.in = &p.reader
	R(&row).Pack(&p)
	if err := p.in.End(); err != nil {
		var zero T
		return zero, err
	}
	return row, nil
}

// Packer writes or reads the fields of a row, in the order of the calls. After an error, it reads zero values.
type Packer struct {
	out    []byte
	in     *Reader // nil: the Packer writes
	reader Reader  // of in: one allocation for both
}

// Version writes the version of the row's format, or compares it with the one that was read.
func (p *Packer) Version(want byte) {
	if p.in == nil {
		p.out = append(p.out, want)
		return
	}
	p.in.Version(want)
}

// Flags packs up to eight flags into one byte. It rejects a byte with other bits.
func (p *Packer) Flags(flags ...*bool) {
	if p.in == nil {
		var b byte
		for i, set := range flags {
			if *set {
				b |= 1 << i
			}
		}
		p.out = append(p.out, b)
		return
	}
	b := p.in.Byte()
	for i, set := range flags {
		*set = b>>i&1 == 1
	}
	if b>>len(flags) > 0 {
		p.in.tear()
	}
}

// Float packs a number as eight bytes.
func Float[T ~float64](p *Packer, v *T) {
	if p.in == nil {
		p.out = AppendFloat(p.out, float64(*v))
		return
	}
	*v = T(p.in.Float())
}

// Float32 packs a number as eight bytes, without loss.
func Float32(p *Packer, v *float32) {
	wide := float64(*v)
	Float(p, &wide)
	*v = float32(wide)
}

// Int packs an integer as a varint.
func Int[T ~int | ~int32 | ~int64 | ~uint32 | ~uint64](p *Packer, v *T) {
	if p.in == nil {
		p.out = binary.AppendVarint(p.out, int64(*v))
		return
	}
	n := p.in.Varint()
	*v = T(n)
	if int64(*v) != n {
		p.in.tear()
	}
}

// String packs a text after its length.
func String[T ~string](p *Packer, v *T) {
	if p.in == nil {
		p.out = AppendText(p.out, *v)
		return
	}
	*v = Text[T](p.in)
}

// Bytes packs bytes after their length. A read value shares the memory of the row.
func (p *Packer) Bytes(v *[]byte) {
	if p.in == nil {
		p.out = AppendText(p.out, *v)
		return
	}
	*v = p.in.Bytes()
}

// Encoded packs a value that has its own encoding. decode is as in Part.
func Encoded[T any](p *Packer, v *T, add func(v *T, b []byte) []byte, decode func(s string) (v T, rest string, err error)) {
	if p.in == nil {
		p.out = add(v, p.out)
		return
	}
	*v = Part(p.in, decode)
}

// Items packs the number of items, and each item with pack, which must write at least one byte.
func Items[T any](p *Packer, list *[]T, pack func(p *Packer, item *T)) {
	if p.in == nil {
		p.out = binary.AppendUvarint(p.out, uint64(len(*list)))
		for i := range *list {
			pack(p, &(*list)[i])
		}
		return
	}
	*list = List(p.in, func(*Reader) (item T) {
		pack(p, &item)
		return item
	})
}
