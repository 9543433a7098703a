package feature

import (
	"encoding/binary"
	"errors"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/cockroachdb/pebble/v2"

	"github.com/smartfeed/smartfeed/internal/packed"
	"github.com/smartfeed/smartfeed/internal/stored"
	"github.com/smartfeed/smartfeed/schemas"
)

// rowVersion is the first byte of every row, after the rank of a pin's row. Change it when the fields of a row change.
const rowVersion = 4

// rankBytes is the length of a rank: the version at the start of a pin's row, by which the newer row wins.
const rankBytes = 8

// appendRank appends the rank of a pin's row, and the version byte of the row.
func appendRank(b []byte, v schemas.Version) []byte {
	return append(packed.AppendOrdered(b, v), rowVersion)
}

// readRow reads the row with the key, after a rank of so many bytes. found is false if there is no such row. Bytes of the
// reader are valid until read returns.
func readRow[T any](db pebble.Reader, key []byte, rank int, read func(*packed.Reader) T) (v T, found bool, err error) {
	found, err = stored.Read(db, key, func(row []byte) error {
		if len(row) < rank {
			return packed.ErrTorn
		}
		r := packed.NewVersionReader(row[rank:], rowVersion).ShareTexts()
		v = read(r)
		return r.End()
	})
	return v, found, err
}

// appendAction appends the row of an action: all fields that are not in its key. Each field is a text, a list of texts, or a
// vector, after its length in bytes, so that a reader can skip it.
func appendAction(b []byte, a *schemas.EnrichedAction) []byte {
	var field [256]byte // a buffer
	b = packed.AppendText(append(b, rowVersion), a.Verb)
	b = packed.AppendText(b, a.Object)
	b = packed.AppendText(b, a.VerbAttributes.Board)
	b = packed.AppendText(b, a.VerbAttributes.Surface)
	b = packed.AppendText(b, a.ObjectAttributes.AppendBinary(field[:0]))
	interests := field[:0]
	for _, id := range a.ActorAttributes.Interests {
		interests = packed.AppendText(interests, id)
	}
	b = packed.AppendText(b, interests)
	b = packed.AppendText(b, appendAttributes(field[:0], a.VerbAttributes.Attributes))
	b = packed.AppendText(b, appendAttributes(field[:0], a.ObjectAttributes.Attributes))
	b = packed.AppendText(b, appendAttributes(field[:0], a.ActorAttributes.Attributes))
	b = appendVector(b, a.ObjectAttributes.Embedding)
	return appendVector(b, a.ActorAttributes.Embedding)
}

// actionReader reads rows of actions into one action, whose lists and maps it reuses.
type actionReader struct {
	schemas.EnrichedAction
	reads *reads // other fields are not decoded
	texts textBuffer
}

func newActionReader(user schemas.UserID, r *reads) *actionReader {
	return &actionReader{EnrichedAction: schemas.EnrichedAction{Actor: user}, reads: r}
}

// read reads the output of appendAction.
func (d *actionReader) read(row []byte) error {
	r := packed.NewVersionReader(row, rowVersion)
	d.Verb, d.Object = schemas.Verb(d.texts.add(r.Bytes())), schemas.ID(d.texts.add(r.Bytes()))
	d.VerbAttributes.Board = schemas.BoardID(d.text(verbBoard, r.Bytes()))
	d.VerbAttributes.Surface = d.text(verbSurface, r.Bytes())
	err := errors.Join(
		d.facets(r.Bytes()),
		d.actorInterests(r.Bytes()),
		d.attributes(&d.VerbAttributes.Attributes, verbAttribute, r.Bytes()),
		d.attributes(&d.ObjectAttributes.Attributes, objectAttribute, r.Bytes()),
		d.attributes(&d.ActorAttributes.Attributes, actorAttribute, r.Bytes()),
	)
	d.vector(&d.ObjectAttributes.Embedding, objectEmbedding, r.Bytes())
	d.vector(&d.ActorAttributes.Embedding, actorEmbedding, r.Bytes())
	if err != nil {
		return err
	}
	return r.End()
}

func (d *actionReader) text(p part, field []byte) string {
	if !d.reads.has(p) {
		return ""
	}
	return d.texts.add(field)
}

func (d *actionReader) facets(field []byte) (err error) {
	if !d.reads.has(objectAuthor) && !d.reads.has(objectBoard) && !d.reads.has(objectInterests) {
		return nil
	}
	list := d.ObjectAttributes.Interests
	var rest string
	d.ObjectAttributes.Facets, rest, err = schemas.DecodeFacetsInto(d.texts.add(field), func(n int) []schemas.InterestID {
		return slices.Grow(list[:0], n)[:n]
	})
	if err != nil || rest != "" {
		return packed.ErrTorn
	}
	return nil
}

func (d *actionReader) actorInterests(field []byte) error {
	if !d.reads.has(actorInterests) {
		return nil
	}
	all, r := d.ActorAttributes.Interests[:0], packed.NewReader(field)
	for r.More() {
		all = append(all, schemas.InterestID(d.texts.add(r.Bytes())))
	}
	d.ActorAttributes.Interests = all
	return r.End()
}

func (d *actionReader) attributes(into *map[string]string, p part, field []byte) error {
	if !d.reads.has(p) {
		return nil
	}
	if *into == nil {
		*into = map[string]string{}
	}
	clear(*into)
	r := packed.NewReader(field)
	for r.More() {
		key, value := r.Bytes(), r.Bytes()
		for _, wanted := range d.reads.keys[p] {
			if wanted == string(key) {
				(*into)[wanted] = d.texts.add(value)
			}
		}
	}
	return r.End()
}

func (d *actionReader) vector(into *[]float32, p part, field []byte) {
	if d.reads.has(p) {
		*into = appendFloats((*into)[:0], field)
	}
}

// textBuffer makes texts of bytes, many with one allocation. A strings.Builder does not move what it has written while it has
// room.
type textBuffer struct{ b *strings.Builder }

// textBufferBytes holds some dozen rows.
const textBufferBytes = 4 << 10

func (t *textBuffer) add(b []byte) string {
	if t.b == nil || t.b.Cap()-t.b.Len() < len(b) {
		t.b = new(strings.Builder)
		t.b.Grow(max(textBufferBytes, len(b)))
	}
	from := t.b.Len()
	t.b.Write(b)
	return t.b.String()[from:]
}

// appendAttributes sorts the attributes, so that the same ones always have the same bytes.
func appendAttributes(b []byte, attributes map[string]string) []byte {
	for _, key := range slices.Sorted(maps.Keys(attributes)) {
		b = packed.AppendText(packed.AppendText(b, key), attributes[key])
	}
	return b
}

func readAttributes(r *packed.Reader) map[string]string {
	attributes := map[string]string{}
	for r.More() {
		key := packed.Text[string](r)
		attributes[key] = packed.Text[string](r)
	}
	return attributes
}

// appendVector appends float32s, little-endian, after their length in bytes.
func appendVector(b []byte, v []float32) []byte {
	b = binary.AppendUvarint(b, uint64(4*len(v)))
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	return b
}

func readVector(r *packed.Reader) []float32 { return appendFloats(nil, r.Bytes()) }

func appendFloats(v []float32, b []byte) []float32 {
	for ; len(b) >= 4; b = b[4:] {
		v = append(v, math.Float32frombits(binary.LittleEndian.Uint32(b)))
	}
	return v
}

// pinFacets is the row of the facets of a pin's newest version.
type pinFacets struct {
	deleted bool
	facets  schemas.Facets
}

func readFacets(r *packed.Reader) pinFacets {
	return pinFacets{r.Flag(), packed.Part(r, schemas.DecodeFacets)}
}

// A row holds the counts of a pin for one day. The features of a thousand pins then take a few thousand reads by key
// instead of hundreds of rows per pin. The row holds the nonempty steps, ascending.

// step is the counts of one schemas.ItemStep.
type step struct {
	number int64 // of the step in its day
	counts []verbCount
	actors schemas.Sketch
}

// verbCount is a positive count.
type verbCount struct {
	verb string
	n    int64
}

// positive returns the positive counts, sorted by verb.
func positive(counts map[string]int64) []verbCount {
	var list []verbCount
	for _, verb := range slices.Sorted(maps.Keys(counts)) {
		if n := counts[verb]; n > 0 {
			list = append(list, verbCount{verb, n})
		}
	}
	return list
}

// stepOf returns the number of the step that starts at start.
func stepOf(start millis) int64 {
	return int64((start - millis(dayOf(start))*dayMillis) / stepMillis)
}

// appendSteps appends the row of a day.
func appendSteps(b []byte, steps []step) []byte {
	b = append(b, rowVersion)
	for _, s := range steps {
		b = binary.AppendVarint(b, s.number)
		b = packed.AppendList(b, s.counts, func(b []byte, c verbCount) []byte {
			return binary.AppendVarint(packed.AppendText(b, c.verb), c.n)
		})
		b = packed.AppendText(b, s.actors)
	}
	return b
}

// eachStep visits the steps of a row. A step is valid until visit returns.
func eachStep(r *packed.Reader, visit func(step)) {
	var counts []verbCount
	add := func(r *packed.Reader) struct{} {
		counts = append(counts, verbCount{packed.Text[string](r), r.Varint()})
		return struct{}{}
	}
	for r.More() {
		counts = counts[:0]
		number := r.Varint()
		packed.List(r, add)
		visit(step{number, counts, r.Bytes()})
	}
}

func readSteps(r *packed.Reader) (steps []step) {
	eachStep(r, func(s step) {
		steps = append(steps, step{s.number, slices.Clone(s.counts), slices.Clone(s.actors)})
	})
	return steps
}

// putStep returns the steps with one more, which replaces the previous counts of that step.
func putStep(steps []step, s step) []step {
	i, found := slices.BinarySearchFunc(steps, s.number, func(s step, number int64) int { return int(s.number - number) })
	if found {
		steps[i] = s
		return steps
	}
	return slices.Insert(steps, i, s)
}
