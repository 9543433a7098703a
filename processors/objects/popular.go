package objects

import (
	"cmp"
	"encoding/binary"
	"slices"
	"strconv"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/smartfeed/smartfeed/internal/packed"
	"github.com/smartfeed/smartfeed/processors/decay"
	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/schemas"
)

// Popular defines the pins of the topic popular-pins. The engagement with a pin is the sum of the weights of actions on it, each
// halved with every half-life.
type Popular struct {
	MaxPins   int           `yaml:"max_pins" default:"100" range:"0..1000" help:"maximum number of popular pins of each partition; 0: no pin becomes popular"`
	MaxAge    time.Duration `yaml:"max_age" default:"168h" range:"1m..8760h" help:"age at which a pin is no longer popular"`
	HalfLife  time.Duration `yaml:"half_life" default:"12h" range:"1m..720h" help:"half-life of the weight of an action"`
	MinWeight float64       `yaml:"min_weight" default:"1" range:"0.001..1000" help:"minimum weight of the verbs whose actions count"`
	MinActors int           `yaml:"min_actors" default:"3" range:"1..16" help:"number of different users whose actions make a pin popular"`
}

// recentActors is the number of actors of a pin that are remembered. An action of one of them does not count again. Therefore a
// user who repeats actions raises the engagement at most once in this many actors.
const recentActors = 16

// engagement is the engagement with a pin.
type engagement struct {
	sum    decay.Amount
	sent   decay.Amount // that was last sent to popular-pins
	slot   int64        // in popular-pins when it was last sent, from 1; another pin may have it by now; 0: never sent
	actors []uint32     // hashes of the last counted actors, the newest last
}

// score returns the logarithm of a sum as of 1970, by which sums with the same half-life are compared.
func score(sum decay.Amount, halfLife time.Duration) decay.Sum {
	return decay.SumOf(sum.Value, sum.Time, decay.NewScale(halfLife))
}

// Pack implements packed.Row.
func (e *engagement) Pack(p *packed.Packer) {
	p.Version(1)
	e.sum.Pack(p)
	e.sent.Pack(p)
	packed.Int(p, &e.slot)
	packed.Items(p, &e.actors, packed.Int[uint32])
}

// add adds an action, and reports whether it counts.
func (e *engagement) add(pin schemas.PinID, actor schemas.UserID, weight float64, at schemas.Micros, halfLife time.Duration) bool {
	h := uint32(xxhash.Sum64String(string(pin) + "\x00" + string(actor))) // differs by pin, so it does not identify a user
	if slices.Contains(e.actors, h) {
		return false
	}
	e.actors = append(e.actors, h)
	e.actors = e.actors[max(0, len(e.actors)-recentActors):]
	e.sum = e.sum.Plus(weight, at, halfLife)
	return true
}

// due reports whether the engagement has grown by an eighth since it was last sent.
func (e *engagement) due(halfLife time.Duration) bool {
	return e.slot == 0 || e.sum.Value >= 9.0/8*e.sent.At(e.sum.Time, halfLife)
}

// slot is a slot of popular-pins with its pin.
type slot struct {
	number int64 // from 1; in the name of the row
	pin    schemas.PinID
	sum    decay.Amount
}

// Pack implements packed.Row.
func (s *slot) Pack(p *packed.Packer) {
	p.Version(1)
	packed.String(p, &s.pin)
	s.sum.Pack(p)
}

func slotName(number int64) []byte {
	return binary.BigEndian.AppendUint32([]byte{slotRow}, uint32(number))
}

// slotKey returns the key of a slot's records: the partition and the slot.
func (t table) slotKey(number int64) string {
	return strconv.Itoa(int(t.tx.Partition())) + " " + strconv.FormatInt(number, 10)
}

// engage adds an action to the engagement with its pin. A pin with enough actors takes a slot of the partition if one is free, or
// if its engagement exceeds that of the weakest slot.
func (t table) engage(p *pin, e *schemas.ActionEvent) {
	cfg, weight := t.cfg.Popular, t.verbs(e.Verb)[e.Verb]
	until := p.origin.time.Time().Add(cfg.MaxAge)
	if cfg.MaxPins == 0 || weight < cfg.MinWeight || !p.created() || !until.After(t.tx.Time()) {
		return
	}
	all, found := rows.Load[engagement](t.own, []byte{engagementRow})
	if !all.add(p.id, e.Actor, weight, e.Time, cfg.HalfLife) {
		return
	}
	if !found {
		t.own.SetTimer(until, []byte{engagementRow})
	}
	if len(all.actors) >= cfg.MinActors && all.due(cfg.HalfLife) {
		t.offer(p, &all)
	}
	rows.PutValue(t.own, []byte{engagementRow}, &all)
}

// offer sends a pin to its slot, or to the one that it takes.
func (t table) offer(p *pin, e *engagement) {
	if !t.ownsSlot(p, e) {
		if e.slot = t.takeSlot(e.sum); e.slot == 0 {
			return
		}
	}
	e.sent = e.sum
	rows.PutValue(t.tx.Common(), slotName(e.slot), &slot{pin: p.id, sum: e.sum})
	t.sendPopular(p, e)
}

func (t table) sendPopular(p *pin, e *engagement) {
	rows.SendTo(t.tx, t.streams.PopularPins, t.tx.Partition(), t.slotKey(e.slot), &schemas.PopularPin{
		Pin: p.id, Facets: p.facets(), Created: p.origin.time, Engagement: e.sent.Value, Time: e.sent.Time,
	})
}

// ownsSlot reports whether the pin still has the slot of its engagement.
func (t table) ownsSlot(p *pin, e *engagement) bool {
	if e.slot == 0 {
		return false
	}
	s, found := rows.Load[slot](t.tx.Common(), slotName(e.slot))
	return found && s.pin == p.id
}

// takeSlot returns the slot that an engagement takes, or 0 if all slots have more. The weakest sum of full slots is in a separate
// row, so that most engagements need no scan of the slots. It may be lower than the sum of the weakest slot, which can have
// grown.
func (t table) takeSlot(sum decay.Amount) int64 {
	common, halfLife := t.tx.Common(), t.cfg.Popular.HalfLife
	known, full := rows.Load[slot](common, []byte{weakestRow})
	if full && score(sum, halfLife) <= score(known.sum, halfLife) {
		return 0
	}
	taken, free := t.slots()
	if free <= int64(t.cfg.Popular.MaxPins) {
		return free
	}
	weaker := func(a, b slot) int { return cmp.Compare(score(a.sum, halfLife), score(b.sum, halfLife)) }
	slices.SortFunc(taken, weaker)
	number := int64(0)
	if score(sum, halfLife) > score(taken[0].sum, halfLife) {
		number, taken[0].sum = taken[0].number, sum
	}
	weakest := slices.MinFunc(taken, weaker) // after the slot is taken
	rows.PutValue(common, []byte{weakestRow}, &weakest)
	return number
}

// slots returns the slots in use, by number, and the lowest number of a free one. It frees those above the maximum, which may have been
// lowered.
func (t table) slots() (taken []slot, free int64) {
	var over []int64
	free = 1
	rows.LoadEach(t.tx.Common(), []byte{slotRow}, func(number string, s slot) {
		s.number = int64(binary.BigEndian.Uint32([]byte(number)))
		if s.number > int64(t.cfg.Popular.MaxPins) {
			over = append(over, s.number)
			return
		}
		if taken = append(taken, s); s.number == free {
			free++
		}
	})
	for _, number := range over {
		t.freeSlot(number)
	}
	return taken, free
}

func (t table) freeSlot(number int64) {
	t.tx.Common().Delete(slotName(number))
	t.tx.Common().Delete([]byte{weakestRow})
	t.tx.EmitTo(t.streams.PopularPins.Name, t.tx.Partition(), t.slotKey(number), nil)
}

// refreshPopular sends the new version of a popular pin. It removes a pin that was deleted or has reached Config.Popular.MaxAge, for
// which it sets the timer again: the setting or the time of the creation may have changed.
func (t table) refreshPopular(p *pin) {
	e, found := rows.Load[engagement](t.own, []byte{engagementRow})
	until := p.origin.time.Time().Add(t.cfg.Popular.MaxAge)
	switch {
	case !found:
	case p.deleted() || !until.After(t.tx.Time()):
		if t.ownsSlot(p, &e) {
			t.freeSlot(e.slot)
		}
		t.own.Delete([]byte{engagementRow})
	default:
		t.own.SetTimer(until, []byte{engagementRow})
		if t.ownsSlot(p, &e) {
			t.sendPopular(p, &e)
		}
	}
}
