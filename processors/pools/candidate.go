package pools

import (
	"fmt"
	"math"

	"github.com/smartfeed/smartfeed/processors/ranked"
	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/processors/score"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// deliver puts every pin of a delivery into the pool of every user of it, without reading anything, and trims the pools
// whose turn it is.
func (g *group) deliver(tx *rows.Tx, d *schemas.Delivery) error {
	if err := checkDelivery(d); err != nil {
		return err
	}
	g.leaveDeleted(tx, d)
	p := g.putters.Get().(*putter)
	defer g.putters.Put(p)
	p.begin(d.Source, g.cfg.Cap)
	for i := range d.Pins {
		pin := &d.Pins[i]
		p.pin(pin.Pin, pin.Version, pin.Score, &ranked.Body{Facets: pin.Facets, Created: pin.Created, Deleted: pin.Deleted})
		for u, user := range d.Users {
			weight := float32(1)
			if len(d.Weights) > 0 {
				weight = d.Weights[u]
			}
			if err := p.put(tx.Of(string(user)), user, weight); err != nil {
				return err
			}
		}
	}
	tx.Effect(effectOf(d.Source), len(d.Pins)*len(d.Users))
	for _, user := range p.due {
		if err := g.trim(tx, tx.Of(string(user)), user, d.Source); err != nil {
			return err
		}
	}
	return g.goOn(tx, d)
}

// goOn does what a delivery asks for once it is applied.
func (g *group) goOn(tx *rows.Tx, d *schemas.Delivery) error {
	if d.Asked != 0 && len(d.Users) > 0 {
		if err := g.answered(tx.Of(string(d.Users[0])), d.Asked); err != nil {
			return err
		}
	}
	if len(d.Then) == 0 {
		return nil
	}
	return tx.Emit(topics.FanoutLoop, d.ThenKey, d.Then)
}

// effectOf is what a delivery counts as.
func effectOf(source schemas.Source) string {
	if source == schemas.Related {
		return effectNeighbours
	}
	return effectDeliveries
}

func checkDelivery(d *schemas.Delivery) error {
	switch d.Source {
	case schemas.Following, schemas.FromInterest, schemas.Related:
	default:
		return schemas.Bad(fmt.Sprintf("delivery: source %q is not one of the pipeline's", d.Source))
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
		if s := d.Pins[i].Score; math.IsNaN(s) || math.IsInf(s, 0) || d.Pins[i].Pin == "" {
			return schemas.Bad(fmt.Sprintf("delivery: pin %q with score %v", d.Pins[i].Pin, s))
		}
	}
	return nil
}

// leaveDeleted takes deleted users out of a delivery.
func (g *group) leaveDeleted(tx *rows.Tx, d *schemas.Delivery) {
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

// putter writes candidate rows: what is the same for all users of a pin is made once.
type putter struct {
	source schemas.Source
	cap    int
	due    []schemas.UserID // whose pool is to be trimmed
	row    []byte           // of the pin, with the base score
	score  int              // where the score stands in row
	base   float64
	hash   uint64
	value  []byte
	other  []byte // row with another score
}

func (p *putter) begin(source schemas.Source, most int) {
	p.source, p.cap, p.due = source, most, p.due[:0]
	p.score = 1 + len(source) + 1
}

func (p *putter) pin(pin schemas.PinID, v schemas.Version, base float64, body *ranked.Body) {
	p.row = appendCandidate(p.row[:0], p.source, base, pin, v)
	p.value = ranked.AppendBody(p.value[:0], body)
	p.base, p.hash = base, ranked.Hash(pin)+uint64(v)
}

// put writes the pin's row for a user.
func (p *putter) put(own rows.Owner, user schemas.UserID, weight float32) error {
	row := p.row
	if weight != 1 {
		p.other = append(p.other[:0], p.row...)
		ranked.AppendScore(p.other[:p.score], score.Weighted(p.base, weight))
		row = p.other
	}
	if ranked.TrimDue(ranked.Hash(user), p.hash, p.cap) && (len(p.due) == 0 || p.due[len(p.due)-1] != user) {
		p.due = append(p.due, user)
	}
	return own.Put(row, p.value)
}

// trim drops what is over the caps of a user's pool.
func (g *group) trim(tx *rows.Tx, own rows.Owner, user schemas.UserID, source schemas.Source) error {
	v, err := viewOf(own, user, g.deleted, tx.Time(), g.cfg.Expiry)
	if err != nil {
		return err
	}
	list, err := candidateRows(own, source)
	if err != nil {
		return err
	}
	reasons, err := v.judge(source).trim(list, places(list), g.cfg.Cap)
	if err != nil {
		return err
	}
	for i, reason := range reasons {
		if reason == "" {
			continue
		}
		tx.Count(reason)
		if err := own.Delete([]byte(list[i].name)); err != nil {
			return err
		}
	}
	return nil
}

// offer puts the candidates of another system into the user's pool of its source. An offer is a version of what it
// offers: a later one replaces the facets.
func (g *group) offer(tx *rows.Tx, o *schemas.Offer) error {
	if err := o.CheckKey(tx.Key()); err != nil {
		return err
	}
	if err := o.Validate(schemas.MicrosOf(tx.Time())); err != nil {
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
	p.begin(o.Source, g.cfg.Cap)
	for i := range o.Candidates {
		c := &o.Candidates[i]
		p.pin(c.Pin, schemas.Version(o.Time), c.Score, &ranked.Body{Facets: c.Facets, Created: c.Created})
		if err := p.put(own, o.User, 1); err != nil {
			return err
		}
	}
	if len(p.due) == 0 {
		return nil
	}
	return g.trim(tx, own, o.User, o.Source)
}

// admits says whether a user may have candidates of a source: one of the pipeline's, one that has some already, or one
// more as long as there are not too many.
func (g *group) admits(own rows.Owner, source schemas.Source) (bool, error) {
	if source == schemas.Related {
		return true, nil
	}
	list, err := sources(own)
	if err != nil {
		return false, err
	}
	for _, s := range list {
		if s == source {
			return true, nil
		}
	}
	return len(list) < g.cfg.Sources, nil
}
