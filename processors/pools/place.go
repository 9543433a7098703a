package pools

import "github.com/smartfeed/smartfeed/schemas"

// candidate is a pin's place in a pool: one, whatever number of rows it has.
type candidate struct {
	pin     schemas.PinID
	score   float64 // of the place
	version int     // index of the row that gives the facets
	place   int     // index of the row that gives the place; may be the same; noPlace: it is pulled
	candidateBody
}

// noPlace is the place of a candidate that stands in no row of the user.
const noPlace = -1

// candidateBody is what the highest version says.
type candidateBody struct {
	schemas.Facets
	created schemas.Micros
	deleted bool
}

// places finds the candidates among the rows of a source, both best first. Of a pin's rows the highest version says what
// the pin is. Rows whose creation differs from that version's stand where an earlier belief put them, and are ignored;
// of the others the best one is the place.
func places(list []candidateRow) []candidate {
	highest := make(map[schemas.PinID]int, len(list))
	for i := range list {
		r := &list[i]
		if best, ok := highest[r.pin]; !ok || r.version > list[best].version {
			highest[r.pin] = i
		}
	}
	all := make([]candidate, 0, len(highest))
	for i := range list {
		r := &list[i]
		top, ok := highest[r.pin]
		if !ok || r.Created != list[top].Created {
			continue
		}
		delete(highest, r.pin) // the first is the best
		v := &list[top]
		all = append(all, candidate{
			pin: r.pin, score: r.score, version: top, place: i,
			candidateBody: candidateBody{Facets: v.Facets, created: v.Created, deleted: v.Deleted},
		})
	}
	return all
}

// fate is what a user's rows say of a candidate.
type fate int

const (
	waiting fate = iota // visible and unseen
	hidden              // by a block, a deletion, for want of an edge
	shown               // seen
	refused             // created before what is remembered as seen
	expired             // older than the expiry
)

// judge says what becomes of candidates. remembers is asked last, and only of those whose answer matters.
type judge struct {
	standing  func(c *candidate) fate          // without seen: waiting, hidden, refused or expired
	remembers func(c *candidate) (bool, error) // seen
}

// best returns the n best candidates that wait, of all of them, best first.
func (j judge) best(all []candidate, n int) ([]candidate, error) {
	return j.bestOf(func() *candidate {
		if len(all) == 0 {
			return nil
		}
		c := &all[0]
		all = all[1:]
		return c
	}, min(n, len(all)))
}

// bestOf is best of the candidates that next yields, until nil.
func (j judge) bestOf(next func() *candidate, n int) ([]candidate, error) {
	list := make([]candidate, 0, n)
	for len(list) < n {
		c := next()
		if c == nil {
			break
		}
		if j.standing(c) != waiting {
			continue
		}
		seen, err := j.remembers(c)
		if err != nil {
			return nil, err
		}
		if !seen {
			list = append(list, *c)
		}
	}
	return list, nil
}

// trim returns for each of n rows the reason why it is dropped, "" if it stays. Kept are the best candidates up to the
// cap, as many hidden ones, and of each the rows that say what it is and where it stands.
func (j judge) trim(list []candidateRow, all []candidate, most int) ([]string, error) {
	reasons := make([]string, len(list))
	for i := range reasons {
		reasons[i] = dropDuplicate
	}
	left := map[fate]int{waiting: most, hidden: most}
	for i := range all {
		c := &all[i]
		reason, err := j.reason(c, left)
		if err != nil {
			return nil, err
		}
		reasons[c.place], reasons[c.version] = reason, reason
	}
	return reasons, nil
}

// reason is why a candidate is dropped, "" if it stays and takes one of what is left.
func (j judge) reason(c *candidate, left map[fate]int) (string, error) {
	f := j.standing(c)
	switch f {
	case refused:
		return dropRefused, nil
	case expired:
		return dropExpired, nil
	}
	if left[f] == 0 {
		if f == hidden {
			return dropHiddenCap, nil
		}
		return dropCap, nil
	}
	seen, err := j.remembers(c)
	if err != nil {
		return "", err
	}
	if seen {
		return dropSeen, nil
	}
	left[f]--
	return "", nil
}
