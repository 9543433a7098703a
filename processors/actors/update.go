package actors

import (
	"maps"
	"slices"
	"time"

	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/schemas"
)

// updateAffinities adds an action to the user's affinities for the facets of its pin, and sends them now or by timer.
func (t table) updateAffinities(a *schemas.EnrichedAction, weight float64) error {
	touched := facets(a, t.deleted)
	if language := a.ObjectAttributes.PrimaryLanguage(); language != "" {
		touched = append(touched, schemas.LanguageFacet(language))
	}
	if weight == 0 || len(touched) == 0 {
		return nil
	}
	s, err := t.sent()
	if err != nil {
		return err
	}
	ranked := t.rankings().of(t.user())
	for _, id := range touched {
		f, isNew, err := t.addTo(id, weight, a.Timestamp)
		if err != nil {
			return err
		}
		if isNew {
			s.facets++
		}
		if ranked != nil {
			ranked.set(id, f.decayed, t.cfg.AffinityHalfLife, t.maxRanked())
		}
	}
	if s.facets > t.cfg.MaxAffinities+t.cfg.MaxAffinities/4 {
		if err := t.trim(); err != nil {
			return err
		}
		s.facets = t.cfg.MaxAffinities
	}
	return t.sendOrWait(s)
}

// addTo adds a weight to an affinity and returns it. It reports whether the affinity is new.
func (t table) addTo(id schemas.ID, weight float64, at schemas.Micros) (f facet, isNew bool, err error) {
	f, existed, err := t.facet(id)
	if err != nil {
		return f, false, err
	}
	f.decayed = f.add(weight, at, t.cfg.AffinityHalfLife)
	return f, !existed, t.putFacet(id, f)
}

// decayWeight updates the weight of an edge whose affinity has decayed.
func (t table) decayWeight(id schemas.ID) error {
	f, existed, err := t.facet(id)
	if err != nil || !existed {
		return err
	}
	f.timerAt = 0 // the timer has just fired
	return t.putFacet(id, f)
}

// putFacet writes an affinity. It sends the edge weight to the followee if its step has changed, and sets a timer for the
// next change through decay.
func (t table) putFacet(id schemas.ID, f facet) error {
	if _, isLanguage := schemas.LanguageOf(id); isLanguage { // it has no edge
		return rows.PutValue(t.own, facetName(id), &f)
	}
	if f.updateWeight(t.cfg, t.now()) {
		if err := t.sendWeight(id, f.sentWeight, f.sentAt); err != nil {
			return err
		}
	}
	if err := t.scheduleDecay(id, &f); err != nil {
		return err
	}
	return rows.PutValue(t.own, facetName(id), &f)
}

// scheduleDecay sets the timer of an affinity. A timer that is set too early stays, and is set again when it fires. This
// is cheaper than moving it with every action.
func (t table) scheduleDecay(id schemas.ID, f *facet) error {
	wake := f.nextChange(t.cfg, t.now())
	if f.timerAt != 0 && f.timerAt <= wake || wake == f.timerAt {
		return nil
	}
	if f.timerAt != 0 {
		if err := t.own.DropTimer(f.timerAt.Time(), facetName(id)); err != nil {
			return err
		}
	}
	f.timerAt = wake
	if wake == 0 {
		return nil
	}
	return t.own.SetTimer(wake.Time(), facetName(id))
}

func (t table) sendWeight(id schemas.ID, weight float32, at schemas.Micros) error {
	rec := schemas.EdgeWeight{Followee: schemas.Followee(id), User: t.user(), Weight: weight, Time: at}
	return rows.Send(t.tx, t.streams.EdgeWeights, string(id), &rec)
}

// trim removes the weakest affinities beyond MaxAffinities and resets the edge weights that they determined.
func (t table) trim() error {
	t.rankings().drop(t.user())
	all, err := t.affinities()
	if err != nil {
		return err
	}
	for _, a := range weakest(all, t.cfg.MaxAffinities) {
		f, _, err := t.facet(a.Facet)
		if err != nil {
			return err
		}
		if f.sentWeight != initialWeight {
			if err := t.sendWeight(a.Facet, initialWeight, max(t.now(), f.sentAt+1)); err != nil {
				return err
			}
		}
		if err := t.dropFacet(a.Facet, f); err != nil {
			return err
		}
		t.tx.Count(dropWeakFacet)
	}
	return nil
}

func (t table) dropFacet(id schemas.ID, f facet) error {
	if f.timerAt != 0 {
		if err := t.own.DropTimer(f.timerAt.Time(), facetName(id)); err != nil {
			return err
		}
	}
	return t.own.Delete(facetName(id))
}

// sendOrWait sends the affinities if the last time was at least Config.EmitInterval ago. Otherwise it sets a timer.
// While the timer is set, only the timer sends: an action between its due time and its tick would otherwise send them
// twice.
func (t table) sendOrWait(s sent) error {
	if s.due != 0 {
		return t.putSent(s)
	}
	next := s.at + micros(t.cfg.EmitInterval)
	if t.now() >= next {
		return t.send(s)
	}
	s.due = next
	if err := t.own.SetTimer(next.Time(), []byte{sentRow}); err != nil {
		return err
	}
	return t.putSent(s)
}

// sendDue sends the affinities that have changed since they were last sent.
func (t table) sendDue() error {
	s, err := t.sent()
	if err != nil || s.due == 0 {
		return err
	}
	s.due = 0 // the timer has just fired
	return t.send(s)
}

// send sends the strongest affinities as of now. The timer must not be set.
func (t table) send(s sent) error {
	top, err := t.top(&s)
	if err != nil {
		return err
	}
	rec := schemas.Affinities{User: t.user(), Time: t.now(), Top: top}
	if err := rows.Send(t.tx, t.streams.Affinities, string(rec.User), &rec); err != nil {
		return err
	}
	s.at = t.now()
	return t.putSent(s)
}

// top returns the strongest affinities as of now, from memory if possible.
func (t table) top(s *sent) ([]schemas.Affinity, error) {
	if r := t.rankings().of(t.user()); r != nil && !t.outdated(r) {
		if top, ok := r.top(t.cfg.TopAffinities, t.now(), t.cfg.AffinityHalfLife, t.deleted); ok {
			return top, nil
		}
	}
	r, err := t.rank(s)
	if err != nil {
		return nil, err
	}
	top, _ := r.top(t.cfg.TopAffinities, t.now(), t.cfg.AffinityHalfLife, t.deleted)
	return top, nil
}

// purgeEvery is the minimum time between two reads of all affinities of a user to remove those for deleted authors.
const purgeEvery = time.Minute

// outdated reports whether users were deleted since all affinities were read.
func (t table) outdated(r *ranking) bool {
	return r.deleted != t.deleted.Len() && t.now() >= r.read+micros(purgeEvery)
}

// rank reads all affinities of the user, removes those for deleted authors, and keeps the strongest in memory.
func (t table) rank(s *sent) (*ranking, error) {
	r, removed := &ranking{read: t.now(), deleted: t.deleted.Len()}, map[schemas.ID]facet{}
	err := t.eachFacet(func(id schemas.ID, f facet) {
		if ofDeletedAuthor(id, t.deleted) {
			removed[id] = f
		} else {
			r.add(id, f.decayed, t.cfg.AffinityHalfLife, t.maxRanked())
		}
	})
	for _, id := range slices.Sorted(maps.Keys(removed)) {
		if err == nil {
			err = t.dropFacet(id, removed[id])
		}
	}
	if err != nil {
		return nil, err
	}
	s.facets -= len(removed)
	t.rankings().put(t.user(), r)
	return r, nil
}

// maxRanked is the number of facets of a user that a ranking holds: twice those that are sent, so it need not be read again
// until half of them have decreased.
func (t table) maxRanked() int { return 2 * t.cfg.TopAffinities }

func (t table) rankings() *rankings { return t.tx.Memory().(*rankings) }

// affinities returns all affinities of the user as of now.
func (t table) affinities() ([]schemas.Affinity, error) {
	var all []schemas.Affinity
	now := t.now()
	err := t.eachFacet(func(id schemas.ID, f facet) {
		all = append(all, schemas.Affinity{Facet: id, Value: f.at(now, t.cfg.AffinityHalfLife)})
	})
	return all, err
}

// eachFacet visits the affinities of the user, ordered by facet.
func (t table) eachFacet(visit func(schemas.ID, facet)) error {
	return rows.Each(t.own, []byte{facetRow}, func(id string, f facet) { visit(schemas.ID(id), f) })
}

func (t table) facet(id schemas.ID) (f facet, existed bool, err error) {
	if f, existed, err = rows.Value[facet](t.own, facetName(id)); !existed {
		f.sentWeight = initialWeight
	}
	return f, existed, err
}

func (t table) sent() (sent, error) {
	s, _, err := rows.Value[sent](t.own, []byte{sentRow})
	return s, err
}

func (t table) putSent(s sent) error { return rows.PutValue(t.own, []byte{sentRow}, &s) }
