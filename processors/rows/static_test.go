package rows

import (
	"testing"
	"time"

	"github.com/smartfeed/smartfeed/internal/testkit/eventually"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
)

func TestStaticMembers(t *testing.T) {
	t.Parallel()
	staticMembers(t, newWire(t))
}

func TestRealKafkaStaticMembers(t *testing.T) { staticMembers(t, newRealWire(t)) }

// A static member that restarts gets its partitions back without a rebalance. If it does not restart, the others get its
// partitions after the session timeout, and not before. Records in the meantime wait and are counted once.
func staticMembers(t *testing.T, w *wire) {
	const name = 2
	// Long enough that a busy machine starts a member in time, and that heartbeats of the other one arrive. Otherwise, the
	// member would rightly count as dead.
	const session = 30 * time.Second
	member := func(as, dir string) *Runner {
		env := w.env(t)
		env.Kafka.Member = as
		cfg := w.config(dir)
		cfg.SessionTimeout = session
		return must.Get(New(cfg, env, w.counter("t-in")))(t)
	}
	dirs := [name]string{t.TempDir(), t.TempDir()}
	names := [name]string{"127.0.0.1:8081", "127.0.0.1:8082"}
	var runners [name]*Runner
	var stops [name]func() error
	for i := range runners {
		runners[i] = member(names[i], dirs[i])
		stops[i] = start(t, runners[i])
	}
	shared := func() bool { return stages(runners[0], StageRunning) == 2 && stages(runners[1], StageRunning) == 2 }
	eventually.True(t, "both own partitions", shared)
	for i := range runners { // the group's leader and the other
		had, others := owned(runners[i]), runners[1-i].owned.Load()
		began := time.Now()
		must.OK(t, stops[i]())
		w.send(t, "t-in", 0, testPartitions, func(n int) string { return ownerIn(int32(n)) })
		runners[i] = member(names[i], dirs[i])
		stops[i] = start(t, runners[i])
		eventually.True(t, "the member has rejoined", shared)
		t.Logf("offline for %s", time.Since(began).Round(time.Millisecond))
		if got := owned(runners[i]); got != had {
			t.Errorf("it rejoined with the partitions %v, want the same as before, %v", got, had)
		}
		if got := runners[1-i].owned.Load(); got != others {
			t.Errorf("the other member acquired %d partitions meanwhile, want none", got-others)
		}
	}
	began := time.Now() // before it has stopped: the session timeout counts from its last heartbeat
	must.OK(t, stops[0]())
	eventually.True(t, "the other member owns all partitions", func() bool { return stages(runners[1], StageRunning) == testPartitions })
	t.Logf("the other member owned all partitions after %s", time.Since(began).Round(time.Millisecond))
	if took := time.Since(began); took < session/2 {
		t.Errorf("the other member owned all partitions after %s: a static member must not leave the group", took)
	}
	for p := range int32(testPartitions) {
		eventually.True(t, "each record is counted", func() bool { return count(t, runners[1], ownerIn(p)) == name })
	}
}

// owned returns which partitions a member owns.
func owned(r *Runner) (all [testPartitions]bool) {
	for _, p := range r.Status().Partitions {
		all[p.Partition] = p.Stage == StageRunning
	}
	return all
}
