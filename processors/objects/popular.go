package objects

import (
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

// slots are the slots of popular-pins of a partition, in memory: most pins take none, which then costs no read. The index is the
// number − 1.
type slots []slot

// slot is a slot with its pin, "" if the slot is free.
type slot struct {
	pin   schemas.PinID
	sum   decay.Amount
	score decay.Sum // of sum; not in the row
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
	s := slot{pin: p.id, sum: e.sum, score: score(e.sum, t.cfg.Popular.HalfLife)}
	t.slots()[e.slot-1] = s
	rows.PutValue(t.tx.Common(), slotName(e.slot), &s)
	t.sendPopular(p, e)
}

func (t table) sendPopular(p *pin, e *engagement) {
	rows.SendTo(t.tx, t.streams.PopularPins, t.tx.Partition(), t.slotKey(e.slot), &schemas.PopularPin{
		Pin: p.id, Facets: p.facets(), Created: p.origin.time, Engagement: e.sent.Value, Time: e.sent.Time,
	})
}

// ownsSlot reports whether the pin still has the slot of its engagement.
func (t table) ownsSlot(p *pin, e *engagement) bool {
	all := t.slots()
	return e.slot > 0 && e.slot <= int64(len(all)) && all[e.slot-1].pin == p.id
}

// takeSlot returns the number of the slot that an engagement takes: a free one, or the weakest if it is weaker. It returns 0 for none.
func (t table) takeSlot(sum decay.Amount) int64 {
	weakest, number := score(sum, t.cfg.Popular.HalfLife), 0
	for i, s := range t.slots() {
		if s.pin == "" {
			return int64(i + 1)
		}
		if s.score < weakest {
			weakest, number = s.score, i+1
		}
	}
	return int64(number)
}

// slots returns the slots of the partition. It frees those above the maximum, which may have been lowered.
func (t table) slots() slots {
	held := t.tx.Memory().(*slots)
	if *held != nil {
		return *held
	}
	*held = make(slots, t.cfg.Popular.MaxPins)
	var over []int64
	rows.LoadEach(t.tx.Common(), []byte{slotRow}, func(name string, s slot) {
		if number := binary.BigEndian.Uint32([]byte(name)); int(number) <= len(*held) {
			s.score = score(s.sum, t.cfg.Popular.HalfLife)
			(*held)[number-1] = s
		} else {
			over = append(over, int64(number))
		}
	})
	for _, number := range over {
		t.freeSlot(number)
	}
	t.tx.Common().Delete([]byte{'w'}) // the weakest slot, of earlier versions
	return *held
}

func (t table) freeSlot(number int64) {
	if all := t.slots(); number <= int64(len(all)) {
		all[number-1] = slot{}
	}
	t.tx.Common().Delete(slotName(number))
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
