package rows

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/IBM/sarama"
	"github.com/twmb/franz-go/pkg/kadm"
)

// session is one consumer-group session, during which the assignment does not change. It is between sarama and Goka for two
// reasons. First, Goka marks an input offset when a callback returns, but the record is processed only when it is committed.
// Second, each input starts at the offset that the rows contain. The committed offsets of the group are only for external
// tools.
type session struct {
	sarama.ConsumerGroupSession
	cluster   string
	ids       map[string][16]byte  // topic ids of the group's inputs and its table
	committed kadm.OffsetResponses // offsets that the group committed before this session

	mu    sync.RWMutex
	parts map[int32]*part
}

// gokaSession is the session that Goka sees.
type gokaSession struct{ sarama.ConsumerGroupSession }

// MarkOffset does nothing, because the committer marks offsets.
func (gokaSession) MarkOffset(string, int32, int64, string) {}

// sessions wraps Goka's consumer-group handler.
type sessions struct {
	goka sarama.ConsumerGroupHandler
	w    *work
}

// Setup makes Goka recover the assigned partitions and then starts them.
func (h sessions) Setup(raw sarama.ConsumerGroupSession) error {
	s, err := h.w.newSession(raw)
	if err == nil {
		err = h.goka.Setup(gokaSession{raw})
	}
	if err == nil && raw.Context().Err() == nil {
		err = s.begin(h.w)
	}
	if raw.Context().Err() != nil {
		return nil // the next session tries again
	}
	if err != nil {
		h.w.stop(err)
	}
	return err
}

// ConsumeClaim passes records to Goka until the session ends.
func (h sessions) ConsumeClaim(raw sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	return h.goka.ConsumeClaim(gokaSession{raw}, claim)
}

// Cleanup closes the partitions, including their last commits.
func (h sessions) Cleanup(raw sarama.ConsumerGroupSession) error {
	return h.goka.Cleanup(gokaSession{raw})
}

// newSession fetches the topic ids and committed offsets before recovery starts.
func (w *work) newSession(raw sarama.ConsumerGroupSession) (*session, error) {
	s := &session{ConsumerGroupSession: raw, ids: map[string][16]byte{}, parts: map[int32]*part{}}
	names := append(w.r.topo.reads(), w.r.topo.table)
	ctx, cancel := context.WithTimeout(raw.Context(), adminTimeout)
	defer cancel()
	meta, err := w.admin.Metadata(ctx, names...)
	if err != nil {
		return nil, fmt.Errorf("look at topics: %w", err)
	}
	s.cluster = meta.Cluster
	for _, name := range names {
		detail := meta.Topics[name]
		if detail.Err != nil {
			return nil, fmt.Errorf("look at topic %s: %w", name, detail.Err)
		}
		if n := len(detail.Partitions); n != int(w.r.topo.partitions) {
			return nil, &FatalError{fmt.Errorf("topic %s has %d partitions, the configuration says %d", name, n, w.r.topo.partitions)}
		}
		s.ids[name] = detail.ID
	}
	if s.committed, err = w.admin.FetchOffsets(ctx, w.r.topo.name); err != nil {
		return nil, fmt.Errorf("fetch offsets of %s: %w", w.r.topo.name, err)
	}
	w.mu.Lock()
	w.session = s
	w.mu.Unlock()
	return s, nil
}

// owns reports whether a partition is assigned to this process.
func (s *session) owns(partition int32) bool {
	for _, partitions := range s.Claims() {
		return slices.Contains(partitions, partition) // all topics of a group have the same assignment
	}
	return false
}

func (s *session) add(p *part) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.parts[p.id] = p
}

func (s *session) part(partition int32) *part {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.parts[partition]
}

// begin starts the recovered partitions. Each input starts at the offset that the rows contain.
func (s *session) begin(w *work) error {
	topics := w.r.topo.reads()
	starts, err := w.admin.ListStartOffsets(s.Context(), topics...)
	if err != nil {
		return fmt.Errorf("look at topics: %w", err)
	}
	ends, err := w.admin.ListEndOffsets(s.Context(), topics...)
	if err != nil {
		return fmt.Errorf("look at topics: %w", err)
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, p := range s.parts {
		for i, topic := range topics {
			start, _ := starts.Lookup(topic, p.id)
			end, _ := ends.Lookup(topic, p.id)
			if err := errors.Join(start.Err, end.Err); err != nil {
				return fmt.Errorf("look at %s/%d: %w", topic, p.id, err)
			}
			next, err := s.next(p, i, topic, start.Offset, end.Offset)
			if err != nil {
				return err
			}
			s.MarkOffset(topic, p.id, next, p.mark())  // moves only forward …
			s.ResetOffset(topic, p.id, next, p.mark()) // … and this one only backward
		}
	}
	w.r.joined.Store(true)
	context.AfterFunc(s.Context(), func() {
		w.r.joined.Store(false)
		s.expire(w.r.cfg.Grace)
	})
	for _, p := range s.parts {
		if p.start() {
			w.r.show(p)
		}
	}
	return nil
}

// next returns the offset from which to read an input of a partition: after the last applied record, or the start of the log
// if none was applied.
func (s *session) next(p *part, input int, topic string, start, end int64) (int64, error) {
	at, found := p.recovered[input]
	if !found {
		return start, nil
	}
	if at.topic != s.ids[topic] {
		return 0, &FatalError{fmt.Errorf("topic %s was recreated since %s applied records of it: restore the old topic, or rebuild the group",
			topic, p.w.r.topo.name)}
	}
	if at.offset >= end {
		return 0, &FatalError{fmt.Errorf("%s/%d ends at %d, but %s has applied it up to %d: records were lost; restore the topic, or rebuild the group",
			topic, p.id, end, p.w.r.topo.name, at.offset)}
	}
	if start > at.offset+1 && topic != p.w.r.topo.ticks { // lost ticks are sent again
		return 0, &FatalError{fmt.Errorf("%s/%d begins at %d, but %s has applied it only up to %d: its retention deleted records before they "+
			"were processed; restore the topic, or rebuild the group, and keep the topic for longer than the group may be stopped",
			topic, p.id, start, p.w.r.topo.name, at.offset)}
	}
	return max(start, at.offset+1), nil
}

// expire stops the partitions when the grace time for their last commits has passed after the end of the session.
func (s *session) expire(grace time.Duration) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, p := range s.parts {
		time.AfterFunc(grace, p.cancel)
	}
}
