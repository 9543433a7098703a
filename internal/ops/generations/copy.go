package generations

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/topics"
	"github.com/smartfeed/smartfeed/topics/generation"
)

// Copied is the result of Copy.
type Copied struct {
	Rows    int64           `json:"rows"`    // records copied from the changelog
	Offsets map[int32]int64 `json:"offsets"` // by partition: the end offset up to which the changelog was read
}

// CopyOptions configure Copy.
type CopyOptions struct {
	Group    string         // base name of the generations
	From, To int            // numbers of the active generation and of the new one
	Keep     rows.Keep      // selects rows; called for each changelog record of an owner, with a nil value for a deleted row
	Add      func(rows int) // called after each batch
}

// Copy fills the changelog of a new generation with rows of the active one, as of the end of its committed records. It
// copies the selected rows, the applied offsets of the inputs, and the timers. The new generation resumes at these offsets.
// Its topics must exist and be empty, and it must have no members.
func Copy(ctx context.Context, k topics.Kafka, o CopyOptions) (Copied, error) {
	c := copier{
		CopyOptions: o, kafka: k, from: generation.Name(o.Group, o.From), to: generation.Name(o.Group, o.To),
		copied: Copied{Offsets: map[int32]int64{}},
	}
	if err := c.copy(ctx); err != nil {
		return c.copied, fmt.Errorf("copy rows of %s to %s: %w", c.from, c.to, err)
	}
	return c.copied, nil
}

type copier struct {
	CopyOptions
	kafka    topics.Kafka
	from, to string // names of the generations
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
	// Fetch the offsets before the rows: the new generation must start at or before the applied offsets in the rows.
	committed, err := admin.FetchOffsets(ctx, c.from)
	if err != nil {
		return fmt.Errorf("fetch offsets of %s: %w", c.from, err)
	}
	table := topics.TableOf(c.from)
	starts, err := c.log.Starts(ctx, table)
	if err != nil {
		return err
	}
	ends, err := admin.ListCommittedOffsets(ctx, table) // all transactions below these offsets are complete
	if err = errors.Join(err, ends.Error()); err != nil {
		return fmt.Errorf("list ends of %s: %w", table, err)
	}
	for p, start := range starts[table] {
		end, ok := ends.Lookup(table, p)
		if !ok {
			return fmt.Errorf("%s/%d has no end offset", table, p)
		}
		if err := c.partition(ctx, table, p, start, end.Offset); err != nil {
			return err
		}
	}
	return c.commit(ctx, admin, committed)
}

// copyBatch is the number of records that are published together.
const copyBatch = 1000

// partition copies one partition in order. Therefore the last version of a row stays the last.
func (c *copier) partition(ctx context.Context, table string, p int32, start, end int64) error {
	var batch []*kgo.Record
	flush := func() error {
		err := topics.Produce(ctx, c.client, batch...)
		c.copied.Rows += int64(len(batch))
		c.Add(len(batch))
		batch = batch[:0]
		return err
	}
	err := c.log.ReadTo(ctx, table, p, start, end, func(r *kgo.Record) error {
		if rows.Carries(r.Key, r.Value, topics.TicksOf(c.from), c.Keep) {
			batch = append(batch, &kgo.Record{Topic: topics.TableOf(c.to), Partition: p, Key: r.Key, Value: r.Value})
		}
		if len(batch) < copyBatch {
			return nil
		}
		return flush()
	})
	c.copied.Offsets[p] = end
	if err != nil {
		return err
	}
	return flush()
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
