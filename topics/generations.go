package topics

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/smartfeed/smartfeed/internal/periodic"
	"github.com/smartfeed/smartfeed/topics/generation"
)

// GenerationTopics returns the topics that belong to one generation.
func GenerationTopics(p Profile, group string, number int) []Topic {
	list := groupTopics(generation.Name(group, number))
	applyProfile(list, p.withDefaults())
	return list
}

// GenerationWatch follows the topic generations. Before the first Refresh, every group is at its first generation. Log must
// be set.
type GenerationWatch struct {
	Log *Log

	mu    sync.Mutex
	ends  Offsets
	known map[string]generation.Record
}

// Of returns the latest known state of a group.
func (w *GenerationWatch) Of(group string) generation.Record {
	w.mu.Lock()
	defer w.mu.Unlock()
	if g, ok := w.known[group]; ok {
		return g
	}
	return generation.Record{Group: group, Active: generation.First}
}

// Refresh reads the topic if it has changed. If the topic does not exist, every group stays at its first generation.
func (w *GenerationWatch) Refresh(ctx context.Context) error {
	ends, err := w.Log.Ends(ctx, Generations)
	if errors.Is(err, kerr.UnknownTopicOrPartition) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("follow generations: %w", err)
	}
	w.mu.Lock()
	same := w.ends != nil && maps.Equal(w.ends[Generations], ends[Generations])
	w.mu.Unlock()
	if same {
		return nil
	}
	known := map[string]generation.Record{}
	err = w.Log.ReadAll(ctx, Generations, func(r *kgo.Record) error {
		var g generation.Record
		if json.Unmarshal(r.Value, &g) == nil && g.Group == string(r.Key) {
			known[g.Group] = g
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("follow generations: %w", err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ends, w.known = ends, known
	return nil
}

// Confirms reports whether a mark belongs to the cut-over in progress. The known state may be older than the mark, so a mark is
// rejected only after Refresh.
func (w *GenerationWatch) Confirms(ctx context.Context, m generation.Mark) (bool, error) {
	if w.Of(m.Group).Confirms(m) {
		return true, nil
	}
	err := w.Refresh(ctx)
	return err == nil && w.Of(m.Group).Confirms(m), err
}

// WatchInterval is the interval between two reads of the topic. It bounds how long a change takes to reach a process.
const WatchInterval = 250 * time.Millisecond

// Run refreshes every WatchInterval until ctx is canceled. It calls refreshed after each refresh with its error, or nil.
func (w *GenerationWatch) Run(ctx context.Context, refreshed func(error)) error {
	return periodic.Run(ctx, WatchInterval, func() error {
		if err := w.Refresh(ctx); ctx.Err() == nil {
			refreshed(err)
		}
		return nil
	})
}

// Readers replaces each group by its current generations.
func (w *GenerationWatch) Readers(readers []Reader) []Reader {
	var list []Reader
	for _, r := range readers {
		for _, number := range w.Of(r.Group).Numbers() {
			list = append(list, r.of(number))
		}
	}
	return list
}

// Topics returns the topics of the current generations, without first generations, which are in the catalogue.
func (w *GenerationWatch) Topics(p Profile) []Topic {
	var list []Topic
	for _, group := range RowGroups() {
		for _, number := range w.Of(group).Numbers() {
			if number > generation.First {
				list = append(list, GenerationTopics(p, group, number)...)
			}
		}
	}
	return list
}

// TopicsOfGenerations reads the topic generations and returns the topics as GenerationWatch.Topics does. It returns an
// error if the user of k has no permission to read the topic generations.
func TopicsOfGenerations(ctx context.Context, k Kafka, p Profile) ([]Topic, error) {
	l, err := NewLog(k)
	if err != nil {
		return nil, err
	}
	defer l.Close()
	w := GenerationWatch{Log: l}
	if err := w.Refresh(ctx); err != nil {
		return nil, err
	}
	return w.Topics(p), nil
}

// of returns the reader for one generation, with the ticks of that generation.
func (r Reader) of(number int) Reader {
	name := generation.Name(r.Group, number)
	own := Reader{Group: name, Each: r.Each}
	for _, t := range r.Topics {
		if t == TicksOf(r.Group) {
			t = TicksOf(name)
		}
		own.Topics = append(own.Topics, t)
	}
	return own
}

// SetGeneration publishes the state of a group.
func SetGeneration(ctx context.Context, client *kgo.Client, g generation.Record) error {
	value, err := json.Marshal(g)
	if err != nil {
		return fmt.Errorf("encode generation of %s: %w", g.Group, err)
	}
	r := &kgo.Record{Topic: Generations, Key: []byte(g.Group), Value: value}
	if err := Produce(ctx, client, r); err != nil {
		return fmt.Errorf("publish generation of %s: %w", g.Group, err)
	}
	return nil
}

// WriteMarks writes the marks of the cut-over in progress to every partition of the inputs.
func WriteMarks(ctx context.Context, k Kafka, inputs []string, g generation.Record) error {
	client, err := k.Client(kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		return err
	}
	defer client.Close()
	mark := generation.Mark{Group: g.Group, Number: g.Building, Token: g.Token}
	header := kgo.RecordHeader{Key: generation.MarkHeader, Value: mark.Value()}
	var marks []*kgo.Record
	for _, topic := range inputs {
		for p := range k.Partitions {
			marks = append(marks, &kgo.Record{Topic: topic, Partition: p, Headers: []kgo.RecordHeader{header}})
		}
	}
	if err := Produce(ctx, client, marks...); err != nil {
		return fmt.Errorf("cut %s over to generation %d: %w", g.Group, g.Building, err)
	}
	return nil
}
