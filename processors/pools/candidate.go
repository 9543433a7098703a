package pools

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/smartfeed/smartfeed/processors/pools/layout"
	"github.com/smartfeed/smartfeed/processors/ranked"
	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/processors/score"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// deliver puts every pin of a delivery into the pool of every user in it, without a read, and trims the pools that are due.
func (g *group) deliver(tx *rows.Tx, d *schemas.Delivery) error {
	if err := checkDelivery(d); err != nil {
		return err
	}
	g.removeDeleted(tx, d)
	p := g.putters.Get().(*putter)
	defer g.putters.Put(p)
	p.begin(thresholdsOf(tx), d.Source, g.cfg.MaxCandidates)
	defer p.postpone()
	for i := range d.Pins {
		p.delivered(&d.Pins[i])
		g.putForUsers(tx, d, p)
	}
	tx.Effect(effectOf(d.Source), len(d.Pins)*len(d.Users))
	g.sweepDelivered(tx, d)
	g.completeDelivery(tx, d)
	return g.trimPools(tx, p)
}

// putForUsers puts the pin of p into the pools of the users of a delivery.
func (g *group) putForUsers(tx *rows.Tx, d *schemas.Delivery, p *putter) {
	for u, user := range d.Users {
		weight := float32(1)
		if len(d.Weights) > 0 {
			weight = d.Weights[u]
		}
		own, row := tx.Of(string(user)), p.rowFor(weight)
		l := p.thresholds.of(user, d.Source)
		if !p.accepts(row, l, tx.Time(), g.cfg.MaxPinAge) {
			tx.Count(dropCap)
			continue
		}
		p.put(own, user, row, l)
	}
}

// completeDelivery completes an applied delivery: it counts the answer to a backfill request and sends the continuation
// of the walk to fanout-loop.
func (g *group) completeDelivery(tx *rows.Tx, d *schemas.Delivery) {
	if d.BackfillID != 0 && len(d.Users) > 0 {
		g.countBackfill(tx.Of(string(d.Users[0])), d.BackfillID)
	}
	if len(d.Continuation) > 0 {
		tx.Emit(topics.FanoutLoop, tx.Key(), d.Continuation)
	}
}

// effectOf returns the effect that a delivery of the source counts as.
func effectOf(source schemas.Source) string {
	if source == schemas.Related {
		return effectNeighbors
	}
	return effectDeliveries
}

func checkDelivery(d *schemas.Delivery) error {
	switch d.Source {
	case schemas.Following, schemas.FromInterest, schemas.Related:
	default:
		return schemas.Bad(fmt.Sprintf("delivery: source %q: want following, interest or related", d.Source))
	}
	if n := len(d.Weights); n > 0 && n != len(d.Users) {
		return schemas.Bad(fmt.Sprintf("delivery: %d weights for %d users", n, len(d.Users)))
	}
	for _, w := range d.Weights {
		if !(w > 0) || math.IsInf(float64(w), 0) {
			return schemas.Bad(fmt.Sprintf("delivery: weight %v: want a positive number", w))
		}
	}
	for i := range d.Pins {
		if s := float64(d.Pins[i].BaseScore); math.IsNaN(s) || math.IsInf(s, 0) || d.Pins[i].Pin == "" {
			return schemas.Bad(fmt.Sprintf("delivery: pin %q: score %v: want a pin id and a finite score", d.Pins[i].Pin, s))
		}
	}
	return nil
}

// removeDeleted removes deleted users from a delivery and counts them.
func (g *group) removeDeleted(tx *rows.Tx, d *schemas.Delivery) {
	kept := 0
	for i, user := range d.Users {
		if g.deleted.Has(user) {
			tx.Count(dropDeletedUser)
			continue
		}
		d.Users[kept] = user
		if len(d.Weights) > 0 {
			d.Weights[kept] = d.Weights[i]
		}
		kept++
	}
	d.Users = d.Users[:kept]
	d.Weights = d.Weights[:min(kept, len(d.Weights))]
}

// putter writes candidate rows. It encodes the content that all users share once per pin.
type putter struct {
	source    schemas.Source
	cap       int
	due       []schemas.UserID // users whose pool is to be trimmed
	done      int              // number of users in due whose pool has been trimmed
	row       []byte           // name of the pin's row, with the base score
	score     int              // offset of the score in row
	base      schemas.BaseScore
	hash      uint64
	value     []byte
	other     []byte           // row with another score
	candidate layout.Candidate // the pin as of its version
	first     bool             // that version is the pin's first

	thresholds *thresholds
	sourceHash uint64
}

func (p *putter) begin(f *thresholds, source schemas.Source, limit int) {
	p.thresholds, p.source, p.cap, p.due, p.done = f, source, limit, p.due[:0], 0
	p.score, p.sourceHash = 1+len(source)+1, ranked.Hash(source)
}

// pin prepares the rows of a pin for edges of weight 1.
func (p *putter) pin(first bool, pin schemas.PinID, v schemas.Version, at schemas.PoolScore, body *schemas.PinContent) {
	p.first = first
	p.row = layout.AppendCandidate(p.row[:0], layout.VersionKind(first), p.source, at, pin, v)
	p.value = ranked.AppendBody(p.value[:0], body)
	p.hash = ranked.Hash(pin) + uint64(v)
}

// delivered prepares the rows of a pin of a delivery; see pin.
func (p *putter) delivered(d *schemas.DeliveredPin) {
	p.base = d.BaseScore
	p.pin(isFirst(d), d.Pin, d.Version, score.Weighted(d.BaseScore, 1), &d.PinContent)
	p.candidate = layout.Candidate{Pin: d.Pin, Content: layout.NewContent(d.PinContent)}
}

// rowFor returns the name of the pin's row for an edge with the given weight. It is valid until the next call.
func (p *putter) rowFor(weight float32) []byte {
	if weight == 1 {
		return p.row
	}
	p.other = append(p.other[:0], p.row...)
	ranked.AppendScore(p.other[:p.score], score.Weighted(p.base, weight))
	return p.other
}

// accepts reports whether a row of the pin is put into a pool. l is the level of the pool, or nil if it is unknown.
func (p *putter) accepts(row []byte, l *level, now time.Time, expiry time.Duration) bool {
	if l == nil || l.threshold == nil {
		return true
	}
	if !p.first {
		p.thresholds.invalidate(l)
		return true
	}
	return !l.refuses(row, &p.candidate, now, expiry)
}

// put writes a row of the pin for a user. l is the level of the user's pool, or nil if it is unknown.
func (p *putter) put(own rows.Owner, user schemas.UserID, row []byte, l *level) {
	if p.trimDue(user, l) && (len(p.due) == 0 || p.due[len(p.due)-1] != user) {
		p.due = append(p.due, user)
	}
	own.Put(row, p.value)
}

// trimDue reports whether a pool must be trimmed once it has the row. The random condition makes each pool due eventually:
// without it, the other pools of a shared counter could always be due instead.
func (p *putter) trimDue(user schemas.UserID, l *level) bool {
	if l == nil {
		h := ranked.Hash(user)
		return p.thresholds.count(slotOf(h, p.sourceHash), p.cap) || ranked.TrimDue(h, p.hash, 4*p.cap)
	}
	l.room--
	return l.room <= 0
}

// postpone makes the pools that were due but not trimmed due with their next row.
func (p *putter) postpone() {
	for _, user := range p.due[p.done:] {
		p.thresholds.postpone(user, p.source)
	}
}

// offer puts the candidates of an external system into the user's pool of its source. The time of the offer is the
// version of its candidates: a later offer replaces the facets.
func (g *group) offer(tx *rows.Tx, o *schemas.Offer) error {
	if err := rows.Validate(tx, o, nil); err != nil {
		return err
	}
	if g.deleted.Has(o.User) {
		tx.Count(dropDeletedUser)
		return nil
	}
	own := tx.Own()
	if ok, err := g.admits(own, o.Source); err != nil || !ok {
		if err == nil {
			tx.Count(dropSource)
		}
		return err
	}
	p := g.putters.Get().(*putter)
	defer g.putters.Put(p)
	p.begin(thresholdsOf(tx), o.Source, g.cfg.MaxCandidates)
	defer p.postpone()
	for i := range o.Candidates {
		c := &o.Candidates[i]
		p.pin(false, c.Pin, schemas.Version(o.Time), c.PoolScore, &schemas.PinContent{Facets: c.Facets, Created: c.Created})
		p.put(own, o.User, p.row, p.thresholds.of(o.User, o.Source))
		if g.deleted.Has(c.Author) {
			sweepLater(tx, o.User)
		}
	}
	return g.trimPools(tx, p)
}

// admits reports whether a user may have candidates of a source: related, a source that the user already has, or a new
// source while the user has fewer than Config.MaxSources.
func (g *group) admits(own rows.Owner, source schemas.Source) (bool, error) {
	if source == schemas.Related {
		return true, nil
	}
	list, err := layout.Sources(own)
	return slices.Contains(list, source) || len(list) < g.cfg.MaxSources, err
}
