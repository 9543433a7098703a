package app

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	testchild "github.com/smartfeed/smartfeed/internal/testkit/child"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/internal/testkit/oracle/visits"
	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/processors/rules"
	"github.com/smartfeed/smartfeed/topics"
	"github.com/smartfeed/smartfeed/topics/embedded"
)

// shortTimeout is the timeout of a visit for its chunk in tests of degraded responses.
const shortTimeout = 100 * time.Millisecond

// startProcess starts `smartfeed process` with additional flags.
func startProcess(t *testing.T, broker *embedded.Server, flags ...string) *child {
	t.Helper()
	web := testchild.FreeAddress(t)
	c := &child{t: t, http: "http://" + web, flags: []string{"--kafka", broker.Kafka(0).Brokers[0], "--registry", broker.RegistryURL()}}
	c.args = slices.Concat([]string{"process", "--dir", t.TempDir(), "--http", web}, c.flags, flags)
	t.Cleanup(c.kill)
	c.start()
	return c
}

// drain stops the process with a signal, and checks that it shuts down cleanly.
func (c *child) drain() {
	c.t.Helper()
	must.OK(c.t, c.cmd.Process.Signal(syscall.SIGTERM))
	expect.Error(c.t, c.cmd.Wait(), "", "shutdown of the process")
}

// running returns the partitions of a group that run in the process.
func (c *child) running(group string) (partitions []int32) {
	for _, g := range c.counts() {
		if g.Group != group {
			continue
		}
		for _, p := range g.Partitions {
			if p.Stage == rows.StageRunning {
				partitions = append(partitions, p.Partition)
			}
		}
	}
	return partitions
}

// share waits until exactly these processes run every partition of every group, and each process runs some of each group.
// It returns the owners of the pools.
func share(t *testing.T, processes ...*child) map[int32]*child {
	t.Helper()
	all := topics.EmbeddedPartitions
	of := map[int32]*child{}
	processes[0].until(fmt.Sprintf("shared by %d processes", len(processes)), func() bool {
		for _, group := range topics.RowGroups() {
			clear(of)
			total := 0
			for _, c := range processes {
				mine := c.running(group)
				for _, partition := range mine {
					of[partition] = c
				}
				if total += len(mine); len(mine) == 0 {
					return false
				}
			}
			if total != all || len(of) != all {
				return false
			}
		}
		return true
	})
	clear(of)
	for _, c := range processes {
		for _, partition := range c.running(topics.Pools) {
			of[partition] = c
		}
	}
	return of
}

// readerOf returns a reader without other visits whose pools are in one of these partitions.
func readerOf(l *life, partitions ...int32) *reading {
	quiet := l.quiet()
	i := slices.IndexFunc(quiet, func(r *reading) bool {
		return slices.Contains(partitions, topics.Partition(string(r.user), topics.EmbeddedPartitions))
	})
	if i < 0 {
		l.s.t.Fatalf("no reader of %d is in one of the partitions %v", len(quiet), partitions)
	}
	return quiet[i]
}

// moved returns the partitions with a new owner.
func moved(before, after map[int32]*child) (partitions []int32) {
	for partition, c := range after {
		if before[partition] != c {
			partitions = append(partitions, partition)
		}
	}
	return partitions
}

// withoutSinks returns the parts of a serving process that fills no feed store. With an embedded one, it would take half of
// the partitions from another process, whose store would miss their data.
func withoutSinks() []opener {
	return []opener{
		(*App).openDir, openKafka(topics.RoleServe), (*App).openStreams, (*App).openPeers,
		(*App).openFeatures, (*App).openFeedStore, (*App).openFeed, (*App).openServer,
	}
}

// While authors publish and users visit, a third process joins two others, one process is killed, and one is drained. No
// pin is lost, duplicated, or new twice. Chunks are from the current owner of the partition. While there is no owner, a
// visit with a long timeout is complete, and one with a short timeout has no chunk.
func TestProcesses_ShareGroupsThroughJoinKillAndDrain(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes: not with -short")
	}
	t.Parallel()
	broker := startBroker(t)
	cfg := roleConfig(t, broker)
	flags := []string{"--pools.max_candidates", strconv.Itoa(everyCap), "--fanout.max_recent_publications", "5000", "--fanout.step_followers", "3"}
	first, second := startProcess(t, broker, flags...), startProcess(t, broker, flags...)
	front := startPieces(t, cfg, serving())
	hasty := roleConfig(t, broker)
	hasty.Feed.GeneratorTimeout = shortTimeout
	soon := startPieces(t, hasty, withoutSinks())
	two := share(t, first, second)
	l := front.startLife(20)
	for _, r := range l.busy() {
		r.accepted = []string{"generator"} // the request may hit the process during its kill
	}
	l.run()

	third := startProcess(t, broker, flags...)
	three := share(t, first, second, third)
	if got := moved(two, three); len(got) == 0 {
		t.Error("no partition of pools has moved to the third process")
	} else {
		readerOf(l, got...).visit()
	}

	lost := first.running(topics.Pools)
	orphan := readerOf(l, lost...)
	first.kill()
	from := &visits.HTTP{URL: soon.url(""), Client: &http.Client{Timeout: 2 * patience}, Feed: rules.Home, Limit: 5}
	page := must.Get(from.Visit(t.Context(), orphan.user))(t)
	expect.True(t, slices.Contains(page.Degraded, "generator"), "without an owner of the pools, %q includes the generator", page.Degraded)
	orphan.visit() // waits until the partitions have an owner
	share(t, second, third)

	leaves := readerOf(l, second.running(topics.Pools)...)
	second.drain()
	leaves.visit()
	share(t, third)

	pins := l.published.Load()
	third.until("publishing again", func() bool { return l.published.Load() >= pins+30 })
	l.end()
	l.readers[0].wait()
	l.check()
	front.checkReportedOnce()
}
