package feature

import (
	"encoding/binary"
	"maps"
	"math"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"github.com/smartfeed/smartfeed/internal/packed"
	"github.com/smartfeed/smartfeed/internal/stored"
	"github.com/smartfeed/smartfeed/schemas"
)

// rowVersion is the first byte of every row, after the rank of a pin's row. Change it when the fields of a row change.
const rowVersion = 2

// rankBytes is the length of a rank: the version at the start of a pin's row, by which the newer row wins.
const rankBytes = 8

// appendRank appends the rank of a pin's row, and the version byte of the row.
func appendRank(b []byte, v schemas.Version) []byte {
	return append(packed.AppendOrdered(b, v), rowVersion)
}

// readRow reads the row with the key, after a rank of so many bytes. found is false if there is no such row.
func readRow[T any](db pebble.Reader, key []byte, rank int, read func(*packed.Reader) T) (v T, found bool, err error) {
	row, err := stored.Row(db, key)
	switch {
	case err != nil || row == nil:
		return v, false, err
	case len(row) < rank:
		return v, false, packed.ErrTorn
	}
	r := packed.NewVersionReader(row[rank:], rowVersion).ShareTexts()
	v = read(r)
	return v, true, r.End()
}

// appendAction appends the row of an action: all that its key does not hold.
func appendAction(b []byte, a *schemas.EnrichedAction) []byte {
	b = packed.AppendText(append(b, rowVersion), a.Verb)
	b = packed.AppendText(b, a.Object)
	b = packed.AppendText(b, a.VerbAttributes.Board)
	b = packed.AppendText(b, a.VerbAttributes.Surface)
	b = a.ObjectAttributes.AppendBinary(b)
	b = packed.AppendList(b, a.ActorAttributes.Interests, packed.AppendText)
	b = appendAttributes(b, a.VerbAttributes.Attributes)
	b = appendAttributes(b, a.ObjectAttributes.Attributes)
	b = appendAttributes(b, a.ActorAttributes.Attributes)
	b = appendVector(b, a.ObjectAttributes.Embedding)
	return appendVector(b, a.ActorAttributes.Embedding)
}

// decodeAction reads the output of appendAction into a, and reuses its maps. It reads only the wanted attributes and
// embeddings.
func decodeAction(row []byte, a *schemas.EnrichedAction, wanted partSet) error {
	r := packed.NewVersionReader(row, rowVersion).ShareTexts()
	a.Verb, a.Object = packed.Text[schemas.Verb](r), packed.Text[schemas.ID](r)
	a.VerbAttributes.Board, a.VerbAttributes.Surface = packed.Text[schemas.BoardID](r), packed.Text[string](r)
	a.ObjectAttributes.Facets = readFacets(r)
	a.ActorAttributes.Interests = packed.List(r, packed.Text[schemas.InterestID])
	a.VerbAttributes.Attributes = readAttributes(r, wanted.has(verbAttribute), a.VerbAttributes.Attributes)
	a.ObjectAttributes.Attributes = readAttributes(r, wanted.has(objectAttribute), a.ObjectAttributes.Attributes)
	a.ActorAttributes.Attributes = readAttributes(r, wanted.has(actorAttribute), a.ActorAttributes.Attributes)
	a.ObjectAttributes.Embedding = readVector(r, wanted.has(objectEmbedding))
	a.ActorAttributes.Embedding = readVector(r, wanted.has(actorEmbedding))
	return r.End()
}

func readFacets(r *packed.Reader) schemas.Facets {
	return packed.Part(r, func(s string) (schemas.Facets, string, error) { return schemas.DecodeFacets(s, nil) })
}

// appendAttributes sorts the attributes, so that the same ones always have the same bytes.
func appendAttributes(b []byte, attributes map[string]string) []byte {
	return packed.AppendList(b, slices.Sorted(maps.Keys(attributes)), func(b []byte, key string) []byte {
		return packed.AppendText(packed.AppendText(b, key), attributes[key])
	})
}

// readAttributes returns the attributes, in the given map if there is one, or nil if they are not wanted.
func readAttributes(r *packed.Reader, wanted bool, attributes map[string]string) map[string]string {
	clear(attributes)
	if wanted && attributes == nil {
		attributes = map[string]string{}
	}
	packed.List(r, func(r *packed.Reader) struct{} {
		key, value := packed.Text[string](r), packed.Text[string](r)
		if wanted {
			attributes[key] = value
		}
		return struct{}{}
	})
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

// readVector returns nil if it is not wanted.
func readVector(r *packed.Reader, wanted bool) []float32 {
	b := r.Bytes()
	if !wanted || len(b) == 0 {
		return nil
	}
	v := make([]float32, len(b)/4)
	for i := range v {
		v[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return v
}

// card is the row of a pin's newest card.
type card struct {
	deleted bool
	facets  schemas.Facets
}

func readCard(r *packed.Reader) card { return card{r.Flag(), readFacets(r)} }

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

func readSteps(r *packed.Reader) []step {
	var steps []step
	var counts []verbCount // of all steps: one allocation for many
	for r.More() {
		s := step{number: r.Varint()}
		from := len(counts)
		packed.List(r, func(r *packed.Reader) struct{} {
			counts = append(counts, verbCount{packed.Text[string](r), r.Varint()})
			return struct{}{}
		})
		s.counts, s.actors = counts[from:len(counts):len(counts)], r.Bytes()
		steps = append(steps, s)
	}
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
