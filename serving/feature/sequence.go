package feature

import (
	"cmp"
	"encoding/json"
	"math"
	"slices"
	"strings"

	"github.com/smartfeed/smartfeed/schemas"
)

// Bounds of sequences.
const (
	// MaxSequence is the number of newest actions of a user, by schemas.EnrichedAction.Number, that sequences can contain.
	// Stores keep them for Config.SequenceRetention.
	MaxSequence = 512
	MaxColumns  = 16 // of one Definition
)

// Sequence has the newest actions of a user as columns. The i-th element of each column belongs to the i-th newest action.
// In JSON it is an object of lists: time, each column, and the scales of a column under the name with the prefix "scale.".
type Sequence struct {
	Times   []int64 // milliseconds since 1970-01-01 UTC; never nil
	Columns map[string]Column
}

// Column has the values at a path: texts, or vectors.
type Column struct {
	Texts []string // "": none; nil for vectors
	// Vectors have the length of the newest one. It is nil for an action without a vector or with one of another length.
	Vectors [][]float32
	// Scales are nil unless the vectors are quantized. Then a vector has whole numbers in [-127, 127], and the product of
	// each with the scale approximates the element. The largest error is half of the scale.
	Scales []float32
}

func (Sequence) isValue() {}

const (
	timeColumn  = "time"
	scalePrefix = "scale." // no path starts with it
)

// MarshalJSON writes an object of lists.
func (s Sequence) MarshalJSON() ([]byte, error) {
	all := map[string]any{timeColumn: s.Times}
	for name, c := range s.Columns {
		if all[name] = c.Texts; c.Texts == nil {
			all[name] = c.Vectors
		}
		if c.Scales != nil {
			all[scalePrefix+name] = c.Scales
		}
	}
	return json.Marshal(all)
}

// size returns the approximate length in JSON.
func (s Sequence) size() int {
	bytes := len(s.Times) * numberBytes
	for _, c := range s.Columns {
		for _, text := range c.Texts {
			bytes += len(text) + numberBytes
		}
		for _, v := range c.Vectors {
			bytes += (len(v) + 1) * numberBytes
		}
	}
	return bytes
}

// newestActions implements sequence.
type newestActions struct {
	def     *Definition
	times   []int64
	columns []Column // in the order of the definition
}

func newNewestActions(d *Definition) *newestActions {
	s := &newestActions{def: d, times: []int64{}, columns: make([]Column, len(d.Columns))}
	for i, p := range d.Columns {
		if !p.isVector() {
			s.columns[i].Texts = []string{}
		}
	}
	return s
}

func (s *newestActions) isFull() bool { return len(s.times) >= s.def.N }

func (s *newestActions) add(in *actionInput) {
	if s.isFull() {
		return
	}
	s.times = append(s.times, int64(in.at))
	for i, p := range s.def.Columns {
		c := &s.columns[i]
		if p.isVector() {
			c.Vectors = append(c.Vectors, slices.Clone(p.vectorOf(in.EnrichedAction)))
			continue
		}
		in.values = p.appendValues(in.values[:0], in.EnrichedAction)
		c.Texts = append(c.Texts, strings.Join(in.values, "")) // at most one value: the path is no list
	}
}

func (s *newestActions) result() Result {
	value := Sequence{Times: s.times, Columns: map[string]Column{}}
	for i, p := range s.def.Columns {
		c := s.columns[i]
		c.dropOtherLengths()
		if p.isVector() && s.def.Embedding == Int8 {
			c.quantize()
		}
		value.Columns[p.String()] = c
	}
	return Result{Value: value}
}

// dropOtherLengths drops vectors whose length differs from the newest one: they belong to another model.
func (c *Column) dropOtherLengths() {
	length := 0
	for i, v := range c.Vectors {
		length = cmp.Or(length, len(v))
		if len(v) != length || length == 0 {
			c.Vectors[i] = nil
		}
	}
}

// quantize rounds each vector to multiples of 1/127 of its largest absolute element.
func (c *Column) quantize() {
	c.Scales = make([]float32, len(c.Vectors))
	for i, v := range c.Vectors {
		largest := float32(0)
		for _, x := range v {
			largest = max(largest, x, -x)
		}
		if c.Scales[i] = largest / 127; c.Scales[i] == 0 {
			clear(v) // the elements are zero, or too small for a scale
			continue
		}
		for j, x := range v {
			v[j] = float32(math.Round(float64(x / c.Scales[i])))
		}
	}
}

// HasSequences reports whether a definition is a sequence.
func (e *Evaluation) HasSequences() bool { return len(e.sequences) > 0 }

// AddKept adds the kept actions of the user to every sequence. They come in any order, and may be repeated. Unless complete, some
// were not read, and sequences that need more get the reason Cap. Among the others are all with the MaxSequence highest numbers, except
// expired ones. AddKept changes the list.
func (e *Evaluation) AddKept(all []*schemas.EnrichedAction, complete bool) {
	all, evicted := lastNumbers(all)
	for _, f := range e.sequences {
		into := f.into.(*newestActions)
		for _, a := range all {
			e.input.EnrichedAction, e.input.at = a, floor(a.Timestamp)
			if f.window.holds(e.input.at) && e.input.passes(f.def) {
				into.add(&e.input)
			}
		}
		// Later actions have replaced some that were kept as of the end of the window.
		later := len(all) > 0 && floor(all[0].Timestamp) > f.window.upTo
		f.window.cut = later && evicted && !into.isFull()
		f.capped = !complete && !into.isFull()
	}
}

// newestFirst is the order in which definitions see actions.
func newestFirst(a, b *schemas.EnrichedAction) int {
	return cmp.Or(cmp.Compare(floor(b.Timestamp), floor(a.Timestamp)), cmp.Compare(b.ID, a.ID))
}

// lastNumbers returns the actions with the MaxSequence highest numbers, each once, newest first. evicted reports whether the
// user had more actions.
func lastNumbers(all []*schemas.EnrichedAction) (last []*schemas.EnrichedAction, evicted bool) {
	highest := int64(0)
	for _, a := range all {
		highest = max(highest, a.Number)
	}
	all = slices.DeleteFunc(all, func(a *schemas.EnrichedAction) bool { return a.Number <= max(0, highest-MaxSequence) })
	slices.SortFunc(all, newestFirst)
	return slices.CompactFunc(all, func(a, b *schemas.EnrichedAction) bool { return a.Number == b.Number }), highest > MaxSequence
}
