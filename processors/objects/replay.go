package objects

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/schemas"
)

// effectReplayed counts pins whose quality was recomputed.
const effectReplayed = "replayed"

// replay recomputes the effect of an event of a pin by the current rules.
func (g *group) replay(tx *rows.Tx, r *schemas.Replay) error {
	e, err := g.replayed(tx.Key(), r)
	if err != nil {
		return err
	}
	t := g.table(tx, tx.Own())
	p := t.pin(r.Pin)
	if g.deleted.Has(p.origin.author) {
		tx.Count(dropDeletedUser)
		return nil
	}
	if p.setsOrigin(e) {
		// The event that arrived first, while it is kept: a repeated id with another body has no effect.
		e = cmp.Or(rows.Record(t.own, versionName(p.origin.moment), t.streams.Pins), e)
		tx.Effect(effectReplayed, 1)
	}
	t.notifyAgain(p, p.replay(e, g.cfg), r.Source)
	return nil
}

// replayed returns the event of a replay.
func (g *group) replayed(key string, r *schemas.Replay) (*schemas.PinEvent, error) {
	if key != string(r.Pin) {
		return nil, schemas.Bad(fmt.Sprintf("replay: key %.64q: want the pin %.64q", key, r.Pin))
	}
	if err := r.Source.CheckRebuildable(); err != nil {
		return nil, err
	}
	e, err := g.streams.Pins.Decode(r.Event)
	if err == nil && e.Key() != key {
		err = schemas.Bad(fmt.Sprintf("replay: event key %.64q: want the pin %.64q", e.Key(), key))
	}
	return e, err
}

// setsOrigin reports whether an event sets the author, creation and quality of a pin that is not deleted.
func (p *pin) setsOrigin(e *schemas.PinEvent) bool {
	return !p.deleted() && p.created() && e.Verb == schemas.Create && p.origin.moment == moment{e.Time, e.ID}
}

// replay recomputes the quality of the pin if e set it, and returns the followees to notify. A deleted pin does not keep
// its followees, so the followees in the event are notified.
func (p *pin) replay(e *schemas.PinEvent, cfg Config) change {
	switch {
	case p.deleted() && e.Verb != schemas.Delete:
		f := e.Facets()
		return change{notify: slices.Collect(f.Followees)}
	case !p.setsOrigin(e):
		return change{}
	}
	c := change{notify: p.notified}
	if q := quality(cfg.QualityRules, e); q != p.origin.quality {
		p.origin.quality, c.version = q, true
		p.nextVersion(e.Time)
	}
	return c
}

// notifyAgain notifies the followees of a source, "" for all, of the pin's state. It also writes a new version and sends it
// to pin-cards.
func (t table) notifyAgain(p *pin, c change, source schemas.Source) {
	for _, f := range c.notify {
		if source == "" || f.Source() == source {
			rec := schemas.Publication{Followee: f, PinVersion: p.version(), Replayed: true}
			rows.Send(t.tx, t.streams.Publications, string(f), &rec)
		}
	}
	if !c.version {
		return
	}
	rows.PutValue(t.own, []byte{pinRow}, p)
	card := p.card()
	rows.Send(t.tx, t.streams.PinCards, string(p.id), &card)
}
