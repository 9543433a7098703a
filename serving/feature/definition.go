package feature

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/smartfeed/smartfeed/internal/bounds"
	"github.com/smartfeed/smartfeed/schemas"
)

// Definition is what a feature means. Parse makes them; one that is put together by hand is valid if Parse could have
// made it.
type Definition struct {
	Name        string // [a-z][a-z0-9_]*, at most MaxNameBytes, unique in its file
	Description string // for people
	Entity      Entity
	Verbs       []schemas.Verb // none: all; of a pin all but schemas.ImpressionCount, which counts only where it is named
	Window      time.Duration  // a whole number of milliseconds, at most Kept, which is the default
	Where       []Condition    // all must hold
	GroupBy     Path           // zero: no grouping
	Aggregate   Aggregate
	Of          Path          // zero where the aggregate takes none
	N           int           // of TakeLast and TakeTop: 1 to MaxN, default DefaultN
	HalfLife    time.Duration // an action counts half after it; MinHalfLife to MaxHalfLife, 0: all count the same
	// Lookup takes the pins' embeddings as they are now, by key, where otherwise they are taken as they were stored with
	// the actions: for vectors too wide to be stored with each action.
	Lookup bool
	// Of Ratio: two definitions of the same entity and grouping.
	Numerator, Denominator *Definition
}

// Condition holds for an action that has one of the values In at Path.
type Condition struct {
	Path Path
	In   []string
}

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

// Entity is whose feature it is.
type Entity string

// The entities. A pair is a user and a pin: it has the user's value for the pin's own group, and it is named
// "user:…|pin:…".
const (
	User Entity = "user"
	Pin  Entity = "pin"
	Pair Entity = "pair"
)

// Aggregate is how the actions of a window become a value.
type Aggregate string

// The aggregates. Mean, Min, Max, MeanEmbedding have no value without something to take it of; the others are 0 or
// empty then.
const (
	Count Aggregate = "count" // of actions
	Rate  Aggregate = "rate"  // actions per hour of the whole window
	Sum   Aggregate = "sum"   // of the numbers at Of
	Mean  Aggregate = "mean"  // likewise
	Min   Aggregate = "min"   // likewise
	Max   Aggregate = "max"   // likewise
	// CountDistinct is the number of different values at Of, by default of objects. Up to ExactDistinct it is exact,
	// beyond it is the estimate of a schemas.Union, rounded; of a pin, whose actors come as sketches, always.
	CountDistinct Aggregate = "distinct"
	TakeLast      Aggregate = "last" // the newest N actions
	TakeTop       Aggregate = "top"  // the N most frequent values at Of, by default objects
	// MeanEmbedding is the element-wise mean of the embeddings at Of that are as long as the newest one; shorter and
	// longer ones are of another model and are skipped in silence.
	MeanEmbedding Aggregate = "mean_embedding"
	// Cosine, of a pair, is the cosine of the pin's embedding and the user's MeanEmbedding; none where one of the two
	// is the zero vector, or they differ in length.
	Cosine Aggregate = "cosine"
	// Ratio is Numerator divided by Denominator, none where that is 0; with a grouping, group by group.
	Ratio Aggregate = "ratio"
)

// ExactDistinct is up to how many different values CountDistinct is exact.
const ExactDistinct = 1000

// takes says what an aggregate is taken of.
type takes uint8

const (
	nothing takes = iota
	numbersAt
	valuesAt
	vectorsAt
	twoParts // of a ratio
)

// rule is what goes together with an aggregate.
type rule struct {
	of      takes
	grouped bool // may have group_by
	n       bool // has n
	decays  bool // may have half_life
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
	case TakeTop:
		return rule{of: valuesAt, n: true}, true
	case MeanEmbedding, Cosine:
		return rule{of: vectorsAt, decays: true}, true
	case Ratio:
		return rule{of: twoParts}, true
	}
	return rule{}, false
}

// zeroWhenEmpty says that the aggregate of no actions is 0.
func (a Aggregate) zeroWhenEmpty() bool {
	return a == Count || a == Rate || a == Sum || a == CountDistinct
}

// weight returns what an action counts so long after it.
func (d *Definition) weight(age millis) float64 {
	if d.HalfLife == 0 {
		return 1
	}
	return math.Exp2(-float64(age) / float64(durationMillis(d.HalfLife)))
}

// isMean says that weights cancel out. Of a mean they are taken as of the newest action and not as of the end of the
// window, where all of them could be 0.
func (a Aggregate) isMean() bool { return a == Mean || a == MeanEmbedding || a == Cosine }

// countsItem says whether the definition, of a pin, counts a verb.
func (d Definition) countsItem(v schemas.Verb) bool {
	if len(d.Verbs) == 0 {
		return v != schemas.ImpressionCount
	}
	return slices.Contains(d.Verbs, v)
}

// MarshalJSON writes the keys and values of features.yaml.
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
		GroupBy     string              `json:"group_by,omitempty"`
		Aggregate   Aggregate           `json:"aggregate"`
		Of          string              `json:"of,omitempty"`
		N           int                 `json:"n,omitempty"`
		HalfLife    string              `json:"half_life,omitempty"`
		Lookup      bool                `json:"lookup,omitempty"`
		Numerator   string              `json:"numerator,omitempty"`
		Denominator string              `json:"denominator,omitempty"`
	}{
		d.Name, d.Description, d.Entity, d.Verbs, d.windowText(), where, d.GroupBy.String(), d.Aggregate, d.Of.String(), d.N,
		shortOrNone(d.HalfLife), d.Lookup, d.Numerator.nameOrNone(), d.Denominator.nameOrNone(),
	})
	if err != nil {
		return nil, fmt.Errorf("write definition %s: %w", d.Name, err)
	}
	return text, nil
}

// windowText is empty where a definition has no window of its own.
func (d Definition) windowText() string {
	if d.hasNoWindow() {
		return ""
	}
	return bounds.Short(d.Window)
}

// hasNoWindow says of a ratio, which has those of its parts, and of the mean that a pin's row holds.
func (d Definition) hasNoWindow() bool {
	return d.Aggregate == Ratio || d.Entity == Pin && d.Aggregate == MeanEmbedding
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
	return bounds.Short(d)
}
