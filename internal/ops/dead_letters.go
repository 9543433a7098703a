package ops

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/serving/api"
	"github.com/smartfeed/smartfeed/topics"
)

// maxListedValue bounds the length of a listed value: list holds many dead letters, and one can be 2 MiB long.
const maxListedValue = 4 << 10

// readDeadLetters calls visit for the dead letters up to the current end, partition by partition. from returns the offset at
// which to start in a partition, given its end.
func readDeadLetters(
	ctx context.Context, l *topics.Log, s *topics.Streams, from func(p int32, end int64) int64, visit func(api.DeadLetter) error,
) error {
	listed, err := l.Ends(ctx, topics.DeadLetters)
	if err != nil {
		return err
	}
	ends := listed[topics.DeadLetters]
	for _, p := range slices.Sorted(maps.Keys(ends)) {
		err := l.ReadTo(ctx, topics.DeadLetters, p, from(p, ends[p]), ends[p], func(r *kgo.Record) error {
			return visit(decodeDeadLetter(s, r))
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func decodeDeadLetter(s *topics.Streams, r *kgo.Record) api.DeadLetter {
	listed := api.DeadLetter{Partition: r.Partition, Offset: r.Offset}
	rec, err := s.DeadLetters.Decode(r.Value)
	if err != nil {
		listed.Unreadable = err.Error()
		return listed
	}
	listed.DeadLetter = *rec
	return listed
}

// retriedTo returns the offset in each partition before which all dead letters have been retried.
func retriedTo(ctx context.Context, l *topics.Log) (map[int32]int64, error) {
	at, err := l.Positions(ctx, []topics.Reader{{Group: topics.RetriedGroup, Topics: []string{topics.DeadLetters}}})
	to := map[int32]int64{}
	for _, p := range at[topics.RetriedGroup] {
		to[p.Partition] = max(0, p.Committed)
	}
	return to, err
}

// offsetsPerDeadLetter is the number of offsets to read per requested dead letter. A transaction adds a marker after its
// records, and some transactions are aborted.
const offsetsPerDeadLetter = 4

// ListDeadLetters returns at most limit dead letters, the newest if there are more, ordered by the time of the failed
// record. From each partition it reads the last 1,000 offsets, or four times limit if that is more. It omits values over 4
// KiB.
func ListDeadLetters(ctx context.Context, k topics.Kafka, s *topics.Streams, limit int) ([]api.DeadLetter, error) {
	l, err := topics.NewLog(k)
	if err != nil {
		return nil, err
	}
	defer l.Close()
	retried, err := retriedTo(ctx, l)
	if err != nil {
		return nil, fmt.Errorf("list dead letters: %w", err)
	}
	from := func(_ int32, end int64) int64 { return max(0, end-int64(max(1000, offsetsPerDeadLetter*limit))) }
	var list []api.DeadLetter
	err = readDeadLetters(ctx, l, s, from, func(deadLetter api.DeadLetter) error {
		deadLetter.Retried = deadLetter.Offset < retried[deadLetter.Partition]
		if len(deadLetter.Value) > maxListedValue {
			deadLetter.Value = nil
		}
		if list = append(list, deadLetter); len(list) >= 2*limit+1000 { // sort rarely, hold few
			list = newest(list, limit)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list dead letters: %w", err)
	}
	return newest(list, limit), nil
}

func newest(list []api.DeadLetter, limit int) []api.DeadLetter {
	slices.SortStableFunc(list, func(a, b api.DeadLetter) int { return cmp.Compare(a.Time, b.Time) })
	return slices.Clone(list[max(0, len(list)-limit):])
}

// retryBatch is the number of dead letters that are published before their offsets are committed.
const retryBatch = 500

// RetryDeadLetters retries every dead letter that arrived since the last call. It publishes a retry order for each to
// the group retries. That group skips dead letters that have since been processed or are in flight. It does not store
// dead letters over MaxRetriedBytes; RetryDeadLetters publishes these to their original topics itself. It returns after
// the brokers have acknowledged everything and its position is committed. After an interruption, the next call may order
// some retries again. A record that still cannot be processed becomes a new dead letter.
//
// RetryDeadLetters returns an *api.TooLongError if the user of k has no permission to write the topic of a large dead letter.
// Retry orders and the header topics.OperatorHeader of large dead letters record the operator.
func RetryDeadLetters(ctx context.Context, k topics.Kafka, s *topics.Streams, operator string) (api.Retried, error) {
	r, err := newRetrier(ctx, k, s, operator)
	if err != nil {
		return api.Retried{}, fmt.Errorf("retry dead letters: %w", err)
	}
	defer r.close()
	retried, err := retriedTo(ctx, r.log)
	if err == nil {
		from := func(p int32, _ int64) int64 { return retried[p] }
		err = readDeadLetters(ctx, r.log, s, from, func(l api.DeadLetter) error { return r.add(ctx, l) })
	}
	if err = errors.Join(err, r.flush(ctx)); err != nil {
		return r.done, fmt.Errorf("retry dead letters: %w", err)
	}
	return r.done, nil
}

// retrier collects retries and publishes them in batches.
type retrier struct {
	log     *topics.Log
	client  *kgo.Client
	streams *topics.Streams
	known   map[string]topics.Topic
	done    api.Retried
	by      string // operator; "": unknown

	orders []*kgo.Record
	long   []*kgo.Record // retries of large dead letters, see RetryDeadLetters
	of     []string      // the original topic of each order and each long retry
	next   kadm.Offsets  // offsets to commit when these are published
}

func newRetrier(ctx context.Context, k topics.Kafka, s *topics.Streams, operator string) (*retrier, error) {
	profile, err := topics.ProfileOf(ctx, k)
	if err != nil {
		return nil, err
	}
	l, err := topics.NewLog(k)
	if err != nil {
		return nil, err
	}
	client, err := k.Client(kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		l.Close()
		return nil, err
	}
	r := &retrier{log: l, client: client, streams: s, by: operator, known: map[string]topics.Topic{}, next: kadm.Offsets{}}
	r.done.Topics = map[string]int{}
	for _, t := range topics.Catalogue(profile) {
		r.known[t.Name] = t
	}
	return r, nil
}

func (r *retrier) close() {
	r.client.Close()
	r.log.Close()
}

func (r *retrier) add(ctx context.Context, l api.DeadLetter) error {
	topic, known := r.known[l.Topic]
	if l.Unreadable != "" || !known || !topic.CanRetry() || topic.RetryTo(&l.DeadLetter) >= topic.Partitions {
		r.done.Skipped++
		r.advance(l)
		return nil
	}
	if len(l.Key)+len(l.Value) > topics.MaxRetriedBytes {
		r.long = append(r.long, r.retryOf(topic, &l.DeadLetter))
	} else {
		order, err := r.order(topic, &l.DeadLetter)
		if err != nil {
			return err
		}
		r.orders = append(r.orders, order)
	}
	r.advance(l)
	if r.of = append(r.of, l.Topic); len(r.of) < retryBatch {
		return nil
	}
	return r.flush(ctx)
}

// advance moves the offset past a dead letter. flush commits it after publishing the batch.
func (r *retrier) advance(l api.DeadLetter) {
	r.next.AddOffset(topics.DeadLetters, l.Partition, l.Offset+1, -1)
}

// retryOf returns the retry of a dead letter that is too large for an order.
func (r *retrier) retryOf(topic topics.Topic, l *schemas.DeadLetter) *kgo.Record {
	retry := topics.Retry{Group: l.Group, Attempt: l.Attempts + 1}
	retry.Partition, retry.Offset = l.First()
	headers := []kgo.RecordHeader{{Key: topics.RetryHeader, Value: retry.Value()}, {Key: topics.OperatorHeader, Value: []byte(r.by)}}
	return &kgo.Record{Topic: l.Topic, Partition: topic.RetryTo(l), Key: l.Key, Value: l.Value, Headers: headers}
}

// order returns the order to retry a dead letter.
func (r *retrier) order(topic topics.Topic, l *schemas.DeadLetter) (*kgo.Record, error) {
	order := schemas.RetryOrder{Topic: l.Topic, Operator: r.by, Time: schemas.MicrosOf(time.Now()), DeadLetters: []schemas.DeadLetter{*l}}
	value, err := r.streams.RetryOrders.Encode(&order)
	if err != nil {
		return nil, fmt.Errorf("order retry: %w", err)
	}
	to := topics.Partition(l.Topic, topic.Partitions)
	return &kgo.Record{Topic: topics.RetryOrders, Partition: to, Key: []byte(l.Topic), Value: value}, nil
}

// publish returns when the whole batch is acknowledged.
func (r *retrier) publish(ctx context.Context) error {
	if err := topics.Produce(ctx, r.client, r.orders...); err != nil {
		return err
	}
	for _, retry := range r.long { // one by one, so that the error is about one topic
		err := topics.Produce(ctx, r.client, retry)
		if errors.Is(err, kerr.TopicAuthorizationFailed) {
			return &api.TooLongError{Topic: retry.Topic}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// flush publishes the batch and then commits the offsets after it.
func (r *retrier) flush(ctx context.Context) error {
	if err := r.publish(ctx); err != nil {
		return err
	}
	if len(r.next) > 0 {
		if err := kadm.NewClient(r.client).CommitAllOffsets(ctx, topics.RetriedGroup, r.next); err != nil {
			return fmt.Errorf("commit offsets: %w", err)
		}
	}
	for _, topic := range r.of {
		r.done.Published++
		r.done.Topics[topic]++
	}
	r.orders, r.long, r.of, r.next = nil, nil, nil, kadm.Offsets{}
	return nil
}

// LimitRetries sets the retry rate for the dead letters of a scope (see schemas.RetryLimit), and records the operator. It
// returns when the brokers have acknowledged the limit. It returns a *schemas.BadRecordError if the scope's topic does not
// exist or the rate is out of range.
func LimitRetries(ctx context.Context, k topics.Kafka, s *topics.Streams, limit schemas.RetryLimit, operator string) error {
	topic, _, _ := strings.Cut(limit.Scope, "/")
	if !slices.ContainsFunc(topics.Catalogue(topics.Profile{}), func(t topics.Topic) bool { return t.Name == topic && t.CanRetry() }) {
		return schemas.Bad(fmt.Sprintf("limit retries of %.128q: no topic %.64q with retries", limit.Scope, topic))
	}
	order := schemas.RetryOrder{Topic: topic, Operator: operator, Time: schemas.MicrosOf(time.Now()), Limits: []schemas.RetryLimit{limit}}
	if err := order.Validate(topic); err != nil {
		return err
	}
	value, err := s.RetryOrders.Encode(&order)
	if err != nil {
		return fmt.Errorf("limit retries: %w", err)
	}
	client, err := k.Client()
	if err != nil {
		return fmt.Errorf("limit retries: %w", err)
	}
	defer client.Close()
	if err := topics.Produce(ctx, client, &kgo.Record{Topic: topics.RetryOrders, Key: []byte(topic), Value: value}); err != nil {
		return fmt.Errorf("limit retries: %w", err)
	}
	return nil
}
