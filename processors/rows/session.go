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
// reasons. First, Goka marks an input offset when a callback returns, but the record is processed only when it is
// committed. Second, each input starts at the offset that the rows contain. The committed offsets of the group are only
// for external tools.
type session struct {
	sarama.ConsumerGroupSession
	cluster   string
	ids       map[string][16]byte  // topic ids of the group's inputs and its table
	committed kadm.OffsetResponses // offsets that the group committed before this session

	mu         sync.RWMutex
	partitions map[int32]*partition
}

// gokaSession is the session that Goka sees.
type gokaSession struct{ sarama.ConsumerGroupSession }

// MarkOffset does nothing, because the committer marks offsets.
func (gokaSession) MarkOffset(string, int32, int64, string) {}

// sessions wraps Goka's consumer-group handler.
type sessions struct {
	goka sarama.ConsumerGroupHandler
	run  *groupRun
}

// Setup makes Goka recover the assigned partitions and then starts them.
func (h sessions) Setup(raw sarama.ConsumerGroupSession) error {
	s, err := h.run.newSession(raw)
	if err == nil {
		err = h.goka.Setup(gokaSession{raw})
	}
	if err == nil && raw.Context().Err() == nil {
		err = s.startPartitions(h.run)
	}
	if raw.Context().Err() != nil {
		return nil // the next session tries again
	}
	if err != nil {
		h.run.stop(err)
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
func (g *groupRun) newSession(raw sarama.ConsumerGroupSession) (*session, error) {
	s := &session{ConsumerGroupSession: raw, ids: map[string][16]byte{}, partitions: map[int32]*partition{}}
	names := append(g.r.topo.reads(), g.r.topo.table)
	ctx, cancel := context.WithTimeout(raw.Context(), adminTimeout)
	defer cancel()
	meta, err := g.admin.Metadata(ctx, names...)
	if err != nil {
		return nil, fmt.Errorf("fetch metadata of topics: %w", err)
	}
	s.cluster = meta.Cluster
	for _, name := range names {
		detail := meta.Topics[name]
		if detail.Err != nil {
			return nil, fmt.Errorf("fetch metadata of topic %s: %w", name, detail.Err)
		}
		if n := len(detail.Partitions); n != int(g.r.topo.partitions) {
			return nil, &FatalError{fmt.Errorf("topic %s has %d partitions, the configuration says %d", name, n, g.r.topo.partitions)}
		}
		s.ids[name] = detail.ID
	}
	if s.committed, err = g.admin.FetchOffsets(ctx, g.r.topo.name); err != nil {
		return nil, fmt.Errorf("fetch offsets of %s: %w", g.r.topo.name, err)
	}
	g.mu.Lock()
	g.session = s
	g.mu.Unlock()
	return s, nil
}

// owns reports whether a partition is assigned to this process.
func (s *session) owns(partition int32) bool {
	for _, partitions := range s.Claims() {
		return slices.Contains(partitions, partition) // all topics of a group have the same assignment
	}
	return false
}

func (s *session) add(p *partition) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.partitions[p.id] = p
}

func (s *session) partition(partition int32) *partition {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.partitions[partition]
}

// startPartitions starts the recovered partitions. Each input starts at the offset that the rows contain.
func (s *session) startPartitions(g *groupRun) error {
	topics := g.r.topo.reads()
	starts, err := g.admin.ListStartOffsets(s.Context(), topics...)
	if err != nil {
		return fmt.Errorf("list start offsets: %w", err)
	}
	ends, err := g.admin.ListEndOffsets(s.Context(), topics...)
	if err != nil {
		return fmt.Errorf("list end offsets: %w", err)
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, p := range s.partitions {
		for i, topic := range topics {
			start, _ := starts.Lookup(topic, p.id)
			end, _ := ends.Lookup(topic, p.id)
			if err := errors.Join(start.Err, end.Err); err != nil {
				return fmt.Errorf("list offsets of %s/%d: %w", topic, p.id, err)
			}
			next, err := s.resumeOffset(p, i, topic, start.Offset, end.Offset)
			if err != nil {
				return err
			}
			s.MarkOffset(topic, p.id, next, p.offsetMetadata())  // moves only forward
			s.ResetOffset(topic, p.id, next, p.offsetMetadata()) // moves only backward
		}
	}
	g.r.joined.Store(true)
	context.AfterFunc(s.Context(), func() {
		g.r.joined.Store(false)
		s.stopAfterGrace(g.r.cfg.HandoverTimeout)
	})
	for _, p := range s.partitions {
		if p.start() {
			g.r.show(p)
		}
	}
	return nil
}

// resumeOffset returns the offset from which to read an input of a partition: after the last applied record, or the
// start of the log if none was applied.
func (s *session) resumeOffset(p *partition, input int, topic string, start, end int64) (int64, error) {
	at, found := p.recovered[input]
	if !found {
		return start, nil
	}
	if at.topic != s.ids[topic] {
		return 0, &FatalError{fmt.Errorf("topic %s was recreated since %s last applied its records: restore the old topic, or rebuild the group",
			topic, p.run.r.topo.name)}
	}
	if at.offset >= end {
		return 0, &FatalError{fmt.Errorf("%s/%d ends at %d, but %s applied records up to offset %d: records were lost; restore the topic, or rebuild the group",
			topic, p.id, end, p.run.r.topo.name, at.offset)}
	}
	if start > at.offset+1 && topic != p.run.r.topo.ticks { // lost ticks are sent again
		return 0, &FatalError{fmt.Errorf("%s/%d starts at %d, but %s applied records only up to offset %d: retention deleted records before they "+
			"were processed; restore the topic, or rebuild the group; set a retention longer than the group may be stopped",
			topic, p.id, start, p.run.r.topo.name, at.offset)}
	}
	return max(start, at.offset+1), nil
}

// stopAfterGrace stops the partitions when the grace time for their last commits has passed after the end of the session.
func (s *session) stopAfterGrace(grace time.Duration) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, p := range s.partitions {
		time.AfterFunc(grace, p.cancel)
	}
}
