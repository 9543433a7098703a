package actors

import (
	"time"

	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/schemas"
)

// updateAffinities adds an action to the user's affinities for the facets of its pin, and sends them now or by timer.
func (t table) updateAffinities(a *schemas.EnrichedAction, weight float64) {
	touched := facets(a, t.deleted)
	if language := a.ObjectAttributes.PrimaryLanguage(); language != "" {
		touched = append(touched, schemas.LanguageFacet(language))
	}
	if weight == 0 || len(touched) == 0 {
		return
	}
	before := t.sent()
	s := before
	ranked := t.rankings().of(t.user())
	for _, id := range touched {
		f, existed := t.facet(id)
		f.Amount = f.Plus(weight, a.Timestamp, t.cfg.AffinityHalfLife)
		t.putFacet(id, f)
		if !existed {
			s.facets++
		}
		if ranked != nil {
			ranked.set(id, f.Amount, t.cfg.AffinityHalfLife, t.maxRanked())
		}
	}
	if s.facets > t.cfg.MaxAffinities+t.cfg.MaxAffinities/4 {
		t.trim()
		s.facets = t.cfg.MaxAffinities
	}
	if s.due == 0 {
		t.sendOrWait(s)
	} else if s != before {
		t.putSent(s)
	}
}

// decayWeight updates the weight of an edge whose affinity has decayed.
func (t table) decayWeight(id schemas.ID) {
	f, existed := t.facet(id)
	if !existed {
		return
	}
	f.timerAt = 0 // the timer has just fired
	t.putFacet(id, f)
}

// putFacet writes an affinity. It sends the edge weight to the followee if its step has changed, and sets a timer for the
// next change through decay.
func (t table) putFacet(id schemas.ID, f facet) {
	if _, isLanguage := schemas.LanguageOf(id); !isLanguage { // a language has no edge
		if f.updateWeight(t.cfg, t.now()) {
			t.sendWeight(id, f.sentWeight, f.sentAt)
		}
		t.scheduleDecay(id, &f)
	}
	rows.PutValue(t.own, rows.Name(facetRow, id), &f)
}

// scheduleDecay sets the timer of an affinity. A timer that is set too early stays, and is set again when it fires. This
// is cheaper than moving it with every action.
func (t table) scheduleDecay(id schemas.ID, f *facet) {
	wake := f.nextChange(t.cfg, t.now())
	if f.timerAt != 0 && f.timerAt <= wake || wake == f.timerAt {
		return
	}
	if f.timerAt != 0 {
		t.own.DropTimer(f.timerAt.Time(), rows.Name(facetRow, id))
	}
	f.timerAt = wake
	if wake != 0 {
		t.own.SetTimer(wake.Time(), rows.Name(facetRow, id))
	}
}

func (t table) sendWeight(id schemas.ID, weight float32, at schemas.Micros) {
	rec := schemas.EdgeWeight{Followee: schemas.Followee(id), User: t.user(), Weight: weight, Time: at}
	rows.Send(t.tx, t.streams.EdgeWeights, string(id), &rec)
}

// trim removes the weakest affinities beyond MaxAffinities and resets the edge weights that they determined.
func (t table) trim() {
	t.rankings().drop(t.user())
	for _, a := range weakest(t.affinities(), t.cfg.MaxAffinities) {
		f, _ := t.facet(a.Facet)
		if f.sentWeight != initialWeight {
			t.sendWeight(a.Facet, initialWeight, max(t.now(), f.sentAt+1))
		}
		t.dropFacet(a.Facet, f)
		t.tx.Count(dropWeakFacet)
	}
}

func (t table) dropFacet(id schemas.ID, f facet) {
	if f.timerAt != 0 {
		t.own.DropTimer(f.timerAt.Time(), rows.Name(facetRow, id))
	}
	t.own.Delete(rows.Name(facetRow, id))
}

// sendOrWait sends the affinities if the last time was at least Config.EmitInterval ago. Otherwise it sets a timer.
// While the timer is set, only the timer sends: an action between its due time and its tick would otherwise send them
// twice.
func (t table) sendOrWait(s sent) {
	next := s.at + schemas.MicrosIn(t.cfg.EmitInterval)
	if t.now() >= next {
		t.send(s)
		return
	}
	s.due = next
	t.own.SetTimer(next.Time(), []byte{sentRow})
	t.putSent(s)
}

// sendDue sends the affinities that have changed since they were last sent.
func (t table) sendDue() {
	s := t.sent()
	if s.due == 0 {
		return
	}
	s.due = 0 // the timer has just fired
	t.send(s)
}

// send sends the strongest affinities as of now. The timer must not be set.
func (t table) send(s sent) {
	rec := schemas.Affinities{User: t.user(), Time: t.now(), Top: t.top(&s)}
	rows.Send(t.tx, t.streams.Affinities, string(rec.User), &rec)
	s.at = t.now()
	t.putSent(s)
}

// top returns the strongest affinities as of now, from memory if possible.
func (t table) top(s *sent) []schemas.Affinity {
	if r := t.rankings().of(t.user()); r != nil && !t.outdated(r) {
		if top, ok := r.top(t.cfg.TopAffinities, t.now(), t.cfg.AffinityHalfLife, t.deleted); ok {
			return top
		}
	}
	top, _ := t.rank(s).top(t.cfg.TopAffinities, t.now(), t.cfg.AffinityHalfLife, t.deleted)
	return top
}

// purgeEvery is the minimum time between two reads of all affinities of a user to remove those for deleted authors.
const purgeEvery = time.Minute

// outdated reports whether users were deleted since all affinities were read.
func (t table) outdated(r *ranking) bool {
	return r.deleted != t.deleted.Len() && t.now() >= r.read+schemas.MicrosIn(purgeEvery)
}

// rank reads all affinities of the user, removes those for deleted authors, and keeps the strongest in memory.
func (t table) rank(s *sent) *ranking {
	r := &ranking{read: t.now(), deleted: t.deleted.Len()}
	t.eachFacet(func(id schemas.ID, f facet) {
		if ofDeletedAuthor(id, t.deleted) {
			t.dropFacet(id, f)
			s.facets--
		} else {
			r.add(id, f.Amount, t.cfg.AffinityHalfLife, t.maxRanked())
		}
	})
	t.rankings().put(t.user(), r)
	return r
}

// maxRanked is the number of facets of a user that a ranking holds: twice those that are sent, so it need not be read again
// until half of them have decreased.
func (t table) maxRanked() int { return 2 * t.cfg.TopAffinities }

func (t table) rankings() *rankings { return t.tx.Memory().(*rankings) }

// affinities returns all affinities of the user as of now.
func (t table) affinities() []schemas.Affinity {
	var all []schemas.Affinity
	now := t.now()
	t.eachFacet(func(id schemas.ID, f facet) {
		all = append(all, schemas.Affinity{Facet: id, Value: f.At(now, t.cfg.AffinityHalfLife)})
	})
	return all
}

// eachFacet visits the affinities of the user, ordered by facet.
func (t table) eachFacet(visit func(schemas.ID, facet)) {
	rows.LoadEach(t.own, []byte{facetRow}, func(id string, f facet) { visit(schemas.ID(id), f) })
}

func (t table) facet(id schemas.ID) (f facet, existed bool) {
	if f, existed = rows.Load[facet](t.own, rows.Name(facetRow, id)); !existed {
		f.sentWeight = initialWeight
	}
	return f, existed
}

func (t table) sent() sent {
	s, _ := rows.Load[sent](t.own, []byte{sentRow})
	return s
}

func (t table) putSent(s sent) { rows.PutValue(t.own, []byte{sentRow}, &s) }
