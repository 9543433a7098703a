package objects

import (
	"time"

	"github.com/smartfeed/smartfeed/internal/packed"
	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/schemas"
)

// Hot defines the pins in the topic hot-pins. Every process that builds chunks keeps them in memory, about 300 bytes
// each.
type Hot struct {
	MinEngagement int64         `yaml:"min_engagement" default:"5" range:"1..1000000" help:"sum of impressions and saves at which a pin becomes hot"`
	Expiry        time.Duration `yaml:"expiry" default:"720h" range:"1m..8760h" help:"time without an impression or save after which a pin is no longer hot"`
}

// exposure holds the impressions and saves of a pin, and the counts that were last sent.
type exposure struct {
	shown, saved         int64
	sentShown, sentSaved int64 // both 0: the pin is not in hot-pins
	last                 schemas.Micros
}

// add counts an impression or a save that arrived now.
func (h *exposure) add(what string, now schemas.Micros) {
	if what == schemas.ImpressionCount {
		h.shown++
	} else {
		h.saved++
	}
	h.last = now
}

func (h *exposure) sent() bool { return h.sentShown+h.sentSaved > 0 }

// due reports whether the counts should be sent: the first time at from, later when one has grown by an eighth.
func (h *exposure) due(from int64) bool {
	if !h.sent() {
		return h.shown+h.saved >= from
	}
	grown := func(now, before int64) bool { return (now-before)*8 >= max(before, 1) }
	return grown(h.shown, h.sentShown) || grown(h.saved, h.sentSaved)
}

// Pack implements packed.Row.
func (h *exposure) Pack(p *packed.Packer) {
	p.Version(1)
	packed.Int(p, &h.shown)
	packed.Int(p, &h.saved)
	packed.Int(p, &h.sentShown)
	packed.Int(p, &h.sentSaved)
	packed.Int(p, &h.last)
}

// exposure returns the exposure of the pin, or the zero exposure if there is none.
func (t table) exposure() *exposure {
	h, _ := rows.Load[exposure](t.own, []byte{hotRow})
	return &h
}

// countExposure counts an impression or a save of the pin, and sends the counts if they are due.
func (t table) countExposure(p *pin, what string) {
	if what != schemas.ImpressionCount && what != string(schemas.Save) {
		return // skips the read of the row: most actions are neither
	}
	h := t.exposure()
	if h.last == 0 && !p.known() {
		t.own.SetTimer(t.tx.Time().Add(t.cfg.unknownFor()), []byte{hotRow})
	}
	h.add(what, t.now())
	if h.due(t.cfg.Hot.MinEngagement) {
		t.sendHot(p, h)
	}
	rows.PutValue(t.own, []byte{hotRow}, h)
}

// sendHot sends the counts. The first time, it sets a timer that checks whether the pin has cooled down. Each pin has one
// timer, which is moved only when it fires: moving it with every impression would cost two writes each.
func (t table) sendHot(p *pin, h *exposure) {
	if !h.sent() {
		t.own.SetTimer(t.tx.Time().Add(t.cfg.Hot.Expiry), []byte{hotRow})
	}
	h.sentShown, h.sentSaved = h.shown, h.saved
	rows.Send(t.tx, t.streams.HotPins, string(p.id), &schemas.HotPin{
		Pin: p.id, Author: p.origin.author, Impressions: h.shown, Saves: h.saved,
	})
}

// expireHot removes a pin from hot-pins if it had no impression or save for Config.Hot.Expiry. For an id without a pin, it
// waits for Config.unknownFor and also deletes the exposure.
func (t table) expireHot(p *pin) {
	h := t.exposure()
	if h.last == 0 || p.known() && !h.sent() {
		return
	}
	keep := t.cfg.Hot.Expiry
	if !p.known() {
		keep = t.cfg.unknownFor()
	}
	if until := h.last.Time().Add(keep); until.After(t.tx.Time()) {
		t.own.SetTimer(until, []byte{hotRow})
		return
	}
	if h.sent() {
		t.tx.Emit(t.streams.HotPins.Name, string(p.id), nil)
	}
	if !p.known() {
		t.own.Delete([]byte{hotRow})
		return
	}
	h.sentShown, h.sentSaved = 0, 0
	rows.PutValue(t.own, []byte{hotRow}, h)
}

// removeHot removes a deleted pin from hot-pins.
func (t table) removeHot(p *pin) {
	if t.exposure().sent() {
		t.tx.Emit(t.streams.HotPins.Name, string(p.id), nil)
	}
	t.own.Delete([]byte{hotRow})
}
