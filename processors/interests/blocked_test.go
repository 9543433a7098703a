package interests_test

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"

	"github.com/smartfeed/smartfeed/internal/testkit/deletedtest"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/topicstest"
	"github.com/smartfeed/smartfeed/processors/interests"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// with restarts the group and its readers with a changed configuration.
func (r *rig) with(d decisions, change func(*interests.Config)) {
	change(&r.cfg)
	r.member = r.Start("a", interests.Group(r.cfg, r.Kafka.Partitions, r.Streams, deletedtest.Of(), d))
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
	for _, i := range read(r, func(i interests.Reader) ([]schemas.UserInterest, error) { return i.Interests(r.t.Context(), user, 10) }) {
		ids = append(ids, i.Interest)
	}
	return slices.Sorted(slices.Values(ids))
}

// named looks up a term by name.
func (r *rig) named(term string) []schemas.DictionaryTerm {
	r.t.Helper()
	return read(r, func(i interests.Reader) ([]schemas.DictionaryTerm, error) {
		return i.Terms(r.t.Context(), topics.Partition(term, r.Kafka.Partitions), 0, []string{term})
	})
}

// A counted and accepted term that is blocked or stopped later is not listed and has no interest. The same holds for the terms
// merged into it. After its removal from the lists, it has the counts of the pins that still have it.
func TestBlock_HidesCountedTerms(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		blocks, allows func(*interests.Config)
		hidden         []string // in addition to sale
	}{
		"blocked": {
			func(c *interests.Config) { c.BlockedTerms = map[string]string{"Sale": "advertising"} },
			func(c *interests.Config) { c.BlockedTerms = nil },
			nil,
		},
		"stopped": {
			func(c *interests.Config) { c.StopWords = []string{"Sale"} },
			func(c *interests.Config) { c.StopWords = nil },
			[]string{"sale today", "big sale"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := decisions{
				"sale": {State: schemas.TermAccepted, Interest: "interest:sale"},
				"deal": {State: schemas.TermMerged, Into: "sale"}, "bargain": {State: schemas.TermMerged, Into: "deal"},
				"oolong": {State: schemas.TermAccepted, Interest: "interest:oolong"},
			}
			cfg := interests.DefaultConfig()
			cfg.MinPins, cfg.MinAuthors = 1, 1
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
				t.Fatalf("before: interests %q, want %q", got, want)
			}

			r.with(d, c.blocks)
			r.write(0, 2, "Oolong")            // no longer has the term
			r.write(pins, 1, "Sale, sencha")   // has a blocked term, which is not counted
			r.like("user:after", "pin:1", now) // the pin had the term before
			r.WaitIdle()
			want := []string{"sencha"}
			for term := range all {
				if term != "sale" && !slices.Contains(c.hidden, term) {
					want = append(want, term)
				} else if got := r.named(term); len(got) != 0 {
					t.Errorf("%s by name: got %+v, want none", term, got)
				}
			}
			slices.Sort(want)
			expect.NoDiff(t, slices.Sorted(maps.Keys(r.terms())), want, "terms")
			expect.NoDiff(t, r.likes("user:after"), []schemas.InterestID{"interest:oolong", "interest:tea"}, "interests while blocked")

			r.with(d, c.allows)
			expect.NoDiff(t, r.terms()["sale"], [2]int64{pins - 1, pins - 1}, "pins and people of sale after unblocking, without the changed pin")
			r.write(pins, 2, "Sale, sencha")
			r.like("user:again", "pin:1", now)
			r.WaitIdle()
			expect.NoDiff(t, r.terms()["sale"], [2]int64{pins, pins}, "pins and people of sale after a change of the pin that arrived while blocked")
			if got := r.likes("user:again"); !slices.Contains(got, "interest:sale") {
				t.Errorf("after unblocking: interests %q, want sale among them", got)
			}
		})
	}
}

// Blocked terms do not count against the limit.
func TestTerms_BlockedDoNotCountAgainstLimit(t *testing.T) {
	cfg := interests.DefaultConfig()
	cfg.MinPins, cfg.MinAuthors = 1, 1
	r := newRig(t, cfg, nil)
	for n := range 4 {
		r.write(n, 1, "Sale")
	}
	oolong := topicstest.KeysIn("oolong", topics.Partition("sale", r.Kafka.Partitions), r.Kafka.Partitions, 1)[0]
	r.write(4, 1, oolong)
	r.WaitIdle()
	best := func(limit int) (names []string) {
		for _, term := range read(r, func(i interests.Reader) ([]schemas.DictionaryTerm, error) {
			return i.Terms(t.Context(), topics.Partition("sale", r.Kafka.Partitions), limit, nil)
		}) {
			names = append(names, term.Term)
		}
		return names
	}
	if got, want := best(math.MaxInt), []string{"sale", oolong}; !slices.Equal(got, want) {
		t.Fatalf("got %q, want %q", got, want)
	}
	r.with(nil, func(c *interests.Config) { c.BlockedTerms = map[string]string{"sale": "advertising"} })
	expect.NoDiff(t, best(1), []string{oolong}, "best term")
}
