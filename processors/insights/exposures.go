package insights

import (
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
	tallies experiment.Tallies

	seen []exposure // of the present user
}

// add adds the entries of a user.
func (e *exposures) add(entries []entry) {
	e.seen = e.seen[:0]
	for _, x := range entries {
		if visit, ok := strings.CutPrefix(x.what, visitPrefix); ok {
			e.addVisit(x.at, visit)
		}
	}
	for _, x := range e.seen {
		e.count(x, entries)
	}
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

// count adds what the present user saw in one arm, and did afterwards, to the tallies.
func (e *exposures) count(x exposure, entries []entry) {
	tally := e.tallies.Of(x.feed, x.arm)
	tally.Users++
	tally.Visits += x.visits
	tally.Items += x.items
	for i := range tally.Actions {
		a, count := &tally.Actions[i], 0
		for _, did := range entries {
			if did.what == a.Verb && did.at >= x.first {
				count++
			}
		}
		a.Count += count
		a.PerItem.Add(float64(count), float64(x.items))
		a.PerVisit.Add(float64(count), float64(x.visits))
	}
}
