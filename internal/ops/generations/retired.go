package generations

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/smartfeed/smartfeed/topics"
	"github.com/smartfeed/smartfeed/topics/generation"
)

// Retired is a generation of a group that is neither active nor being built: it was active before a cut-over, or its
// build was aborted. No process reads its topics, and erasures write no tombstones to its changelog.
type Retired struct {
	Name   string   `json:"name"`   // consumer group, see generation.Name
	Topics []string `json:"topics"` // changelog and ticks
	Number int      `json:"-"`
	Group  string   `json:"-"`
}

// ListRetired returns the retired generations whose changelog has or had records, ordered by group and number.
func ListRetired(ctx context.Context, k topics.Kafka, l *topics.Log) ([]Retired, error) {
	adm, err := k.Admin()
	if err != nil {
		return nil, err
	}
	defer adm.Close()
	w := topics.GenerationWatch{Log: l}
	if err := w.Refresh(ctx); err != nil {
		return nil, err
	}
	have, err := adm.ListTopics(ctx)
	if err != nil {
		return nil, fmt.Errorf("list topics: %w", err)
	}
	var list []Retired
	for _, group := range topics.RowGroups() {
		for _, f := range retiredOf(w.Of(group), have.Names()) {
			full, err := hasRecords(ctx, l, f.Topics[0])
			if err != nil {
				return nil, err
			}
			if full {
				list = append(list, f)
			}
		}
	}
	return list, nil
}

// retiredOf returns the retired generations of a group whose changelogs are in names, ordered by number.
func retiredOf(now generation.Record, names []string) (list []Retired) {
	for _, name := range names {
		own, isTable := strings.CutSuffix(name, topics.TableOf(""))
		if number := now.Retired(own); isTable && number != 0 {
			list = append(list, Retired{own, []string{name, topics.TicksOf(own)}, number, now.Group})
		}
	}
	slices.SortFunc(list, func(a, b Retired) int { return cmp.Compare(a.Number, b.Number) })
	return list
}

// Prune deletes the topics and consumer groups of the retired generations, and returns the deleted ones. With dryRun it
// only returns them. A generation that still has members is not deleted, and the error names it.
func Prune(ctx context.Context, k topics.Kafka, dryRun bool) (done []Retired, err error) {
	profile, err := topics.ProfileOf(ctx, k)
	if err != nil {
		return nil, err
	}
	l, err := topics.NewLog(k)
	if err != nil {
		return nil, err
	}
	defer l.Close()
	list, err := ListRetired(ctx, k, l)
	if err != nil || dryRun {
		return list, err
	}
	var problems []error
	for _, f := range list {
		err := f.delete(ctx, k, l, profile)
		if err == nil {
			done = append(done, f)
		}
		problems = append(problems, err)
	}
	return done, errors.Join(problems...)
}

// delete deletes the consumer group and the topics of a retired generation. The catalogue contains the topics of a first
// generation; delete recreates them, empty. If the group has members, it deletes nothing and returns an error.
func (f Retired) delete(ctx context.Context, k topics.Kafka, l *topics.Log, p topics.Profile) error {
	adm, err := k.Admin()
	if err != nil {
		return err
	}
	defer adm.Close()
	switch _, err := adm.DeleteGroup(ctx, f.Name); {
	case errors.Is(err, kerr.NonEmptyGroup):
		return fmt.Errorf("delete generation %s: it has members: try again some seconds after the cut-over, when processes have left it", f.Name)
	case err != nil && !errors.Is(err, kerr.GroupIDNotFound):
		return fmt.Errorf("delete group %s: %w", f.Name, err)
	}
	deleted, err := adm.DeleteTopics(ctx, f.Topics...)
	if err == nil {
		err = withoutMissing(deleted)
	}
	if err != nil {
		return fmt.Errorf("delete topics of generation %s: %w", f.Name, err)
	}
	if f.Number == generation.First {
		return recreate(ctx, k, l, topics.GenerationTopics(p, f.Group, f.Number))
	}
	return nil
}

// withoutMissing returns the errors of topics that exist but were not deleted.
func withoutMissing(deleted kadm.DeleteTopicResponses) error {
	var errs []error
	for _, r := range deleted.Sorted() {
		if r.Err != nil && !errors.Is(r.Err, kerr.UnknownTopicOrPartition) {
			errs = append(errs, fmt.Errorf("%s: %w", r.Topic, r.Err))
		}
	}
	return errors.Join(errs...)
}

// recreate creates topics that were just deleted. Brokers delete topics in the background: if a topic still has records,
// it is the deleted one, and recreate tries again.
func recreate(ctx context.Context, k topics.Kafka, l *topics.Log, own []topics.Topic) error {
	for {
		_, err := topics.Apply(ctx, k, own)
		if err == nil {
			var full bool
			if full, err = hasRecords(ctx, l, own[0].Name); err == nil && !full {
				return nil
			}
		}
		if err != nil && !errors.Is(err, kerr.TopicAlreadyExists) && !errors.Is(err, kerr.UnknownTopicOrPartition) {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("recreate topic %s: %w (\"smartfeed topics apply\" creates it)", own[0].Name, context.Cause(ctx))
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// hasRecords reports whether a topic has or had records.
func hasRecords(ctx context.Context, l *topics.Log, topic string) (bool, error) {
	ends, err := l.Ends(ctx, topic)
	for _, end := range ends[topic] {
		if end > 0 {
			return true, err
		}
	}
	return false, err
}
