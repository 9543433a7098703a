package interests_test

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"

	"github.com/smartfeed/smartfeed/processors/interests"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// with restarts the group and its readers with a changed configuration.
func (r *rig) with(d decided, change func(*interests.Config)) {
	change(&r.cfg)
	r.member = r.Start("a", interests.Group(r.cfg, r.Kafka.Partitions, r.Streams, &notedUsers{}, d))
}

// write publishes a version of a pin with a title.
func (r *rig) write(pin int, version schemas.Version, title string) {
	c := &schemas.Card{Title: title}
	c.Pin, c.Version, c.Author = schemas.PinID(fmt.Sprint("pin:", pin)), version, schemas.UserID(fmt.Sprint("user:author-", pin))
	r.card(c)
}

// likes returns a user's interests by name.
func (r *rig) likes(user schemas.UserID) []schemas.InterestID {
	r.t.Helper()
	var ids []schemas.InterestID
	for _, i := range ask(r, func(i interests.Reader) ([]schemas.UserInterest, error) { return i.Interests(r.t.Context(), user, 10) }) {
		ids = append(ids, i.Interest)
	}
	return slices.Sorted(slices.Values(ids))
}

// named returns the result of asking for a term by name.
func (r *rig) named(term string) []schemas.DictionaryTerm {
	r.t.Helper()
	return ask(r, func(i interests.Reader) ([]schemas.DictionaryTerm, error) {
		return i.Terms(r.t.Context(), topics.Partition(term, r.Kafka.Partitions), 0, []string{term})
	})
}

// A term that is blocked or stopped after it was counted and accepted is no term and has no interest, nor have the terms
// merged into it. After its removal from the lists, it has the counts of the pins that had it all the time.
func TestWhatWasCountedIsBlocked(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		blocks, allows func(*interests.Config)
		hidden         []string // in addition to sale
	}{
		"blocked": {
			func(c *interests.Config) { c.Block = map[string]string{"Sale": "advertising"} },
			func(c *interests.Config) { c.Block = nil },
			nil,
		},
		"stopped": {
			func(c *interests.Config) { c.Stop = []string{"Sale"} },
			func(c *interests.Config) { c.Stop = nil },
			[]string{"sale today", "big sale"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := decided{
				"sale": {State: schemas.TermAccepted, Interest: "interest:sale"},
				"deal": {State: schemas.TermMerged, Into: "sale"}, "bargain": {State: schemas.TermMerged, Into: "deal"},
				"oolong": {State: schemas.TermAccepted, Interest: "interest:oolong"},
			}
			cfg := interests.DefaultConfig()
			cfg.MinPins, cfg.MinPeople = 1, 1
			r := newRig(t, cfg, d)
			const pins = 6
			for n := range pins {
				r.write(n, 1, "Big sale today, deal, bargain, oolong")
			}
			r.WaitIdle()
			r.like("user:before", "pin:1", now)
			r.WaitIdle()
			all := r.terms()
			if want := [2]int64{pins, pins}; all["sale"] != want || all["oolong"] != want || len(r.named("sale")) != 1 {
				t.Fatalf("before: %v, want sale and oolong of %d pins", all, pins)
			}
			if got, want := r.likes("user:before"), []schemas.InterestID{"interest:oolong", "interest:sale", "interest:tea"}; !slices.Equal(got, want) {
				t.Fatalf("before: a user likes %q, want %q", got, want)
			}

			r.with(d, c.blocks)
			r.write(0, 2, "Oolong")            // no longer has the term
			r.write(pins, 1, "Sale, sencha")   // and a term that is not counted
			r.like("user:after", "pin:1", now) // the pin had the term before
			r.WaitIdle()
			want := []string{"sencha"}
			for term := range all {
				if term != "sale" && !slices.Contains(c.hidden, term) {
					want = append(want, term)
				} else if got := r.named(term); len(got) != 0 {
					t.Errorf("%s is asked for: got %+v, want nothing", term, got)
				}
			}
			slices.Sort(want)
			if got := slices.Sorted(maps.Keys(r.terms())); !slices.Equal(got, want) {
				t.Errorf("terms are %q, want %q", got, want)
			}
			if got, want := r.likes("user:after"), []schemas.InterestID{"interest:oolong", "interest:tea"}; !slices.Equal(got, want) {
				t.Errorf("a user likes %q, want %q", got, want)
			}

			r.with(d, c.allows)
			if got, want := r.terms()["sale"], [2]int64{pins - 1, pins - 1}; got != want {
				t.Errorf("taken off the list: sale has %v, want %v: those of before without the one that says it no more", got, want)
			}
			r.write(pins, 2, "Sale, sencha")
			r.like("user:again", "pin:1", now)
			r.WaitIdle()
			if got, want := r.terms()["sale"], [2]int64{pins, pins}; got != want {
				t.Errorf("when the pin of in between has changed: sale has %v, want %v", got, want)
			}
			if got := r.likes("user:again"); !slices.Contains(got, "interest:sale") {
				t.Errorf("taken off the list: a user likes %q, want sale among them", got)
			}
		})
	}
}

// Blocked terms take no place among the best.
func TestBlockedTermsTakeNoPlace(t *testing.T) {
	t.Parallel()
	cfg := interests.DefaultConfig()
	cfg.MinPins, cfg.MinPeople = 1, 1
	r := newRig(t, cfg, nil)
	for n := range 4 {
		r.write(n, 1, "Sale")
	}
	oolong := "oolong"
	for n := 0; topics.Partition(oolong, r.Kafka.Partitions) != topics.Partition("sale", r.Kafka.Partitions); n++ {
		oolong = fmt.Sprintf("oolong%d", n)
	}
	r.write(4, 1, oolong)
	r.WaitIdle()
	best := func(most int) (names []string) {
		for _, term := range ask(r, func(i interests.Reader) ([]schemas.DictionaryTerm, error) {
			return i.Terms(t.Context(), topics.Partition("sale", r.Kafka.Partitions), most, nil)
		}) {
			names = append(names, term.Term)
		}
		return names
	}
	if got, want := best(math.MaxInt), []string{"sale", oolong}; !slices.Equal(got, want) {
		t.Fatalf("got %q, want %q", got, want)
	}
	r.with(nil, func(c *interests.Config) { c.Block = map[string]string{"sale": "advertising"} })
	if got, want := best(1), []string{oolong}; !slices.Equal(got, want) {
		t.Errorf("the best one is %q, want %q", got, want)
	}
}
