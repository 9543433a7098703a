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
)

// Generations. A group that is built anew reads the inputs of the active one, and is silent. A silent generation applies every
// record; what its callbacks emit is dropped. In each partition of each input the mark of a cut-over ends that; for the
// generation before it, the mark is the last record before it falls silent. Both keep that in a row, in the transaction that
// applies the mark. Timers are silent while the group's first input is.

// activity is whether a partition is here and emits: then it is active. A partition emits when its first input is not silent, as
// its timers do.
type activity struct {
	mu          sync.Mutex
	here, emits bool
}

// setHere returns the change in the number of active partitions: 1, 0 or -1.
func (a *activity) setHere(here bool) float64 { return a.set(&a.here, here) }

// setEmits returns the same change when the partition begins or ends to emit.
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

// emitsName is the reserved row that says whether what the records of an input emit is sent.
func emitsName(topic string) []byte { return append([]byte{emitsKind}, topic...) }

// applyCutOver applies the mark of a cut-over. It reports false for an ordinary record. A mark that is not of this group's
// cut-over in progress is dropped and counted: it is another group's, an earlier one's, or forged, and has no content.
func (p *part) applyCutOver(ctx goka.Context, input int, value []byte) (bool, error) {
	if ctx.Key() != "" || value != nil {
		return false, nil
	}
	mark, ok := topics.ParseCutOver(ctx.Headers()[topics.CutOverHeader])
	if !ok || input == len(p.w.r.topo.inputs) {
		return false, nil
	}
	believed, err := p.w.believes(p.ctx, mark)
	if err != nil {
		return false, err
	}
	if believed {
		p.setSilent(input, mark.Number > p.w.r.topo.generation)
		return true, nil
	}
	p.state.pending.counts = append(p.state.pending.counts, counted{name: reasonCutOver, n: 1, dropped: true})
	return true, nil
}

// reasonCutOver counts marks of cut-overs that are not this group's.
const reasonCutOver = "cut_over_mark"

// believes reports whether a mark is of the group's cut-over in progress. What is known of generations may be from before the
// mark was written, so a mark is refused only by what is read now.
func (w *work) believes(ctx context.Context, mark topics.CutOverMark) (bool, error) {
	topo := w.r.topo
	if mark.Group != topo.base || mark.Number < topo.generation {
		return false, nil
	}
	if w.generations.Of(topo.base).Believes(mark) {
		return true, nil
	}
	ctx, cancel := context.WithTimeout(ctx, adminTimeout)
	defer cancel()
	if err := w.generations.Refresh(ctx); err != nil {
		return false, err
	}
	return w.generations.Of(topo.base).Believes(mark), nil
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
		silent[i] = topo.generation > topics.FirstGeneration
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

// silent says whether what the records of an input emit is dropped.
func (p *part) silent(input int) bool {
	if input == len(p.w.r.topo.inputs) {
		input = 0 // timers
	}
	return input < len(p.silentInputs) && p.silentInputs[input]
}

// Keep says of a row whether a new generation takes it over.
type Keep func(owner, row, value []byte) bool

// Copied says what a new generation began with.
type Copied struct {
	Rows    int64           `json:"rows"`    // records taken over from the changelog
	Offsets map[int32]int64 `json:"offsets"` // by partition: the end of the part of the changelog that was read
}

// Copy fills the changelog of a new generation of a group with the rows of the active one that keep takes, as they are at the end
// of what is committed, and with how far each input is applied there. keep is asked of each record of the changelog; a nil
// value deletes a row. The new generation goes on from there. Its topics must be there and empty, and none of its members.
func Copy(ctx context.Context, k topics.Kafka, base string, from, to int, keep Keep, add func(rows int)) (Copied, error) {
	c := copier{
		kafka: k, from: topics.GenerationName(base, from), to: topics.GenerationName(base, to), keep: keep, add: add,
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
	// Before the rows are read: the new generation is to begin at or before what they say is applied.
	committed, err := admin.FetchOffsets(ctx, c.from)
	if err != nil {
		return fmt.Errorf("fetch offsets of %s: %w", c.from, err)
	}
	table := topics.TableOf(c.from)
	starts, err := c.log.Starts(ctx, table)
	if err != nil {
		return err
	}
	ends, err := admin.ListCommittedOffsets(ctx, table) // no transaction stands half below them
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

// partition copies one partition, in order: of a row's versions the last is the last again.
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

// carries says whether a row of the changelog is one of the new generation's.
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

// begin sets the new group's offsets of its inputs to those of the former one.
func (c *copier) begin(ctx context.Context, admin *kadm.Client, committed kadm.OffsetResponses) error {
	offsets := committed.Offsets()
	delete(offsets, topics.TicksOf(c.from))
	for _, partitions := range offsets {
		for p, at := range partitions {
			at.Metadata = "" // it is of the other changelog
			partitions[p] = at
		}
	}
	answers, err := admin.CommitOffsets(ctx, c.to, offsets)
	if err = errors.Join(err, answers.Error()); err != nil {
		return fmt.Errorf("commit offsets of %s: %w", c.to, err)
	}
	return nil
}
