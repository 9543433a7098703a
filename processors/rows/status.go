package rows

import (
	"sync"
	"time"
)

// Status is the state of a group in this process.
type Status struct {
	Group       string            `json:"group"`
	Starts      int64             `json:"starts"` // number of calls of Run
	Joined      bool              `json:"joined"` // is a member of the consumer group; it may have no partitions
	Ready       bool              `json:"ready"`  // joined, and no partition is recovering
	Partitions  []PartitionStatus `json:"partitions"`
	Counters    Counters          `json:"counters"`
	Dropped     map[string]int64  `json:"dropped,omitempty"`      // records dropped on purpose since the process started, by reason
	DeadLetters map[string]int64  `json:"dead_letters,omitempty"` // dead letters since the process started, by reason without names and numbers
	Effects     map[string]int64  `json:"effects,omitempty"`      // effects of the group's rules, by name; see Tx.Effect
	PerSecond   float64           `json:"records_per_second"`     // applied input records, averaged over the last ten seconds
}

// Stage is the stage of a partition in this process.
type Stage string

// The stages of a partition.
const (
	StageRecovering Stage = "recovering" // assigned; its rows are being read from the changelog
	StageRunning    Stage = "running"    // assigned and recovered
	StageStandby    Stage = "standby"    // owned by another process; this one keeps a hot copy
)

// PartitionStatus is the state of one partition in this process.
type PartitionStatus struct {
	Partition int32            `json:"partition"`
	Stage     Stage            `json:"stage"`
	Table     int64            `json:"table_offset"`        // changelog offset of the local store; -1: it is empty
	End       int64            `json:"table_end,omitempty"` // during recovery: the changelog offset where it ends
	Applied   map[string]int64 `json:"applied,omitempty"`   // last applied offset by input topic, committed or pending
}

// Counters holds counts since the process started.
type Counters struct {
	Records     int64 `json:"records"`      // input records applied
	Rows        int64 `json:"rows"`         // rows written
	Deletes     int64 `json:"deletes"`      // rows deleted
	Emitted     int64 `json:"emitted"`      // records emitted
	Commits     int64 `json:"commits"`      // transactions
	Skipped     int64 `json:"skipped"`      // input records that were read again and skipped
	DeadLetters int64 `json:"dead_letters"` // records sent to the dead-letter topic
	Misplaced   int64 `json:"misplaced"`    // records forwarded to the right partition
	Recovered   int64 `json:"recovered"`    // changelog records read
}

// Add adds the counts of another process.
func (c *Counters) Add(o Counters) {
	c.Records += o.Records
	c.Rows += o.Rows
	c.Deletes += o.Deletes
	c.Emitted += o.Emitted
	c.Commits += o.Commits
	c.Skipped += o.Skipped
	c.DeadLetters += o.DeadLetters
	c.Misplaced += o.Misplaced
	c.Recovered += o.Recovered
}

// Status returns a snapshot. It waits for running callbacks.
func (r *Runner) Status() Status {
	s := r.status((*partition).appliedByTopic)
	s.Counters, s.Dropped, s.DeadLetters = r.meter.counters(), r.meter.dropReasons.snapshot(), r.meter.deadLetterReasons.snapshot()
	s.Effects, s.PerSecond = r.meter.effectCounts.snapshot(), r.meter.rate.perSecond(time.Now())
	return s
}

// Readiness returns a snapshot without counters and applied offsets. It does not wait for running callbacks, which may hang.
func (r *Runner) Readiness() Status {
	return r.status(func(*partition) map[string]int64 { return nil })
}

func (r *Runner) status(applied func(*partition) map[string]int64) Status {
	s := Status{Group: r.topo.name, Starts: r.runs.Load(), Joined: r.joined.Load()}
	s.Ready = s.Joined
	for i := range r.slots {
		if p, here := r.slots[i].status(int32(i), applied); here {
			s.Partitions = append(s.Partitions, p)
			s.Ready = s.Ready && p.Stage != StageRecovering
		}
	}
	return s
}

func (at *slot) status(partition int32, applied func(*partition) map[string]int64) (PartitionStatus, bool) {
	at.mu.RLock()
	defer at.mu.RUnlock()
	if at.store == nil {
		return PartitionStatus{}, false
	}
	s := PartitionStatus{Partition: partition, Stage: at.stage}
	s.Table, s.End = at.store.progress()
	if at.partition != nil {
		s.End, s.Applied = 0, applied(at.partition)
	}
	return s, true
}

func (p *partition) appliedByTopic() map[string]int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	by := map[string]int64{}
	for i, topic := range p.run.r.topo.reads() {
		if p.applied[i] >= 0 {
			by[topic] = p.applied[i]
		}
	}
	return by
}

// rate counts events of the last rateSeconds.
type rate struct {
	mu      sync.Mutex
	seconds [rateSeconds]int64 // counts by second modulo rateSeconds
	last    int64              // newest second
}

const rateSeconds = 10

func (r *rate) add(n int, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.forget(now.Unix())
	r.seconds[now.Unix()%rateSeconds] += int64(n)
}

func (r *rate) perSecond(now time.Time) float64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.forget(now.Unix())
	sum := int64(0)
	for _, n := range r.seconds {
		sum += n
	}
	return float64(sum) / rateSeconds
}

// forget clears the seconds between the newest and now.
func (r *rate) forget(now int64) {
	for s := max(r.last+1, now-rateSeconds+1); s <= now; s++ {
		r.seconds[s%rateSeconds] = 0
	}
	r.last = max(r.last, now)
}
