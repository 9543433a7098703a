package topics

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

	"github.com/smartfeed/smartfeed/topics/generation"
)

// FormerGeneration is a generation of a group that is neither active nor being built. It was active before a cut-over, or
// its build was aborted. No process reads its topics, and erasures write no tombstones to its changelog.
type FormerGeneration struct {
	Name   string   `json:"name"`   // consumer group, see generation.Name
	Topics []string `json:"topics"` // changelog and ticks
	Number int      `json:"-"`
	Group  string   `json:"-"`
}

// FormerGenerations returns the former generations whose changelog has or had records, ordered by group and number.
func FormerGenerations(ctx context.Context, k Kafka) ([]FormerGeneration, error) {
	l, err := NewLog(k)
	if err != nil {
		return nil, err
	}
	defer l.Close()
	w := GenerationWatch{Log: l}
	if err := w.Refresh(ctx); err != nil {
		return nil, err
	}
	have, err := l.admin.ListTopics(ctx)
	if err != nil {
		return nil, fmt.Errorf("list topics: %w", err)
	}
	var list []FormerGeneration
	for _, f := range w.Former(have.Names()) {
		full, err := l.hasRecords(ctx, f.Topics[0])
		if err != nil {
			return nil, err
		}
		if full {
			list = append(list, f)
		}
	}
	return list, nil
}

// Former returns the generations whose changelogs are in names and which are neither active nor being built.
func (w *GenerationWatch) Former(names []string) []FormerGeneration {
	var list []FormerGeneration
	for _, group := range RowGroups() {
		now := w.Of(group)
		for _, name := range names {
			own, isTable := strings.CutSuffix(name, TableOf(""))
			number := generation.Number(group, own)
			if isTable && number != 0 && !slices.Contains(now.Numbers(), number) {
				list = append(list, FormerGeneration{own, []string{name, TicksOf(own)}, number, group})
			}
		}
	}
	slices.SortFunc(list, func(a, b FormerGeneration) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Number, b.Number))
	})
	return list
}

// InUseError is returned when a process is still a member of a former generation.
type InUseError struct {
	Name    string
	Members int
}

// Error names the generation and says what to do.
func (e *InUseError) Error() string {
	return fmt.Sprintf("generation %s has %d members: processes leave it some seconds after the cut-over; a process of an older release must be stopped",
		e.Name, e.Members)
}

// DeleteFormer deletes the topics and the consumer group of a former generation. The topics of a first generation are in
// the catalogue, so DeleteFormer creates them again, empty. If a process is still a member, DeleteFormer deletes nothing
// and returns an *InUseError.
func DeleteFormer(ctx context.Context, k Kafka, p Profile, f FormerGeneration) error {
	adm, err := k.Admin()
	if err != nil {
		return err
	}
	defer adm.Close()
	groups, err := adm.DescribeGroups(ctx, f.Name)
	if err == nil {
		err = groups[f.Name].Err
	}
	if err != nil && !errors.Is(err, kerr.GroupIDNotFound) {
		return fmt.Errorf("describe group %s: %w", f.Name, err)
	}
	if n := len(groups[f.Name].Members); n > 0 {
		return &InUseError{f.Name, n}
	}
	deleted, err := adm.DeleteTopics(ctx, f.Topics...)
	if err == nil {
		err = withoutMissing(deleted)
	}
	if err != nil {
		return fmt.Errorf("delete topics of generation %s: %w", f.Name, err)
	}
	if f.Number == generation.First {
		if err := createAgain(ctx, k, GenerationTopics(p, f.Group, f.Number)); err != nil {
			return err
		}
	}
	if _, err := adm.DeleteGroup(ctx, f.Name); err != nil && !errors.Is(err, kerr.GroupIDNotFound) {
		return fmt.Errorf("delete group %s: %w", f.Name, err)
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

// createAgain creates topics that were just deleted. Brokers delete in the background, so a topic that still has records is
// the deleted one, and createAgain tries again.
func createAgain(ctx context.Context, k Kafka, own []Topic) error {
	l, err := NewLog(k)
	if err != nil {
		return err
	}
	defer l.Close()
	for {
		_, err := Apply(ctx, k, own)
		if err == nil {
			var full bool
			if full, err = l.hasRecords(ctx, own[0].Name); err == nil && !full {
				return nil
			}
		}
		if err != nil && !errors.Is(err, kerr.TopicAlreadyExists) && !errors.Is(err, kerr.UnknownTopicOrPartition) {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("create %s again, which \"smartfeed topics apply\" does, too: %w", own[0].Name, context.Cause(ctx))
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// hasRecords reports whether a topic has, or once had, a record.
func (l *Log) hasRecords(ctx context.Context, topic string) (bool, error) {
	ends, err := l.Ends(ctx, topic)
	for _, end := range ends[topic] {
		if end > 0 {
			return true, err
		}
	}
	return false, err
}
