package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/smartfeed/smartfeed/internal/command"
	"github.com/smartfeed/smartfeed/topics"
)

// scratch is the topic of the test transaction. Its consumers read only committed records.
const scratch = topics.DeadLetters

// transaction writes a record into each partition of a topic, aborts the transaction, and checks that consumers skip
// the records. If the brokers set timestamps (LogAppendTime), the timestamps show the brokers' clocks.
func (k Kafka) transaction(ctx context.Context, found *Findings) error {
	tried, err := k.try(ctx)
	var denied *kerr.Error
	switch {
	case errors.As(err, &denied) && (denied == kerr.TransactionalIDAuthorizationFailed || denied == kerr.ClusterAuthorizationFailed || denied == kerr.TopicAuthorizationFailed):
		return advise("allow this user WRITE and DESCRIBE on the transactional ids and topics", "a transaction was denied: %w", err)
	case err != nil:
		return advise("check the replicas of the topic __transaction_state, and transaction.state.log.min.isr", "a transaction failed: %w", err)
	}
	found.OK("wrote to %s and aborted", command.Count(len(tried.stamps), "partition"))
	tried.compareClocks(found)
	return nil
}

// compareClocks reports the broker clock with the largest difference.
func (t trial) compareClocks(found *Findings) {
	if !t.stamped {
		found.OK("clocks are not compared: producers set the timestamps of records")
		return
	}
	clock(slices.MaxFunc(t.clocks(), func(a, b time.Duration) int { return cmp.Compare(a.Abs(), b.Abs()) }), found)
}

const (
	clockWarning = time.Second
	clockProblem = time.Minute // well below the five minutes above which events are rejected
)

const keepTime = "synchronize both with NTP: windows, freshness and the order of events depend on these clocks"

// clock reports how far a broker's clock is ahead of the local one, or behind it if negative.
func clock(ahead time.Duration, found *Findings) {
	side := "ahead of"
	if ahead < 0 {
		side = "behind"
	}
	switch off := ahead.Abs().Round(time.Millisecond); {
	case off >= clockProblem:
		found.Problem(keepTime, "a broker's clock is %s %s this one", off, side)
	case off >= clockWarning:
		found.Warn(keepTime, "a broker's clock is %s %s this one", off, side)
	default:
		found.OK("the brokers' clocks differ from this one by less than %s", (off + time.Millisecond).Round(time.Millisecond))
	}
}

// trial is the result of the test transaction.
type trial struct {
	stamps  []stamp
	stamped bool // the brokers stamp records with their own clocks
}

// stamp is the timestamp of a record, and the local times of sending and acknowledgement.
type stamp struct{ sent, has, acknowledged time.Time }

// clocks returns the minimum difference of each broker's clock from the local one, positive if ahead. It is 0 for a
// timestamp between sending and acknowledgement.
func (t trial) clocks() []time.Duration {
	var ahead []time.Duration
	for _, s := range t.stamps {
		switch {
		case s.has.Before(s.sent.Truncate(time.Millisecond)): // timestamps are in milliseconds
			ahead = append(ahead, s.has.Sub(s.sent))
		case s.has.After(s.acknowledged):
			ahead = append(ahead, s.has.Sub(s.acknowledged))
		default:
			ahead = append(ahead, 0)
		}
	}
	return ahead
}

// try runs the transaction.
func (k Kafka) try(ctx context.Context) (trial, error) {
	client, err := k.Transactional(topics.DoctorID + k.Member)
	if err != nil {
		return trial{}, err
	}
	defer client.Close()
	if err := client.BeginTransaction(); err != nil {
		return trial{}, fmt.Errorf("begin: %w", err)
	}
	sent := time.Now()
	records, err := k.write(ctx, client)
	acknowledged := time.Now()
	if err := errors.Join(err, wrap("abort", topics.EndTransaction(ctx, client, kgo.TryAbort, scratch))); err != nil {
		return trial{}, err
	}
	var t trial
	for _, r := range records {
		has, stamped, err := k.read(ctx, r)
		if err != nil {
			return trial{}, err
		}
		t.stamps = append(t.stamps, stamp{sent, has, acknowledged})
		t.stamped = t.stamped || stamped
	}
	return t, nil
}

func wrap(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}

// write writes a record into each partition of scratch.
func (k Kafka) write(ctx context.Context, client *kgo.Client) ([]*kgo.Record, error) {
	var records []*kgo.Record
	for p := range k.Partitions {
		records = append(records, &kgo.Record{Topic: scratch, Partition: p, Key: []byte("smartfeed-doctor")})
	}
	return records, wrap("write", topics.Produce(ctx, client, records...))
}

// read checks that read-committed consumers skip an aborted record. It reads the record's timestamp with the isolation
// level read-uncommitted.
func (k Kafka) read(ctx context.Context, r *kgo.Record) (has time.Time, stamped bool, err error) {
	l, err := topics.NewLog(k.Kafka)
	if err != nil {
		return time.Time{}, false, err
	}
	defer l.Close()
	seen := false
	visit := func(got *kgo.Record) error {
		seen = seen || got.Offset == r.Offset
		return nil
	}
	if err := l.ReadTo(ctx, r.Topic, r.Partition, r.Offset, r.Offset+1, visit); err != nil {
		return time.Time{}, false, fmt.Errorf("read past it: %w", err)
	}
	if seen {
		return time.Time{}, false, fmt.Errorf("read committed records: got the aborted record %d of %s/%d", r.Offset, r.Topic, r.Partition)
	}
	reader, err := k.Client(kgo.FetchIsolationLevel(kgo.ReadUncommitted()), kgo.ConsumePartitions(
		map[string]map[int32]kgo.Offset{r.Topic: {r.Partition: kgo.NewOffset().At(r.Offset)}}))
	if err != nil {
		return time.Time{}, false, err
	}
	defer reader.Close()
	fetched := reader.PollRecords(ctx, 1)
	if records := fetched.Records(); len(records) == 1 {
		return records[0].Timestamp, records[0].Attrs.TimestampType() == 1, nil
	}
	return time.Time{}, false, wrap("read its time", errors.Join(fetched.Err(), errors.New("it is missing")))
}
