package insights

import (
	"bytes"
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/smartfeed/smartfeed/internal/experiment"
	"github.com/smartfeed/smartfeed/schemas"
)

// visitPrefix distinguishes a visit from a verb, which contains no byte 0.
const visitPrefix = "\x00"

// visitEntry returns the entry of a visit in a sequence: the number of new items, the feed and the arm.
func visitEntry(v *schemas.Served) string {
	return visitPrefix + strconv.Itoa(len(v.Items)) + "\x00" + v.Feed + "\x00" + v.Arm
}

// exposure is the visits of a user to a feed in an arm.
type exposure struct {
	feed, arm     string
	first         schemas.Micros // first visit
	visits, items int
}

// exposures compares what users saw in each arm with what they did from their first visit in it on, wherever they did it. All
// users in an arm count, also those without actions, so the arms are comparable if their users were drawn at random.
type exposures struct {
	verbs   []schemas.Verb
	tallies experiment.Tallies

	user []byte // present user
	seen []exposure
	acts []act
}

func newExposures(verbs []schemas.Verb) *exposures {
	return &exposures{verbs: verbs, tallies: experiment.Tallies{Verbs: schemas.Strings(verbs)}}
}

// add adds a day of a user. All days of a user come before those of the next one.
func (e *exposures) add(user []byte, d day, row []byte) error {
	if !bytes.Equal(user, e.user) {
		e.countUser()
		e.user = append(e.user[:0], user...)
	}
	err := eachEntry(d, row, func(at schemas.Micros, entry []byte) {
		if visit, ok := bytes.CutPrefix(entry, []byte(visitPrefix)); ok {
			e.addVisit(at, string(visit))
		}
	})
	acts, failed := actsIn(d, row, e.verbs)
	e.acts = append(e.acts, acts...)
	return cmp.Or(err, failed)
}

func (e *exposures) addVisit(at schemas.Micros, visit string) {
	items, feed, _ := strings.Cut(visit, "\x00")
	feed, arm, _ := strings.Cut(feed, "\x00")
	i := slices.IndexFunc(e.seen, func(x exposure) bool { return x.feed == feed && x.arm == arm })
	if i < 0 {
		i, e.seen = len(e.seen), append(e.seen, exposure{feed: feed, arm: arm, first: at})
	}
	n, _ := strconv.Atoi(items) // visitEntry has written it
	e.seen[i].first = min(e.seen[i].first, at)
	e.seen[i].visits++
	e.seen[i].items += n
}

// countUser adds the present user to the tallies, and forgets the user.
func (e *exposures) countUser() {
	for _, x := range e.seen {
		one := experiment.Tally{Count: experiment.Count{Users: 1, Visits: x.visits, Items: x.items}, Actions: make([]experiment.ActionTally, len(e.verbs))}
		if slices.ContainsFunc(e.seen, func(o exposure) bool { return o.feed == x.feed && o.arm != x.arm }) {
			one.Switched = 1
		}
		for i, verb := range e.verbs {
			a := &one.Actions[i]
			for _, act := range e.acts {
				if act.verb == verb && act.at >= x.first {
					a.Count++
				}
			}
			a.PerItem.Add(float64(a.Count), float64(x.items))
			a.PerVisit.Add(float64(a.Count), float64(x.visits))
		}
		e.tallies.Of(x.feed, x.arm).Merge(one)
	}
	e.seen, e.acts = e.seen[:0], e.acts[:0]
}

// result returns the tallies of all users that were added.
func (e *exposures) result() []experiment.Tally {
	e.countUser()
	return append([]experiment.Tally{}, e.tallies.All...) // not nil
}
