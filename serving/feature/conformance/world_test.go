package conformance

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/serving/feature"
)

// world is all data of the suite. It is the same in every run except for its times.
type world struct {
	now       schemas.Micros
	people    []person // the last has no actions
	neighbors []person // each id is a prefix of the next; the i-th has i+1 actions
	hostile   []person // whose ids, objects and values look like queries
	many      person   // with twice as many objects as are counted exactly
	repeats   person   // whose actions list interests more than once
	long      person   // with more actions than a sequence contains
	looker    person   // read as of five hours ago: two saves of lookedAt by then, one since
	items     []item   // the last is lookedAt: three saves by then, seven in the present step
	pins      []versions
}

// lookedAt is the pin of the world's looker.
const lookedAt = schemas.PinID("pin:looked-at")

// person is a user with all actions and the span of the read.
type person struct {
	user    schemas.UserID
	span    feature.Span
	actions []schemas.EnrichedAction
}

// item is a pin with its counts in the order of steps, and the time of the read.
type item struct {
	pin    schemas.PinID
	now    schemas.Micros
	counts []schemas.ItemCounts
}

// versions are the versions of a pin, the oldest first.
type versions struct {
	pin schemas.PinID
	all []schemas.PinAttributes
}

const hour = schemas.Micros(3600e6)

// Amounts of data.
const (
	people = 300
	items  = 100
	pins   = 100
)

func newWorld(now schemas.Micros) *world {
	w := &world{now: now}
	asOf := []schemas.Micros{now, now - 5*hour, now - 90*hour, now - 97*hour, now + hour}
	for i := range people {
		p := person{schemas.UserID(fmt.Sprint("user:", i)), feature.Span{Now: now, AsOf: asOf[i%len(asOf)]}, nil}
		if i < people-1 {
			p.actions = histories(p, i).Example(i)
		}
		w.people = append(w.people, p)
	}
	for i := range items {
		w.items = append(w.items, itemsOf(schemas.PinID(fmt.Sprint("pin:", i)), now).Example(i))
	}
	for i := range pins {
		w.pins = append(w.pins, versionsOf(schemas.PinID(fmt.Sprint("pin:own-", i))).Example(i))
	}
	acted := schemas.PinAttributes{Pin: "pin:it's", Facets: schemas.Facets{Author: "user:a"}, Embedding: []float32{1, -2}} // the object of actions
	w.pins = append(w.pins, versions{acted.Pin, []schemas.PinAttributes{acted}})
	w.addNeighbors()
	w.addHostile()
	w.addLooker()
	w.addRepeats()
	w.long = w.longer()
	w.many = w.person("user:many", 2*feature.ExactDistinct)
	for i := range w.many.actions {
		w.many.actions[i].Timestamp -= schemas.Micros(i) * 1000
	}
	return w
}

// person returns a person with saves of n different pins just now.
func (w *world) person(user schemas.UserID, n int) person {
	p := person{user: user, span: feature.Span{Now: w.now, AsOf: w.now}}
	for i := range n {
		p.actions = append(p.actions, schemas.EnrichedAction{
			ID: fmt.Sprint(user, "-", i), Actor: user, Verb: schemas.Save, Object: schemas.ID(fmt.Sprint("pin:", i)), Timestamp: w.now,
		})
	}
	return p
}

func (w *world) addNeighbors() {
	for i, user := range []schemas.UserID{"user:n", "user:n:", "user:n0", "user:N", "user:nä"} {
		w.neighbors = append(w.neighbors, w.person(user, i+1))
	}
}

func (w *world) addHostile() {
	for _, id := range []string{
		`'`, `''`, `'''`, `\`, `\'`, `?`, `--`, `' --`, `' OR 1=1 --`, `x'; DROP TABLE actions_enriched`, `;SET timeoutMs=1`, `;SET a='b';`,
		`/*`, `*/`, `option(timeoutMs=1)`, ` OPTION(timeoutMs=1)`, `' option(a=b)`, "‘’“”", "ʼ", "＇", "%", "_", `"`, "`", "{}", "$1", ":a", "@x", "\u202e", "😀", "é", "e\u0301",
	} {
		user, err := schemas.ParseUserID("user:" + id)
		if err != nil {
			panic(err)
		}
		p := w.person(user, 1)
		p.actions[0].Object = schemas.ID("pin:" + id)
		p.actions[0].ObjectAttributes.Attributes = map[string]string{"x": id + "\x00"}
		w.hostile = append(w.hostile, p)
	}
}

func (w *world) addLooker() {
	w.looker = w.person("user:looker", 3)
	then := w.now - 5*hour
	w.looker.span.AsOf = then
	for i, at := range []schemas.Micros{then - hour/2, then, w.now} {
		w.looker.actions[i].Object, w.looker.actions[i].Timestamp = schemas.ID(lookedAt), at
	}
	saves := func(at schemas.Micros, n int64) schemas.ItemCounts {
		return schemas.ItemCounts{Pin: lookedAt, Start: at / schemas.ItemStep * schemas.ItemStep, Counts: map[string]int64{"save": n}}
	}
	w.items = append(w.items, item{lookedAt, w.now, []schemas.ItemCounts{saves(then-hour/2, 3), saves(w.now, 7)}})
}

func (w *world) addRepeats() {
	w.repeats = w.person("user:repeats", 2)
	for i := range w.repeats.actions {
		a := &w.repeats.actions[i]
		a.ObjectAttributes.Interests = []schemas.InterestID{"interest:1", "interest:2", "interest:1"}
		a.ActorAttributes.Interests = []schemas.InterestID{"interest:3", "interest:3"}
	}
}

// write writes everything in random order and in a few batches, and repeats a part of it. The counts of a pin come in
// the order of its steps.
func (w *world) write(t *testing.T, s store) {
	var all []feature.Batch
	for _, p := range slices.Concat(w.people, w.neighbors, w.hostile, []person{w.looker, w.repeats, w.many, w.long}) {
		for i := range p.actions {
			all = append(all, feature.Batch{Actions: []*schemas.EnrichedAction{&p.actions[i]}})
		}
	}
	for _, p := range w.items {
		var b feature.Batch
		for i := range p.counts {
			early := p.counts[i]
			early.Counts = map[string]int64{"save": 9, "view": 9} // replaced by the later counts
			early.Actors, early.Embedding = schemas.Sketch(nil).Add("user:early"), nil
			b.Counts = append(b.Counts, &early, &p.counts[i])
		}
		all = append(all, b)
	}
	for _, p := range w.pins {
		for i := range p.all {
			all = append(all, feature.Batch{Pins: []*schemas.PinAttributes{&p.all[i]}})
		}
	}
	random := rand.New(rand.NewPCG(1, 2))
	shuffle := func() { random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] }) }
	shuffle()
	all = append(all, all[:len(all)/10]...)
	shuffle()
	for part := range slices.Chunk(all, len(all)/8) {
		var b feature.Batch
		for _, one := range part {
			b.Actions, b.Counts, b.Pins = append(b.Actions, one.Actions...), append(b.Counts, one.Counts...), append(b.Pins, one.Pins...)
		}
		must.OK(t, s.Write(b))
	}
}

// newest returns the newest data of a pin, and whether the pin exists.
func (v versions) newest() (own feature.PinAttributes, known bool) {
	if len(v.all) == 0 {
		return own, false
	}
	last := v.all[len(v.all)-1]
	return feature.PinAttributes{Facets: last.Facets, Attributes: last.Attributes, Embedding: last.Embedding}, !last.Deleted
}

// longer returns a person with more actions than a sequence contains, in an order of times that differs from that of numbers.
// Most are older than the windows of other features.
func (w *world) longer() person {
	p := w.person("user:longer", feature.MaxSequence+100)
	for i := range p.actions {
		a := &p.actions[i]
		a.Number = int64(i + 1)
		a.Timestamp -= schemas.Micros((len(p.actions)-i)^3) * hour / 2
		a.VerbAttributes.Surface = []string{"", "home", "search"}[i%3]
		a.ObjectAttributes.Embedding = [][]float32{{1, float32(i), -1}, {float32(i)}, nil, {0, 0, 0}}[i%4]
		if i%5 == 0 {
			a.Verb = schemas.Click
		}
	}
	return p
}
