package topics

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/smartfeed/smartfeed/internal/command"
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
		err := l.ReadTo(ctx, DeadLetters, p, from[DeadLetters][p], ends[DeadLetters][p], func(r *kgo.Record) error {
			return visit(letterOf(s, r))
		})
		if err != nil {
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
func RetryDeadLetters(ctx context.Context, k Kafka, s *Streams) (Retried, error) {
	r, err := newRetrier(ctx, k, s)
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
	log     *Log
	client  *kgo.Client
	streams *Streams
	known   map[string]Topic
	done    Retried

	batch []*kgo.Record
	of    []string     // the topic of each one's letter
	next  kadm.Offsets // behind the batch
}

func newRetrier(ctx context.Context, k Kafka, s *Streams) (*retrier, error) {
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
	r := &retrier{log: l, client: client, streams: s, known: map[string]Topic{}, next: kadm.Offsets{}}
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
	if l.Unreadable != "" || !known || !topic.CanRetry() || topic.RetryTo(&l.DeadLetter) >= topic.Partitions {
		r.done.Skipped++
		return nil
	}
	rec, err := r.record(topic, &l.DeadLetter)
	if err != nil {
		return err
	}
	r.batch, r.of = append(r.batch, rec), append(r.of, l.Topic)
	if len(r.batch) < retryBatch {
		return nil
	}
	return r.flush(ctx)
}

// record is the order to retry a letter, or the retry of one that is too long for it.
func (r *retrier) record(topic Topic, l *schemas.DeadLetter) (*kgo.Record, error) {
	if len(l.Key)+len(l.Value) > MaxRetriedBytes {
		retry := Retry{Group: l.Group, Attempt: l.Attempts + 1}
		retry.Partition, retry.Offset = l.First()
		header := kgo.RecordHeader{Key: RetryHeader, Value: retry.Value()}
		return &kgo.Record{Topic: l.Topic, Partition: topic.RetryTo(l), Key: l.Key, Value: l.Value, Headers: []kgo.RecordHeader{header}}, nil
	}
	order := schemas.RetryOrder{Topic: l.Topic, Time: schemas.MicrosOf(time.Now()), Letters: []schemas.DeadLetter{*l}}
	value, err := r.streams.RetryOrders.Encode(&order)
	if err != nil {
		return nil, fmt.Errorf("order retry: %w", err)
	}
	return &kgo.Record{Topic: RetryOrders, Partition: Partition(l.Topic, topic.Partitions), Key: []byte(l.Topic), Value: value}, nil
}

// TooLongError says that a dead letter is too long for the group retries, and that this user of the brokers may not
// write the topic it came from. Nothing is lost: it is retried, and all behind it, by the next call of a user who may.
type TooLongError struct{ Topic string }

// Error says who may.
func (e *TooLongError) Error() string {
	return fmt.Sprintf("a dead letter of more than %d bytes goes back to the topic %s itself, which the brokers do not allow "+
		"this process to write: run \"smartfeed deadletters retry\" in the role %s, or allow it %s on topic %s",
		MaxRetriedBytes, e.Topic, RoleOperate, Write, e.Topic)
}

// Unwrap returns Kafka's own error.
func (e *TooLongError) Unwrap() error { return kerr.TopicAuthorizationFailed }

// publish returns when the batch is acknowledged. Orders go to a topic that whoever retries may write.
func (r *retrier) publish(ctx context.Context) error {
	var tooLong error
	err := produce(ctx, r.client, r.batch, func(result kgo.ProduceResult) {
		if errors.Is(result.Err, kerr.TopicAuthorizationFailed) && result.Record.Topic != RetryOrders {
			tooLong = &TooLongError{result.Record.Topic}
		}
	})
	return cmp.Or(tooLong, err)
}

// flush publishes the batch and then commits the offset behind it.
func (r *retrier) flush(ctx context.Context) error {
	if err := r.publish(ctx); err != nil {
		return err
	}
	if len(r.next) > 0 {
		if err := r.log.admin.CommitAllOffsets(ctx, RetriedGroup, r.next); err != nil {
			return fmt.Errorf("commit offsets: %w", err)
		}
	}
	for _, topic := range r.of {
		r.done.Published++
		r.done.Topics[topic]++
	}
	r.batch, r.of, r.next = nil, nil, kadm.Offsets{}
	return nil
}

// LimitRetries sets how fast dead letters of a scope are retried (see schemas.RetryLimit), in the operator's name. It
// returns when that is acknowledged. A scope of a topic that is not there, or a rate out of its bounds, is a
// *schemas.BadRecordError.
func LimitRetries(ctx context.Context, k Kafka, s *Streams, limit schemas.RetryLimit, operator string) error {
	topic, _, _ := strings.Cut(limit.Scope, "/")
	if !slices.ContainsFunc(Catalogue(Profile{}), func(t Topic) bool { return t.Name == topic && t.CanRetry() }) {
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
	if err := Produce(ctx, client, &kgo.Record{Topic: RetryOrders, Key: []byte(topic), Value: value}); err != nil {
		return fmt.Errorf("limit retries: %w", err)
	}
	return nil
}

func deadLettersCommand(setup func(*cobra.Command) (Setup, error), more []*cobra.Command) *cobra.Command {
	cmd := command.Group("deadletters", "look at records that could not be worked off, and try them again",
		"  smartfeed deadletters list --limit 10", more...)
	var (
		asJSON bool
		limit  int
	)
	list := &cobra.Command{
		Use: "list", Short: "print dead letters, the newest last", Args: cobra.NoArgs,
		Example: "  smartfeed deadletters list --limit 10\n  smartfeed deadletters list --json",
		RunE: run(setup, func(cmd *cobra.Command, s Setup, _ []string) error {
			if limit < 1 || limit > maxListed {
				return command.Usagef("--limit %d: must be 1-%d", limit, maxListed)
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
		Use: "retry", Short: "have what came since the last time retried at once, whatever was tried before", Args: cobra.NoArgs,
		Example: "  smartfeed deadletters retry\n  smartfeed deadletters retry --json",
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
	cmd.AddCommand(list, retry, limitCommand(setup, &asJSON))
	return cmd
}

func limitCommand(setup func(*cobra.Command) (Setup, error), asJSON *bool) *cobra.Command {
	var (
		operator string
		priority int32
	)
	cmd := &cobra.Command{
		Use: "limit KIND RATE", Short: "set how fast dead letters of a kind are retried, 0: not at all",
		Long: `Set how many dead letters of a kind are retried a second: a number, 0 to stop them, or "default" for what the configuration
says. KIND is topic/group/words as GET /v1/deadletters/kinds lists them, or topic/group, or a topic; the narrowest that is
set counts. Of kinds that are due at once the one of greater --priority goes first.`,
		Example: "  smartfeed deadletters limit pins/objects 0\n  smartfeed deadletters limit pins/objects default",
		Args:    cobra.ExactArgs(2),
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			return [][]string{kinds(), {"0", "default"}, nil}[min(len(args), 2)], cobra.ShellCompDirectiveNoFileComp
		},
		RunE: run(setup, func(cmd *cobra.Command, s Setup, args []string) error {
			rate, err := strconv.ParseFloat(args[1], 64)
			if args[1] == "default" {
				rate, err = -1, nil
			} else if err != nil || rate < 0 || rate > schemas.MaxRetryRate || math.IsNaN(rate) {
				return command.Usagef("rate %q: want a number from 0 to %d, or default", args[1], schemas.MaxRetryRate)
			}
			streams, err := s.Streams(cmd.Context())
			if err != nil {
				return err
			}
			limit := schemas.RetryLimit{Scope: args[0], Rate: rate, Priority: priority}
			var bad *schemas.BadRecordError
			if err := LimitRetries(cmd.Context(), s.Kafka, streams, limit, operator); errors.As(err, &bad) {
				return &command.UsageError{Err: bad}
			} else if err != nil {
				return err
			}
			return printLimit(cmd.OutOrStdout(), limit, args[1], *asJSON)
		}),
	}
	cmd.Flags().StringVar(&operator, "operator", "", "who sets it, for others to see")
	cmd.Flags().Int32Var(&priority, "priority", 0, "greater goes first")
	return cmd
}

// kinds are the topics of the catalogue with each group that reads them: what limits are set for.
func kinds() []string {
	var names []string
	for _, t := range Catalogue(Profile{}) {
		for _, group := range t.Readers {
			names = append(names, t.Name+"/"+group)
		}
	}
	return names
}

// maxListed bounds what list holds in memory.
const maxListed = 10_000

func printLetters(out io.Writer, list []Letter, asJSON bool) error {
	if asJSON {
		if list == nil {
			list = []Letter{}
		}
		return command.PrintJSON(out, list)
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

func printLimit(out io.Writer, l schemas.RetryLimit, rate string, asJSON bool) error {
	if asJSON {
		return command.PrintJSON(out, l)
	}
	_, err := fmt.Fprintf(out, "retries of %s: %s a second\n", l.Scope, rate)
	return err
}

func printRetried(out io.Writer, r Retried, asJSON bool) error {
	if asJSON {
		return command.PrintJSON(out, r)
	}
	_, err := fmt.Fprintf(out, "%d dead letters are retried, skipped %d\n", r.Published, r.Skipped)
	return err
}
