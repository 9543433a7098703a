package retries

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/schemas"
)

// Reader reads the retry states of dead letters in the partitions that this process owns.
type Reader struct {
	Rows   rows.Reader
	Config Config
}

// RetryKinds returns the kinds of a topic's dead letters, ordered by name. It returns a *rows.NotOwnerError if this process
// does not own the topic's partition.
func (r Reader) RetryKinds(ctx context.Context, topic string) ([]schemas.RetryKind, error) {
	list := []schemas.RetryKind{}
	err := r.Rows.Read(ctx, topic, func(s rows.Snapshot) error {
		set, err := limits(s)
		if err != nil {
			return err
		}
		kinds, err := readKinds(s)
		for _, k := range kinds {
			w := waiting{kind: k, limit: limitOf(set, k.name, r.Config.KindRate)}
			err = cmp.Or(err, w.readHead(s))
			list = append(list, w.public(topic))
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read retry kinds of %s: %w", topic, err)
	}
	return list, nil
}

// public returns the kind in its public form.
func (w *waiting) public(topic string) schemas.RetryKind {
	states := map[schemas.RetryState]int64{}
	for _, s := range schemas.RetryStates() {
		states[s] = int64(w.counts[s])
	}
	out := schemas.RetryKind{
		Kind: w.name, Topic: topic, Group: w.group, Reason: w.reason,
		Rate: w.Rate, Priority: w.Priority, Operator: w.Operator, States: states,
	}
	if w.head != nil {
		out.Next = new(schemas.Timestamp(w.due))
	}
	return out
}

// RetriedDeadLetters returns up to limit dead letters of a topic, those with the latest state change first. A kind or state that is
// not "" restricts the result to it. The errors are those of RetryKinds.
func (r Reader) RetriedDeadLetters(ctx context.Context, topic, kind string, state schemas.RetryState, limit int) ([]schemas.RetriedDeadLetter, error) {
	list := []schemas.RetriedDeadLetter{}
	err := r.Rows.Read(ctx, topic, func(s rows.Snapshot) error {
		return rows.Each(s, []byte{rowDeadLetter}, func(_ string, l deadLetter) {
			if kind != "" && l.Kind != kind || state != "" && l.State != state {
				return
			}
			list = append(list, l.public(topic))
		})
	})
	if err != nil {
		return nil, fmt.Errorf("read retries of %s: %w", topic, err)
	}
	slices.SortStableFunc(list, func(a, b schemas.RetriedDeadLetter) int { return cmp.Compare(b.Since, a.Since) })
	return list[:min(limit, len(list))], nil
}

func (l *deadLetter) public(topic string) schemas.RetriedDeadLetter {
	out := schemas.RetriedDeadLetter{
		Kind: l.Kind, Topic: topic, Partition: l.Partition, Offset: l.Offset, Group: l.Group, Reason: l.Reason,
		State: l.State, Attempts: l.Attempts, Why: l.ParkReason, Since: schemas.Timestamp(l.Since),
	}
	if l.State == schemas.RetryWaiting {
		out.Due = new(schemas.Timestamp(l.Due))
	}
	return out
}
