package feature

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/smartfeed/smartfeed/internal/convert"
	"github.com/smartfeed/smartfeed/internal/settings"
	"github.com/smartfeed/smartfeed/schemas"
)

// Definition defines a feature. Parse returns definitions; one that is constructed in code is valid if Parse could have
// returned it.
type Definition struct {
	Name        string // [a-z][a-z0-9_]*, at most MaxNameBytes, unique in its file
	Description string // for people
	Entity      Entity
	Verbs       []schemas.Verb // none: all; for a pin, all except schemas.ImpressionCount, which counts only if it is listed
	Window      time.Duration  // a whole number of milliseconds, at most Kept, which is the default
	Where       []Condition    // all must hold
	GroupBy     Grouping       // at most MaxKeys
	Aggregate   Aggregate
	Of          Path          // zero if the aggregate takes none
	N           int           // for TakeLast and TakeTop: 1 to MaxN, default DefaultN; for TakeSequence: 1 to MaxSequence; for groups: see largest
	HalfLife    time.Duration // age at which an action counts half; MinHalfLife to MaxHalfLife, 0: no decay
	// Only for TakeSequence: paths of single values or of embeddings, 1 to MaxColumns, and the type of the embeddings.
	Columns   []Path
	Embedding Embedding
	// Only for Ratio: two definitions with the same entity and grouping.
	Numerator, Denominator *Definition
	Sets                   []string // names of the feature sets that it is in
}

// Condition holds for an action that has one of the values In at Path.
type Condition struct {
	Path Path
	In   []string
}

// Embedding is the type of the embeddings of a sequence.
type Embedding string

// The types of embeddings. The default is Float32.
const (
	Float32 Embedding = "float32"
	Int8    Embedding = "int8" // see Column.Scales
)

// Bounds of a definition and of its file.
const (
	MaxNameBytes   = 64
	MaxDefinitions = 1000
	MaxVerbs       = 64
	MaxConditions  = 16
	MaxValues      = 100 // of one Condition
	MaxN           = 1000
	DefaultN       = 10
	MinHalfLife    = time.Minute
	MaxHalfLife    = 100 * Kept
	MaxFileBytes   = 1 << 20
)

// Entity is the kind of subject of a feature.
type Entity string

// The entities. A pair is a user and a pin. Its value is the part of the user's value that belongs to the pin. Its name
// is "user:…|pin:…".
const (
	User Entity = "user"
	Pin  Entity = "pin"
	Pair Entity = "pair"
)

// Aggregate is the function that turns the actions of a window into a value.
type Aggregate string

// The aggregates. Mean, Min, Max and MeanEmbedding have no value without input; the others are then 0 or empty.
const (
	Count Aggregate = "count" // number of actions
	Rate  Aggregate = "rate"  // actions per hour of the whole window
	Sum   Aggregate = "sum"   // sum of the numbers at Of
	Mean  Aggregate = "mean"  // mean of the numbers at Of
	Min   Aggregate = "min"   // minimum of the numbers at Of
	Max   Aggregate = "max"   // maximum of the numbers at Of
	// CountDistinct is the number of distinct values at Of, by default of objects. It is exact up to ExactDistinct.
	// Above that it is the estimate of a schemas.Union, rounded. For a pin, whose actors come as sketches, it is always
	// an estimate.
	CountDistinct Aggregate = "distinct"
	TakeLast      Aggregate = "last" // the newest N actions
	TakeTop       Aggregate = "top"  // the N most frequent values at Of, by default objects
	// TakeSequence is the Columns of the newest N actions that match, among the last MaxSequence actions of the user.
	TakeSequence Aggregate = "sequence"
	// MeanEmbedding is the element-wise mean of the embeddings at Of. Embeddings whose length differs from the newest
	// one belong to another model and are skipped.
	MeanEmbedding Aggregate = "mean_embedding"
	// Cosine, for a pair, is the cosine of the pin's embedding and the user's MeanEmbedding. There is no value if one
	// of the vectors is zero or their lengths differ.
	Cosine Aggregate = "cosine"
	// Ratio is Numerator divided by Denominator; there is no value if Denominator is 0. With a grouping, it divides
	// group by group.
	Ratio Aggregate = "ratio"
)

// ExactDistinct is the number of distinct values up to which CountDistinct is exact.
const ExactDistinct = 1000

// takes is the kind of input of an aggregate.
type takes uint8

const (
	nothing takes = iota
	numbersAt
	valuesAt
	vectorsAt
	twoParts // the two definitions of a ratio
	columns
)

// rule says which keys of a definition an aggregate accepts.
type rule struct {
	of      takes
	grouped bool // accepts group_by
	n       bool // takes n
	decays  bool // accepts half_life
}

func (a Aggregate) rule() (rule, bool) {
	switch a {
	case Count:
		return rule{of: nothing, grouped: true, decays: true}, true
	case Rate:
		return rule{of: nothing, grouped: true}, true
	case Sum, Mean:
		return rule{of: numbersAt, grouped: true, decays: true}, true
	case Min, Max:
		return rule{of: numbersAt, grouped: true}, true
	case CountDistinct:
		return rule{of: valuesAt, grouped: true}, true
	case TakeLast:
		return rule{of: nothing, n: true}, true
	case TakeSequence:
		return rule{of: columns, n: true}, true
	case TakeTop:
		return rule{of: valuesAt, n: true}, true
	case MeanEmbedding, Cosine:
		return rule{of: vectorsAt, decays: true}, true
	case Ratio:
		return rule{of: twoParts}, true
	}
	return rule{}, false
}

// zeroWhenEmpty reports whether the aggregate of no actions is 0.
func (a Aggregate) zeroWhenEmpty() bool {
	return a == Count || a == Rate || a == Sum || a == CountDistinct
}

// weight returns the weight of an action of the given age.
func (d *Definition) weight(age millis) float64 {
	if d.HalfLife == 0 {
		return 1
	}
	return math.Exp2(-float64(age) / float64(durationMillis(d.HalfLife)))
}

// scale returns a count as a rate per hour of the window if the aggregate is Rate, and unchanged otherwise.
func (d *Definition) scale(count float64) float64 {
	if d.Aggregate != Rate {
		return count
	}
	return count / (float64(d.Window) / float64(time.Hour))
}

// isMean reports whether only the ratio of weights matters. Such weights are taken as of the newest action. As of the
// end of the window, all of them could be 0.
func (a Aggregate) isMean() bool { return a == Mean || a == MeanEmbedding || a == Cosine }

// countsItem reports whether the definition, of entity pin, counts the verb.
func (d Definition) countsItem(v schemas.Verb) bool {
	if len(d.Verbs) == 0 {
		return v != schemas.ImpressionCount
	}
	return slices.Contains(d.Verbs, v)
}

// MarshalJSON writes the keys and values of features.yaml, without Sets, which are not keys of a definition.
func (d Definition) MarshalJSON() ([]byte, error) {
	where := map[string][]string{}
	for _, c := range d.Where {
		where[c.Path.String()] = c.In
	}
	text, err := json.Marshal(struct {
		Name        string              `json:"name"`
		Description string              `json:"description,omitempty"`
		Entity      Entity              `json:"entity"`
		Verbs       []schemas.Verb      `json:"verbs,omitempty"`
		Window      string              `json:"window,omitempty"`
		Where       map[string][]string `json:"where,omitempty"`
		GroupBy     Grouping            `json:"group_by,omitempty"`
		Aggregate   Aggregate           `json:"aggregate"`
		Of          string              `json:"of,omitempty"`
		N           int                 `json:"n,omitempty"`
		HalfLife    string              `json:"half_life,omitempty"`
		Columns     []Path              `json:"columns,omitempty"`
		Embedding   Embedding           `json:"embedding,omitempty"`
		Numerator   string              `json:"numerator,omitempty"`
		Denominator string              `json:"denominator,omitempty"`
	}{
		d.Name, d.Description, d.Entity, d.Verbs, d.windowText(), where, d.GroupBy, d.Aggregate, d.Of.String(), d.N,
		shortOrNone(d.HalfLife), d.Columns, d.Embedding, d.Numerator.nameOrNone(), d.Denominator.nameOrNone(),
	})
	if err != nil {
		return nil, fmt.Errorf("write definition %s: %w", d.Name, err)
	}
	return text, nil
}

// windowText returns "" for a definition without a window.
func (d Definition) windowText() string {
	if d.hasNoWindow() {
		return ""
	}
	return settings.Short(d.Window)
}

// hasNoWindow reports whether the definition has no window: a ratio has the windows of its parts, a sequence is kept by
// count, and the mean of a pin's recent actors is stored as one row.
func (d Definition) hasNoWindow() bool {
	return d.Aggregate == Ratio || d.Aggregate == TakeSequence || d.Entity == Pin && d.Aggregate == MeanEmbedding
}

func (d *Definition) nameOrNone() string {
	if d == nil {
		return ""
	}
	return d.Name
}

func shortOrNone(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return settings.Short(d)
}

// largest returns the N groups with the most actions, in this order, ties by name. It returns all groups if N is 0.
func (d *Definition) largest(groups []Counted) []Counted {
	if d.N == 0 {
		return groups
	}
	slices.SortFunc(groups, func(a, b Counted) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Value, b.Value))
	})
	return slices.Clip(groups[:min(len(groups), d.N)])
}

// Paths returns every path that the definition reads.
func (d Definition) Paths() []Path {
	all := append(convert.All(d.Where, func(c Condition) Path { return c.Path }), d.GroupBy...)
	if !d.Of.isZero() {
		all = append(all, d.Of)
	}
	return append(all, d.Columns...)
}
