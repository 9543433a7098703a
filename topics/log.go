package topics

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/smartfeed/smartfeed/internal/periodic"
)

// Log reads partitions by offset, without a consumer group. Unlike a consumer, it returns its position even where no record
// is readable: after markers and after an aborted tail. It is safe for concurrent use. The caller must close it.
type Log struct {
	client *kgo.Client
	admin  *kadm.Client
	unpack kgo.Decompressor
}

// ByPartition holds values by topic and partition.
type ByPartition[V any] map[string]map[int32]V

// Set sets the value of a partition.
func (m ByPartition[V]) Set(topic string, partition int32, value V) {
	if m[topic] == nil {
		m[topic] = map[int32]V{}
	}
	m[topic][partition] = value
}

// Offsets holds offsets by topic and partition.
type Offsets = ByPartition[int64]

// NewLog returns a Log. It does not connect until it is used.
func NewLog(k Kafka) (*Log, error) {
	client, err := k.Client()
	if err != nil {
		return nil, err
	}
	unpack, _ := client.OptValue(kgo.WithDecompressor).(kgo.Decompressor) // the client's own decompressor, which is bounded, unlike kgo's default
	return &Log{client: client, admin: kadm.NewClient(client), unpack: unpack}, nil
}

// Close closes the connections.
func (l *Log) Close() { l.client.Close() }

// End returns the offset of the next record of a partition. Records of open transactions count.
func (l *Log) End(ctx context.Context, topic string, partition int32) (int64, error) {
	ends, err := l.Ends(ctx, topic)
	if err != nil {
		return 0, err
	}
	end, ok := ends[topic][partition]
	if !ok {
		return 0, fmt.Errorf("end of %s/%d: no such partition", topic, partition)
	}
	return end, nil
}

// Ends returns the end offset of every partition of the topics. It returns a *MissingTopicsError if a topic does not exist.
func (l *Log) Ends(ctx context.Context, topics ...string) (Offsets, error) {
	listed, err := l.admin.ListEndOffsets(ctx, topics...)
	return offsets("ends", listed, err)
}

// Starts returns the oldest offset of every partition of the topics.
func (l *Log) Starts(ctx context.Context, topics ...string) (Offsets, error) {
	listed, err := l.admin.ListStartOffsets(ctx, topics...)
	return offsets("starts", listed, err)
}

// extent holds the oldest offset and the end offset of the partitions of some topics.
type extent struct{ starts, ends Offsets }

// extent reads the starts before the ends.
func (l *Log) extent(ctx context.Context, topics ...string) (e extent, err error) {
	if e.starts, err = l.Starts(ctx, topics...); err == nil {
		e.ends, err = l.Ends(ctx, topics...)
	}
	return e, err
}

// From returns, for every partition of the topics, the offset of the first record whose timestamp is at or after t. If
// there is none, it returns the end offset.
func (l *Log) From(ctx context.Context, t time.Time, topics ...string) (Offsets, error) {
	listed, err := l.admin.ListOffsetsAfterMilli(ctx, t.UnixMilli(), topics...)
	return offsets("offsets after "+t.Format(time.RFC3339), listed, err)
}

func offsets(what string, listed kadm.ListedOffsets, err error) (Offsets, error) {
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", what, err)
	}
	out := Offsets{}
	var errs []error
	var missing []string
	listed.Each(func(o kadm.ListedOffset) {
		if errors.Is(o.Err, kerr.UnknownTopicOrPartition) {
			missing = append(missing, o.Topic)
			return
		}
		if o.Err != nil {
			errs = append(errs, fmt.Errorf("list %s of %s: %w", what, o.Topic, o.Err))
			return
		}
		out.Set(o.Topic, o.Partition, o.Offset)
	})
	if len(missing) > 0 {
		slices.Sort(missing)
		errs = append(errs, &MissingTopicsError{Topics: slices.Compact(missing)})
	}
	return out, errors.Join(errs...)
}

// MissingTopicsError lists topics of the catalogue that do not exist on the brokers.
type MissingTopicsError struct{ Topics []string }

// Error names the topics and the command that creates them.
func (e *MissingTopicsError) Error() string {
	return fmt.Sprintf("missing topics: %s: create them with \"smartfeed topics apply\"", strings.Join(e.Topics, ", "))
}

// Unwrap returns Kafka's own error.
func (e *MissingTopicsError) Unwrap() error { return kerr.UnknownTopicOrPartition }

// readBytes bounds one Read. A larger single batch is returned whole.
const readBytes = 4 << 20

// Read returns some committed records of a partition, starting at offset from, and the offset to continue at. That offset
// is after all markers and aborted records that were read. At the end of the committed records, Read returns no records and
// from itself, without waiting. If from is before the oldest record, Read returns no records and the oldest offset. For a
// batch of more than MaxDecompressedBytes, it returns a *kgo.ErrDecompressTooLarge, after the records before it.
func (l *Log) Read(ctx context.Context, topic string, partition int32, from int64) (records []*kgo.Record, next int64, err error) {
	return l.read(ctx, topic, partition, from, readBytes)
}

// read is Read with a bound of maxBytes.
func (l *Log) read(ctx context.Context, topic string, partition int32, from int64, maxBytes int32) (records []*kgo.Record, next int64, err error) {
	fail := func(err error) ([]*kgo.Record, int64, error) {
		return nil, 0, fmt.Errorf("read %s/%d at %d: %w", topic, partition, from, err)
	}
	answer, err := l.fetch(ctx, topic, partition, from, maxBytes)
	if err != nil {
		return fail(err)
	}
	err = kerr.ErrorForCode(answer.ErrorCode)
	if errors.Is(err, kerr.OffsetOutOfRange) { // Kafka's response does not contain the start of the log: it has -1 there
		starts, startsErr := l.Starts(ctx, topic)
		if start := starts[topic][partition]; startsErr == nil && from < start {
			return nil, start, nil
		}
	}
	if err != nil {
		return fail(err)
	}
	fetched, next := kgo.ProcessFetchPartition(kgo.ProcessFetchPartitionOpts{
		Offset:         from,
		IsolationLevel: kgo.ReadCommitted(),
		Topic:          topic,
		Partition:      partition,
	}, answer, l.unpack, nil)
	if fetched.Err != nil {
		return fail(fetched.Err)
	}
	return fetched.Records, max(next, from), nil
}

// fetch sends one request to the partition's leader. If the leader has just moved, the error is transient.
func (l *Log) fetch(ctx context.Context, topic string, partition int32, from int64, maxBytes int32) (*kmsg.FetchResponseTopicPartition, error) {
	meta, err := l.admin.Metadata(ctx, topic)
	if err != nil {
		return nil, err
	}
	detail := meta.Topics[topic]
	leader, ok := detail.Partitions[partition]
	if err := errors.Join(detail.Err, leader.Err); err != nil || !ok {
		return nil, errors.Join(errors.New("no leader"), err)
	}
	rp := kmsg.NewFetchRequestTopicPartition()
	rp.Partition, rp.FetchOffset, rp.PartitionMaxBytes = partition, from, maxBytes
	rt := kmsg.NewFetchRequestTopic()
	rt.Topic, rt.TopicID, rt.Partitions = topic, detail.ID, append(rt.Partitions, rp)
	req := kmsg.NewPtrFetchRequest()
	req.MaxBytes, req.IsolationLevel, req.Topics = maxBytes, 1, append(req.Topics, rt)
	resp, err := l.client.Broker(int(leader.Leader)).RetriableRequest(ctx, req)
	if err != nil {
		return nil, err
	}
	fetch := resp.(*kmsg.FetchResponse)
	if err := kerr.ErrorForCode(fetch.ErrorCode); err != nil {
		return nil, err
	}
	if len(fetch.Topics) != 1 || len(fetch.Topics[0].Partitions) != 1 {
		return nil, errors.New("response does not contain exactly one partition")
	}
	return &fetch.Topics[0].Partitions[0], nil
}

// ReadAll calls ReadAround for each partition of a topic in turn, from the oldest record to the end at the time of the
// call.
func (l *Log) ReadAll(ctx context.Context, topic string, visit func(*kgo.Record) error) error {
	e, err := l.extent(ctx, topic)
	if err != nil {
		return err
	}
	for p, end := range e.ends[topic] {
		if err := l.ReadAround(ctx, topic, p, e.starts[topic][p], end, visit); err != nil {
			return err
		}
	}
	return nil
}

// ReadKey calls visit for the committed records in the partition of a key, in order, up to the end at the time of the call. Records
// of other keys are among them.
func (l *Log) ReadKey(ctx context.Context, topic, key string, visit func(*kgo.Record) error) error {
	e, err := l.extent(ctx, topic)
	if err != nil {
		return err
	}
	p := Partition(key, int32(len(e.starts[topic])))
	return l.ReadTo(ctx, topic, p, e.starts[topic][p], e.ends[topic][p], visit)
}

// ReadAround is ReadTo, but skips batches that are too large to read. In an input topic, groups have sent dead letters for
// such batches.
func (l *Log) ReadAround(ctx context.Context, topic string, partition int32, from, end int64, visit func(*kgo.Record) error) error {
	for {
		err := l.ReadTo(ctx, topic, partition, from, end, visit)
		large, ok := errors.AsType[*kgo.ErrDecompressTooLarge](err)
		if !ok {
			return err
		}
		from = large.NextOffset
	}
}

// ReadTo calls visit for the committed records of a partition from an offset up to end, exclusive. It waits for
// transactions that are still open below end. An error of visit stops it and is returned.
func (l *Log) ReadTo(ctx context.Context, topic string, partition int32, from, end int64, visit func(*kgo.Record) error) error {
	return periodic.Until(ctx, 10*time.Millisecond, func() (bool, error) {
		for from < end {
			records, next, err := l.Read(ctx, topic, partition, from)
			if err == nil {
				err = visitBelow(end, records, visit)
			}
			if err != nil {
				return false, err
			}
			if next == from {
				return false, nil
			}
			from = next
		}
		return true, nil
	})
}

// visitBelow calls visit for the records before an offset.
func visitBelow(end int64, records []*kgo.Record, visit func(*kgo.Record) error) error {
	for _, r := range records {
		if r.Offset >= end {
			return nil
		}
		if err := visit(r); err != nil {
			return err
		}
	}
	return nil
}
