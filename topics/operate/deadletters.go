package operate

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
	"github.com/smartfeed/smartfeed/topics"
)

// Letter is a dead letter where it lies.
type Letter struct {
	Partition int32 `json:"letterPartition"`
	Offset    int64 `json:"letterOffset"`
	Retried   bool  `json:"retried"`
	schemas.DeadLetter
	Unreadable string `json:"unreadable,omitempty"` // why the letter itself cannot be read; then DeadLetter is empty
}

// maxListedValue is how long a value may be to be listed: list holds many letters, and one can be 2 MiB long.
const maxListedValue = 4 << 10

// letters visits the dead letters from the given offsets on, partition by partition, each up to where it ends now.
func letters(ctx context.Context, l *topics.Log, s *topics.Streams, from topics.Offsets, visit func(Letter) error) error {
	ends, err := l.Ends(ctx, topics.DeadLetters)
	if err != nil {
		return err
	}
	for _, p := range slices.Sorted(maps.Keys(ends[topics.DeadLetters])) {
		err := l.ReadTo(ctx, topics.DeadLetters, p, from[topics.DeadLetters][p], ends[topics.DeadLetters][p], func(r *kgo.Record) error {
			return visit(letterOf(s, r))
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func letterOf(s *topics.Streams, r *kgo.Record) Letter {
	letter := Letter{Partition: r.Partition, Offset: r.Offset}
	rec, err := s.DeadLetters.Decode(r.Value)
	if err != nil {
		letter.Unreadable = err.Error()
		return letter
	}
	letter.DeadLetter = *rec
	return letter
}

// retriedTo returns the offsets up to which letters have been retried.
func retriedTo(ctx context.Context, l *topics.Log) (topics.Offsets, error) {
	at, err := l.Positions(ctx, []topics.Reader{{Group: topics.RetriedGroup, Topics: []string{topics.DeadLetters}}})
	if err != nil {
		return nil, err
	}
	to := topics.Offsets{topics.DeadLetters: {}}
	for _, p := range at[topics.RetriedGroup] {
		to[p.Topic][p.Partition] = max(0, p.Committed)
	}
	return to, nil
}

// listedBehind is how far behind the end of a partition letters are looked for, for each that is asked for: a letter
// that was written in a transaction has a marker behind it, and some transactions are aborted.
const listedBehind = 4

// ListDeadLetters returns at most limit dead letters, the newest if there are more, by time of their record: of those
// among the last 1,000 offsets of each partition, or of four times the limit. Values over 4 KiB are left out.
func ListDeadLetters(ctx context.Context, k topics.Kafka, s *topics.Streams, limit int) ([]Letter, error) {
	l, err := topics.NewLog(k)
	if err != nil {
		return nil, err
	}
	defer l.Close()
	retried, err := retriedTo(ctx, l)
	if err != nil {
		return nil, fmt.Errorf("list dead letters: %w", err)
	}
	ends, err := l.Ends(ctx, topics.DeadLetters)
	if err != nil {
		return nil, fmt.Errorf("list dead letters: %w", err)
	}
	from := topics.Offsets{topics.DeadLetters: {}}
	for p, end := range ends[topics.DeadLetters] {
		from[topics.DeadLetters][p] = max(0, end-int64(max(1000, listedBehind*limit)))
	}
	var list []Letter
	err = letters(ctx, l, s, from, func(letter Letter) error {
		letter.Retried = letter.Offset < retried[topics.DeadLetters][letter.Partition]
		if len(letter.Value) > maxListedValue {
			letter.Value = nil
		}
		if list = append(list, letter); len(list) >= 2*limit+1000 { // sort rarely, keep little
			list = newest(list, limit)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list dead letters: %w", err)
	}
	return newest(list, limit), nil
}

func newest(list []Letter, limit int) []Letter {
	slices.SortStableFunc(list, func(a, b Letter) int { return cmp.Compare(a.Time, b.Time) })
	return slices.Clone(list[max(0, len(list)-limit):])
}

// Retried is what came of retrying.
type Retried struct {
	Published int            `json:"published"` // letters that are on their way, see RetryDeadLetters
	Topics    map[string]int `json:"topics"`    // of them, by topic
	Skipped   int            `json:"skipped"`   // letters that cannot be read, or of topics that take no retries
}

// retryBatch is how many letters are published before their offsets are committed.
const retryBatch = 500

// RetryDeadLetters has every dead letter retried at once that came after the last call: it orders it of the group
// retries, which knows those that have been worked off meanwhile, or are on their way. Letters over MaxRetriedBytes,
// which that group does not keep, it publishes itself to the topic they came from. It returns when all is acknowledged,
// and remembers it. Interrupted, it may order some again the next time. A record that still cannot be worked off becomes
// a new dead letter. A user of k who may not write the topic of such a long letter gets a *TooLongError.
// The operator is recorded in the orders, and as the header topics.OperatorHeader of long letters.
func RetryDeadLetters(ctx context.Context, k topics.Kafka, s *topics.Streams, operator string) (Retried, error) {
	r, err := newRetrier(ctx, k, s, operator)
	if err != nil {
		return Retried{}, fmt.Errorf("retry dead letters: %w", err)
	}
	defer r.close()
	from, err := retriedTo(ctx, r.log)
	if err == nil {
		err = letters(ctx, r.log, s, from, func(l Letter) error { return r.add(ctx, l) })
	}
	if err = errors.Join(err, r.flush(ctx)); err != nil {
		return r.done, fmt.Errorf("retry dead letters: %w", err)
	}
	return r.done, nil
}

// retrier gathers what becomes of letters and publishes it in batches.
type retrier struct {
	log     *topics.Log
	client  *kgo.Client
	streams *topics.Streams
	known   map[string]topics.Topic
	done    Retried
	by      string // operator; "": unknown

	orders []*kgo.Record
	long   []*kgo.Record // retries themselves, see RetryDeadLetters
	of     []string      // the topic of the letter of each of both
	next   kadm.Offsets  // behind them
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

func (r *retrier) add(ctx context.Context, l Letter) error {
	topic, known := r.known[l.Topic]
	if l.Unreadable != "" || !known || !topic.CanRetry() || topic.RetryTo(&l.DeadLetter) >= topic.Partitions {
		r.done.Skipped++
		r.pass(l)
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
	r.pass(l)
	if r.of = append(r.of, l.Topic); len(r.of) < retryBatch {
		return nil
	}
	return r.flush(ctx)
}

// pass notes that nothing more is to become of a letter once what has gathered is published.
func (r *retrier) pass(l Letter) { r.next.AddOffset(topics.DeadLetters, l.Partition, l.Offset+1, -1) }

// retryOf is the retry of a letter that is too long for an order.
func (r *retrier) retryOf(topic topics.Topic, l *schemas.DeadLetter) *kgo.Record {
	retry := topics.Retry{Group: l.Group, Attempt: l.Attempts + 1}
	retry.Partition, retry.Offset = l.First()
	headers := []kgo.RecordHeader{{Key: topics.RetryHeader, Value: retry.Value()}, {Key: topics.OperatorHeader, Value: []byte(r.by)}}
	return &kgo.Record{Topic: l.Topic, Partition: topic.RetryTo(l), Key: l.Key, Value: l.Value, Headers: headers}
}

// order is the order to retry a letter.
func (r *retrier) order(topic topics.Topic, l *schemas.DeadLetter) (*kgo.Record, error) {
	order := schemas.RetryOrder{Topic: l.Topic, Operator: r.by, Time: schemas.MicrosOf(time.Now()), Letters: []schemas.DeadLetter{*l}}
	value, err := r.streams.RetryOrders.Encode(&order)
	if err != nil {
		return nil, fmt.Errorf("order retry: %w", err)
	}
	to := topics.Partition(l.Topic, topic.Partitions)
	return &kgo.Record{Topic: topics.RetryOrders, Partition: to, Key: []byte(l.Topic), Value: value}, nil
}

// TooLongError says that a dead letter is too long for the group retries, and that this user of the brokers may not
// write the topic it came from. Nothing is lost: it is retried, and all behind it, by the next call of a user who may.
type TooLongError struct{ Topic string }

// Error says who may.
func (e *TooLongError) Error() string {
	return fmt.Sprintf("a dead letter of more than %d bytes goes back to the topic %s itself, which the brokers do not allow "+
		"this process to write: run \"smartfeed deadletters retry\" in the role %s, or allow it %s on topic %s",
		topics.MaxRetriedBytes, e.Topic, topics.RoleOperate, topics.Write, e.Topic)
}

// Unwrap returns Kafka's own error.
func (e *TooLongError) Unwrap() error { return kerr.TopicAuthorizationFailed }

// publish returns when all that has gathered is acknowledged. Orders go to a topic that whoever retries may write.
func (r *retrier) publish(ctx context.Context) error {
	if err := topics.Produce(ctx, r.client, r.orders...); err != nil {
		return err
	}
	for _, retry := range r.long { // one by one, so that the error is of one topic
		err := topics.Produce(ctx, r.client, retry)
		if errors.Is(err, kerr.TopicAuthorizationFailed) {
			return &TooLongError{retry.Topic}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// flush publishes what has gathered and then commits the offsets behind it.
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

// LimitRetries sets how fast dead letters of a scope are retried (see schemas.RetryLimit), in the operator's name. It
// returns when that is acknowledged. A scope of a topic that is not there, or a rate out of its bounds, is a
// *schemas.BadRecordError.
func LimitRetries(ctx context.Context, k topics.Kafka, s *topics.Streams, limit schemas.RetryLimit, operator string) error {
	topic, _, _ := strings.Cut(limit.Scope, "/")
	if !slices.ContainsFunc(topics.Catalogue(topics.Profile{}), func(t topics.Topic) bool { return t.Name == topic && t.CanRetry() }) {
		return schemas.Bad(fmt.Sprintf("limit retries of %.128q: there is no topic %.64q that takes retries", limit.Scope, topic))
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
