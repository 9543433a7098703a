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

// session is one stretch of an unchanged assignment. It stands between sarama and Goka for two things: Goka marks an
// input offset when a callback returns, but it is done only when committed; and each input starts where the rows say,
// wherever the group's own offsets are: those are for others to look at.
type session struct {
	sarama.ConsumerGroupSession
	cluster   string
	ids       map[string][16]byte  // of the topics: the group's inputs and its table
	committed kadm.OffsetResponses // by the group, before this session

	mu    sync.RWMutex
	parts map[int32]*part
}

// gokaSession is the session as Goka sees it.
type gokaSession struct{ sarama.ConsumerGroupSession }

// MarkOffset does nothing: the committer marks.
func (gokaSession) MarkOffset(string, int32, int64, string) {}

// sessions wraps Goka's handler.
type sessions struct {
	goka sarama.ConsumerGroupHandler
	w    *work
}

// Setup recovers the assigned partitions, by way of Goka, and lets them start.
func (h sessions) Setup(raw sarama.ConsumerGroupSession) error {
	s, err := h.w.newSession(raw)
	if err == nil {
		err = h.goka.Setup(gokaSession{raw})
	}
	if err == nil && raw.Context().Err() == nil {
		err = s.begin(h.w)
	}
	if raw.Context().Err() != nil {
		return nil // the next session does better
	}
	if err != nil {
		h.w.stop(err)
	}
	return err
}

// ConsumeClaim passes records on until the session ends.
func (h sessions) ConsumeClaim(raw sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	return h.goka.ConsumeClaim(gokaSession{raw}, claim)
}

// Cleanup closes the partitions, with their last commits.
func (h sessions) Cleanup(raw sarama.ConsumerGroupSession) error {
	return h.goka.Cleanup(gokaSession{raw})
}

// newSession asks which topics they are, before anything is recovered.
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

// owns tells whether a partition is assigned to this process.
func (s *session) owns(partition int32) bool {
	for _, partitions := range s.Claims() {
		return slices.Contains(partitions, partition) // all topics of a group have the same
	}
	return false
}

func (s *session) took(p *part) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.parts[p.id] = p
}

func (s *session) part(partition int32) *part {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.parts[partition]
}

// begin lets the recovered partitions start, each input where the rows say.
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
			s.MarkOffset(topic, p.id, next, p.mark())  // moves forward …
			s.ResetOffset(topic, p.id, next, p.mark()) // … or backward
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

// next returns where an input of a partition is to be read from: after the last record applied, at the start of the
// log if none is.
func (s *session) next(p *part, input int, topic string, start, end int64) (int64, error) {
	at, found := p.recovered[input]
	if !found {
		return start, nil
	}
	if at.topic != s.ids[topic] {
		return 0, &FatalError{fmt.Errorf("topic %s was made anew since %s has applied records of it: restore the old topic, or rebuild the group",
			topic, p.w.r.topo.name)}
	}
	if at.offset >= end {
		return 0, &FatalError{fmt.Errorf("%s/%d ends at %d, but %s has applied it up to %d: records were lost; restore the topic, or rebuild the group",
			topic, p.id, end, p.w.r.topo.name, at.offset)}
	}
	if start > at.offset+1 && topic != p.w.r.topo.ticks { // a lost tick is sent again
		return 0, &FatalError{fmt.Errorf("%s/%d begins at %d, but %s has applied it only up to %d: its retention took records before they "+
			"were worked off; restore the topic, or rebuild the group, and keep the topic for longer than the group may stand still",
			topic, p.id, start, p.w.r.topo.name, at.offset)}
	}
	return max(start, at.offset+1), nil
}

// expire gives the partitions a grace time for their last commits, once the session is over.
func (s *session) expire(grace time.Duration) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, p := range s.parts {
		time.AfterFunc(grace, p.cancel)
	}
}
