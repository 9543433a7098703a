package topics

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/smartfeed/smartfeed/schemas"
)

// RetriedGroup is the consumer group whose committed offsets say up to where the dead letters have been retried.
const RetriedGroup = "dead-letters"

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
func letters(ctx context.Context, l *Log, s *Streams, from Offsets, visit func(Letter) error) error {
	ends, err := l.Ends(ctx, DeadLetters)
	if err != nil {
		return err
	}
	for _, p := range slices.Sorted(maps.Keys(ends[DeadLetters])) {
		var failed error
		err := l.ReadTo(ctx, DeadLetters, p, from[DeadLetters][p], ends[DeadLetters][p], func(r *kgo.Record) {
			if failed == nil {
				failed = visit(letterOf(s, r))
			}
		})
		if err = errors.Join(err, failed); err != nil {
			return err
		}
	}
	return nil
}

func letterOf(s *Streams, r *kgo.Record) Letter {
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
func retriedTo(ctx context.Context, l *Log) (Offsets, error) {
	fetched, err := l.admin.FetchOffsetsForTopics(ctx, RetriedGroup, DeadLetters)
	if errors.Is(err, kerr.GroupIDNotFound) {
		return Offsets{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("fetch offsets of %s: %w", RetriedGroup, err)
	}
	return Offsets{DeadLetters: atOf(fetched[DeadLetters])}, nil
}

// listedBehind is how far behind the end of a partition letters are looked for, for each that is asked for: a letter
// that was written in a transaction has a marker behind it, and some transactions are aborted.
const listedBehind = 4

// ListDeadLetters returns at most limit dead letters, the newest if there are more, by time of their record: of those
// among the last 1,000 offsets of each partition, or of four times the limit. Values over 4 KiB are left out.
func ListDeadLetters(ctx context.Context, k Kafka, s *Streams, limit int) ([]Letter, error) {
	l, err := NewLog(k)
	if err != nil {
		return nil, err
	}
	defer l.Close()
	retried, err := retriedTo(ctx, l)
	if err != nil {
		return nil, fmt.Errorf("list dead letters: %w", err)
	}
	ends, err := l.Ends(ctx, DeadLetters)
	if err != nil {
		return nil, fmt.Errorf("list dead letters: %w", err)
	}
	from := Offsets{DeadLetters: {}}
	for p, end := range ends[DeadLetters] {
		from[DeadLetters][p] = max(0, end-int64(max(1000, listedBehind*limit)))
	}
	var list []Letter
	err = letters(ctx, l, s, from, func(letter Letter) error {
		letter.Retried = letter.Offset < retried[DeadLetters][letter.Partition]
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
	Published int            `json:"published"`
	Topics    map[string]int `json:"topics"`  // of them, by topic
	Skipped   int            `json:"skipped"` // letters that cannot be read, or of topics that no longer exist
}

// retryBatch is how many letters are published before their offsets are committed.
const retryBatch = 500

// RetryDeadLetters publishes the bytes of every dead letter that has not been retried yet to the topic it came from:
// to the partition of its key, or of a topic whose partition is chosen by the writer to the one it was in. It returns
// when all are acknowledged, and remembers it. Interrupted, it may publish some again the next time. A record that
// still cannot be worked off becomes a new dead letter.
func RetryDeadLetters(ctx context.Context, k Kafka, s *Streams) (Retried, error) {
	r, err := newRetrier(ctx, k)
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

// retrier gathers letters and publishes them in batches.
type retrier struct {
	log    *Log
	client *kgo.Client
	known  map[string]Topic
	done   Retried

	batch []*kgo.Record
	next  kadm.Offsets // behind the batch
}

func newRetrier(ctx context.Context, k Kafka) (*retrier, error) {
	profile, err := ProfileOf(ctx, k)
	if err != nil {
		return nil, err
	}
	l, err := NewLog(k)
	if err != nil {
		return nil, err
	}
	client, err := k.Client(kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		l.Close()
		return nil, err
	}
	r := &retrier{log: l, client: client, known: map[string]Topic{}, next: kadm.Offsets{}}
	r.done.Topics = map[string]int{}
	for _, t := range Catalogue(profile) {
		r.known[t.Name] = t
	}
	return r, nil
}

func (r *retrier) close() {
	r.client.Close()
	r.log.Close()
}

func (r *retrier) add(ctx context.Context, l Letter) error {
	r.next.AddOffset(DeadLetters, l.Partition, l.Offset+1, -1)
	topic, known := r.known[l.Topic]
	if l.Unreadable != "" || !known || l.DeadLetter.Partition >= topic.Partitions {
		r.done.Skipped++
		return nil
	}
	partition := l.DeadLetter.Partition
	if !topic.Explicit {
		partition = PartitionBytes(Owner(l.Key), topic.Partitions)
	}
	r.batch = append(r.batch, &kgo.Record{Topic: l.Topic, Partition: partition, Key: l.Key, Value: l.Value})
	if len(r.batch) < retryBatch {
		return nil
	}
	return r.flush(ctx)
}

// flush publishes the batch and then commits the offset behind it.
func (r *retrier) flush(ctx context.Context) error {
	if err := r.client.ProduceSync(ctx, r.batch...).FirstErr(); err != nil {
		return err
	}
	if len(r.next) > 0 {
		if err := r.log.admin.CommitAllOffsets(ctx, RetriedGroup, r.next); err != nil {
			return fmt.Errorf("commit offsets: %w", err)
		}
	}
	for _, rec := range r.batch {
		r.done.Published++
		r.done.Topics[rec.Topic]++
	}
	r.batch, r.next = nil, kadm.Offsets{}
	return nil
}

func deadLettersCommand(setup func(*cobra.Command) (Setup, error)) *cobra.Command {
	cmd := parent("deadletters", "look at records that could not be worked off, and try them again")
	var (
		asJSON bool
		limit  int
	)
	list := &cobra.Command{
		Use: "list", Short: "print dead letters, the newest last", Args: cobra.NoArgs,
		RunE: run(setup, func(cmd *cobra.Command, s Setup, _ []string) error {
			if limit < 1 || limit > maxListed {
				return &UsageError{fmt.Sprintf("--limit %d: must be 1-%d", limit, maxListed)}
			}
			streams, err := s.Streams(cmd.Context())
			if err != nil {
				return err
			}
			found, err := ListDeadLetters(cmd.Context(), s.Kafka, streams, limit)
			if err != nil {
				return err
			}
			return printLetters(cmd.OutOrStdout(), found, asJSON)
		}),
	}
	list.Flags().IntVar(&limit, "limit", 100, "print at most so many")
	retry := &cobra.Command{
		Use: "retry", Short: "publish what has not been retried yet to the topics it came from", Args: cobra.NoArgs,
		RunE: run(setup, func(cmd *cobra.Command, s Setup, _ []string) error {
			streams, err := s.Streams(cmd.Context())
			if err != nil {
				return err
			}
			done, err := RetryDeadLetters(cmd.Context(), s.Kafka, streams)
			return errors.Join(err, printRetried(cmd.OutOrStdout(), done, asJSON))
		}),
	}
	cmd.PersistentFlags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.AddCommand(list, retry)
	return cmd
}

// maxListed bounds what list holds in memory.
const maxListed = 10_000

func printLetters(out io.Writer, list []Letter, asJSON bool) error {
	if asJSON {
		if list == nil {
			list = []Letter{}
		}
		return printJSON(out, list)
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "TIME\tTOPIC\tPARTITION\tOFFSET\tGROUP\tRETRIED\tREASON")
	for _, l := range list {
		reason := l.Reason
		if l.Unreadable != "" {
			reason = "the letter cannot be read: " + l.Unreadable
		}
		fmt.Fprintf(table, "%s\t%s\t%d\t%d\t%s\t%t\t%s\n", l.Time.Time().Format(time.RFC3339), l.Topic,
			l.DeadLetter.Partition, l.DeadLetter.Offset, l.Group, l.Retried, strings.ReplaceAll(reason, "\n", "; "))
	}
	return table.Flush()
}

func printRetried(out io.Writer, r Retried, asJSON bool) error {
	if asJSON {
		return printJSON(out, r)
	}
	_, err := fmt.Fprintf(out, "published %d dead letters again, skipped %d\n", r.Published, r.Skipped)
	return err
}
