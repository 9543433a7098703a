package generations

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/time/rate"

	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/topics"
	"github.com/smartfeed/smartfeed/topics/generation"
)

// Copied describes the rows that were copied to a new generation.
type Copied struct {
	Rows    int64           `json:"rows"`    // records copied from the changelog
	Offsets map[int32]int64 `json:"offsets"` // by partition: the end offset up to which the changelog was read
}

// copyBatch is the number of rows that are published together.
const copyBatch = 1000

// copier copies rows to another generation.
type copier struct {
	from, to string // names of the generations
	keep     rows.Keep
	log      *topics.Log
	out      *publisher
	task     topics.Progress
}

// Copy fills the changelog of a new generation of the pools with rows of the active one, as of the end of its committed records.
// It copies the rows that keep selects, the applied offsets of the inputs, and the timers. The new generation resumes at these
// offsets. Its topics must exist and be empty, and it must have no members.
func Copy(ctx context.Context, s topics.Setup, from, to int, keep rows.Keep) (*Copied, error) {
	client, err := s.Kafka.Client(kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.RecordDeliveryTimeout(0))
	if err != nil {
		return nil, err
	}
	defer client.Close()
	log, err := topics.NewLog(s.Kafka)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	c := copier{
		from: generation.Name(topics.Pools, from), to: generation.Name(topics.Pools, to), keep: keep, log: log,
		out: newPublisher(client, rate.Inf, copyBatch), task: s.Start("copy rows", -1),
	}
	defer c.task.Done()
	offsets, err := c.run(ctx, kadm.NewClient(client))
	if err != nil {
		return nil, fmt.Errorf("copy rows of %s to %s: %w", c.from, c.to, err)
	}
	return &Copied{c.out.published, offsets}, nil
}

// run copies the rows and the offsets. It returns the end offset of each partition.
func (c *copier) run(ctx context.Context, admin *kadm.Client) (map[int32]int64, error) {
	table := topics.TableOf(c.from)
	// Fetch the offsets before the rows: the new generation must start at or before the applied offsets in the rows.
	committed, err := admin.FetchOffsets(ctx, c.from)
	if err != nil {
		return nil, fmt.Errorf("fetch offsets of %s: %w", c.from, err)
	}
	starts, err := c.log.Starts(ctx, table)
	if err != nil {
		return nil, err
	}
	ends, err := admin.ListCommittedOffsets(ctx, table) // all transactions below these offsets are complete
	if err = errors.Join(err, ends.Error()); err != nil {
		return nil, fmt.Errorf("list ends of %s: %w", table, err)
	}
	offsets := map[int32]int64{}
	for p, start := range starts[table] {
		end, ok := ends.Lookup(table, p)
		if !ok {
			return nil, fmt.Errorf("%s/%d has no end offset", table, p)
		}
		offsets[p] = end.Offset
		if err := c.partition(ctx, table, p, start, end.Offset); err != nil {
			return nil, err
		}
	}
	return offsets, c.commit(ctx, admin, committed)
}

// partition copies one partition in order. Therefore the last version of a row stays the last.
func (c *copier) partition(ctx context.Context, table string, p int32, start, end int64) error {
	err := c.log.ReadTo(ctx, table, p, start, end, func(r *kgo.Record) error {
		if !rows.Carries(r.Key, r.Value, topics.TicksOf(c.from), c.keep) {
			return nil
		}
		c.task.Add(1)
		return c.out.add(ctx, &kgo.Record{Topic: topics.TableOf(c.to), Partition: p, Key: r.Key, Value: r.Value})
	})
	if err != nil {
		return err
	}
	return c.out.flush(ctx)
}

// commit commits the active generation's input offsets for the new one.
func (c *copier) commit(ctx context.Context, admin *kadm.Client, committed kadm.OffsetResponses) error {
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
