package rows

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/lovoo/goka"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/smartfeed/smartfeed/topics"
	"github.com/smartfeed/smartfeed/topics/generation"
)

// A rebuilt group runs as a new generation next to the active one, reads the same inputs, and is silent. A silent generation
// applies every record, but drops everything that its callbacks emit. A cut-over writes a mark to each partition of each
// input. The mark makes the new generation emit, and the previous one silent, from the next record on. Both store this in a
// row, in the transaction that applies the mark. Timers are silent while the group's first input is.

// activity tracks whether a partition is owned by this process and emits. It is active if both hold. A partition emits when
// its first input is not silent, and so do its timers.
type activity struct {
	mu          sync.Mutex
	here, emits bool
}

// setHere sets whether the partition is owned. It returns the change in the number of active partitions: 1, 0 or -1.
func (a *activity) setHere(here bool) float64 { return a.set(&a.here, here) }

// setEmits sets whether the partition emits, and returns the same change.
func (a *activity) setEmits(emits bool) float64 { return a.set(&a.emits, emits) }

func (a *activity) set(what *bool, is bool) float64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	before := a.here && a.emits
	*what = is
	switch after := a.here && a.emits; {
	case after && !before:
		return 1
	case before && !after:
		return -1
	}
	return 0
}

func (a *activity) emitting() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.emits
}

// emitsName returns the name of the reserved row that says whether records emitted for an input are sent.
func emitsName(topic string) []byte { return append([]byte{emitsKind}, topic...) }

// applyCutOver applies a cut-over mark. It returns false for an ordinary record. A mark that does not belong to this group's
// cut-over in progress is dropped and counted. It is from another group, from an earlier cut-over, or forged, and has no
// content.
func (p *part) applyCutOver(ctx goka.Context, input int, value []byte) (bool, error) {
	if ctx.Key() != "" || value != nil {
		return false, nil
	}
	mark, ok := generation.ParseMark(ctx.Headers()[generation.MarkHeader])
	if !ok || input == len(p.w.r.topo.inputs) {
		return false, nil
	}
	confirmed, err := p.w.confirms(p.ctx, mark)
	if err != nil {
		return false, err
	}
	if confirmed {
		p.setSilent(input, mark.Number > p.w.r.topo.generation)
		return true, nil
	}
	p.state.pending.counts = append(p.state.pending.counts, counted{name: reasonCutOver, n: 1, dropped: true})
	return true, nil
}

// reasonCutOver counts cut-over marks that are not valid for this group.
const reasonCutOver = "cut_over_mark"

// confirms reports whether a mark belongs to the cut-over in progress of the group.
func (w *work) confirms(ctx context.Context, mark generation.Mark) (bool, error) {
	if mark.Group != w.r.topo.base || mark.Number < w.r.topo.generation {
		return false, nil
	}
	ctx, cancel := context.WithTimeout(ctx, adminTimeout)
	defer cancel()
	return w.generations.Confirms(ctx, mark)
}

func (p *part) setSilent(input int, silent bool) {
	p.silentInputs[input] = silent
	p.w.r.meter.owned.Add(p.activity.setEmits(!p.silent(0)))
	value := []byte{1}
	if silent {
		value[0] = 0
	}
	p.state.putReserved(emitsName(p.w.r.topo.inputs[input].topic), value, false)
}

// loadSilent reads which inputs are silent.
func (p *part) loadSilent() error {
	topo := p.w.r.topo
	silent := make([]bool, len(topo.inputs))
	for i, in := range topo.inputs {
		value, err := p.state.stored("", emitsName(in.topic))
		if err != nil {
			return err
		}
		silent[i] = topo.generation > generation.First
		if value != nil {
			silent[i] = len(value) != 1 || value[0] == 0
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.silentInputs = silent
	p.w.r.meter.owned.Add(p.activity.setEmits(!p.silent(0)))
	return nil
}

// silent reports whether records emitted for an input are dropped.
func (p *part) silent(input int) bool {
	if input == len(p.w.r.topo.inputs) {
		input = 0 // ticks
	}
	return input < len(p.silentInputs) && p.silentInputs[input]
}

// Keep reports whether a new generation copies a row.
type Keep func(owner, row, value []byte) bool

// Copied describes what a new generation was filled with.
type Copied struct {
	Rows    int64           `json:"rows"`    // records copied from the changelog
	Offsets map[int32]int64 `json:"offsets"` // by partition: the end offset up to which the changelog was read
}

// Copy fills the changelog of a new generation with rows of the active one, as of the end of its committed records. It
// copies the rows that keep selects, the applied offsets of the inputs, and the timers. keep is called for each changelog
// record of an owner; a nil value deletes a row. The new generation resumes at these offsets. Its topics must exist and be
// empty, and it must have no members.
func Copy(ctx context.Context, k topics.Kafka, base string, from, to int, keep Keep, add func(rows int)) (Copied, error) {
	c := copier{
		kafka: k, from: generation.Name(base, from), to: generation.Name(base, to), keep: keep, add: add,
		copied: Copied{Offsets: map[int32]int64{}},
	}
	if err := c.copy(ctx); err != nil {
		return c.copied, fmt.Errorf("copy rows of %s to %s: %w", c.from, c.to, err)
	}
	return c.copied, nil
}

type copier struct {
	kafka    topics.Kafka
	from, to string
	keep     Keep
	add      func(int)
	log      *topics.Log
	client   *kgo.Client
	copied   Copied
}

func (c *copier) copy(ctx context.Context) (err error) {
	if c.log, err = topics.NewLog(c.kafka); err != nil {
		return err
	}
	defer c.log.Close()
	if c.client, err = c.kafka.Client(kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.RecordDeliveryTimeout(0)); err != nil {
		return err
	}
	defer c.client.Close()
	admin := kadm.NewClient(c.client)
	// Fetch the offsets before the rows: the new generation must start at or before the offsets that the rows say are
	// applied.
	committed, err := admin.FetchOffsets(ctx, c.from)
	if err != nil {
		return fmt.Errorf("fetch offsets of %s: %w", c.from, err)
	}
	table := topics.TableOf(c.from)
	starts, err := c.log.Starts(ctx, table)
	if err != nil {
		return err
	}
	ends, err := admin.ListCommittedOffsets(ctx, table) // no transaction is incomplete below these offsets
	if err = errors.Join(err, ends.Error()); err != nil {
		return fmt.Errorf("list ends of %s: %w", table, err)
	}
	for p, start := range starts[table] {
		end, ok := ends.Lookup(table, p)
		if !ok {
			return fmt.Errorf("%s/%d has no end", table, p)
		}
		if err := c.partition(ctx, table, p, start, end.Offset); err != nil {
			return err
		}
	}
	return c.begin(ctx, admin, committed)
}

// partition copies one partition in order, so the last version of a row stays the last.
func (c *copier) partition(ctx context.Context, table string, p int32, start, end int64) error {
	var mu sync.Mutex
	var failed error
	err := c.log.ReadTo(ctx, table, p, start, end, func(r *kgo.Record) error {
		if !c.carries(r.Key, r.Value) {
			return nil
		}
		c.copied.Rows++
		c.add(1)
		c.client.Produce(ctx, &kgo.Record{Topic: topics.TableOf(c.to), Partition: p, Key: r.Key, Value: r.Value}, func(_ *kgo.Record, err error) {
			mu.Lock()
			defer mu.Unlock()
			failed = cmp.Or(failed, err)
		})
		return nil
	})
	if err == nil {
		err = c.client.Flush(ctx)
	}
	c.copied.Offsets[p] = end
	mu.Lock()
	defer mu.Unlock()
	return errors.Join(err, failed)
}

// carries reports whether the new generation gets a record of the changelog.
func (c *copier) carries(key, value []byte) bool {
	owner, row, found := bytes.Cut(key, []byte{separator})
	if !found || len(row) == 0 {
		return false
	}
	if len(owner) > 0 {
		return c.keep(owner, row, value)
	}
	switch row[0] {
	case appliedKind:
		return string(row[1:]) != topics.TicksOf(c.from)
	case timerKind:
		return true
	}
	return false
}

// begin commits the previous generation's input offsets for the new one.
func (c *copier) begin(ctx context.Context, admin *kadm.Client, committed kadm.OffsetResponses) error {
	offsets := committed.Offsets()
	delete(offsets, topics.TicksOf(c.from))
	for _, partitions := range offsets {
		for p, at := range partitions {
			at.Metadata = "" // it refers to the other changelog
			partitions[p] = at
		}
	}
	answers, err := admin.CommitOffsets(ctx, c.to, offsets)
	if err = errors.Join(err, answers.Error()); err != nil {
		return fmt.Errorf("commit offsets of %s: %w", c.to, err)
	}
	return nil
}
