package rows

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/smartfeed/smartfeed/internal/testkit/eventually"
	"github.com/smartfeed/smartfeed/internal/testkit/faultnet"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/internal/testkit/topicstest"
)

const (
	realKafka = topicstest.RealKafka
	// realServices names the variable with the names of these brokers in .ci/services, which kills and starts them, in the same
	// order.
	realServices = "SERVICES_UP"
)

// newRealWire returns a wire on Apache Kafka, without data of earlier tests, and an embedded registry.
func newRealWire(t testing.TB) *wire {
	t.Helper()
	w := connect(topicstest.RealBare(t, testPartitions))
	w.remove(t, "t", groupTopics()...)
	w.createAll(t)
	eventually.True(t, "every partition has a leader", func() bool { return w.hasLeaders(groupTopics()...) })
	return w
}

// remove deletes a group and topics.
func (w *wire) remove(t testing.TB, group string, names ...string) {
	t.Helper()
	eventually.True(t, "the group is deleted", func() bool {
		_, err := w.admin.DeleteGroup(t.Context(), group)
		return err == nil || errors.Is(err, kerr.GroupIDNotFound)
	})
	w.DeleteTopics(names...)
}

// hasLeaders reports whether every partition of the topics has a leader and all of its replicas.
func (w *wire) hasLeaders(names ...string) bool {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	all, err := w.admin.ListTopics(ctx, names...)
	if err != nil || all.Error() != nil {
		return false
	}
	complete := true
	all.EachPartition(func(p kadm.PartitionDetail) {
		complete = complete && p.Err == nil && p.Leader >= 0 && len(p.ISR) == len(p.Replicas)
	})
	return complete
}

// elect makes the first replica of every partition its leader, as an operator does after a restart. Brokers may refuse some.
func (w *wire) elect(t testing.TB) {
	t.Helper()
	eventually.True(t, "all replicas are in sync", func() bool { return w.hasLeaders(groupTopics()...) })
	must.Get(w.admin.ElectLeaders(t.Context(), kadm.ElectPreferredReplica, nil))(t)
}

// servers returns the names of the brokers that tests may kill.
func servers(t testing.TB) []string {
	t.Helper()
	names := strings.Fields(os.Getenv(realServices))
	if len(names) == 0 {
		t.Skipf("set %s to the names of the brokers in .ci/services", realServices)
	}
	return names
}

// service runs a command of .ci/services for a server.
func service(t testing.TB, command, name string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "../../.ci/services", command, name)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("services %s %s: %v\n%s", command, name, err, out)
	}
}

func TestRealKafkaTortureOfMembers(t *testing.T) {
	tortureOfMembers(t, newRealWire(t))
}

// A broker is killed and restarted. Each of three leads some partitions, and the group continues while the others lead them.
func TestRealKafkaTortureOfBrokers(t *testing.T) {
	w, names := newRealWire(t), servers(t)
	turn := 0
	tortureOfBrokers(t, w, func(d *driver) {
		i := turn % len(names)
		turn++
		eventually.True(t, names[i]+" leads partitions, so that its crash is a fault", func() bool {
			if w.leads(t, i) > 0 {
				return true
			}
			w.elect(t)
			return false
		})
		service(t, "kill", names[i])
		if len(names) > 1 {
			d.caughtUp(t, "without one of three brokers")
		}
		service(t, "start", names[i])
		if len(names) > 1 {
			d.caughtUp(t, "after its restart")
			w.elect(t)
		}
	})
}

// leads returns the number of partitions that the broker with an index leads. Node ids start at one.
func (w *wire) leads(t testing.TB, broker int) (n int) {
	t.Helper()
	all := must.Get(w.admin.ListTopics(t.Context(), groupTopics()...))(t)
	all.EachPartition(func(p kadm.PartitionDetail) {
		if p.Leader == int32(broker+1) {
			n++
		}
	})
	return n
}

// These tests run tests of other files on Kafka instead of the embedded broker.

func TestRealKafkaRecovery(t *testing.T) {
	for _, c := range tableEnds {
		if !c.real {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			w := newRealWire(t)
			w.recoversFrom(t, func() { c.end(t, w) })
		})
	}
}

func TestRealKafkaJoiningAndLeaving(t *testing.T) { joiningAndLeaving(t, newRealWire(t)) }

func TestRealKafkaOffsetsAreAHint(t *testing.T) {
	for name, at := range wrongOffsets {
		t.Run(name, func(t *testing.T) { offsetsAreAHint(t, newRealWire(t), at) })
	}
}

func TestRealKafkaUnknownOutcome(t *testing.T) { unknownOutcome(t, newRealWire(t), true) }

func TestRealKafkaResponsesLost(t *testing.T) {
	c := &cluster{wire: newRealWire(t), net: faultnet.New()}
	responsesLost(t, c, []kmsg.Key{kmsg.Produce, kmsg.EndTxn, kmsg.OffsetCommit})
}

func TestRealKafkaRecreatedInput(t *testing.T) { recreatedInput(t, newRealWire(t)) }

func TestRealKafkaRecordsDeletedUnread(t *testing.T) {
	w := newRealWire(t)
	recordsDeletedUnread(t, w, func() { w.retain(t, w.ends(t)) })
}

// The broker deletes the records by retention.
func TestRealKafkaRecordsExpiredUnread(t *testing.T) {
	w := newRealWire(t)
	recordsDeletedUnread(t, w, func() { w.expireRecords(t) })
}

func TestRealKafkaMarkersDeletedUnread(t *testing.T) { markersDeletedUnread(t, newRealWire(t)) }

func TestRealKafkaRecordsAreNotSkipped(t *testing.T) { recordsAreNotSkipped(t, newRealWire(t)) }

func TestRealKafkaTimersInOrder(t *testing.T) { timersFireInOrder(t, newRealWire(t)) }

func TestRealKafkaManyTimers(t *testing.T) { manyTimers(t, newRealWire(t)) }

func TestRealKafkaTimersSurvive(t *testing.T) { timersSurvive(t, newRealWire(t)) }

// expireRecords sets the retention of t-in to a millisecond and waits until all records are deleted. The brokers of .ci/services
// check every half second; the default is every five minutes.
func (w *wire) expireRecords(t *testing.T) {
	t.Helper()
	w.configure(t, "t-in", map[string]string{"retention.ms": "1"})
	ends := w.ends(t)
	eventually.True(t, "retention has deleted all records", func() bool {
		starts := must.Get(w.admin.ListStartOffsets(t.Context(), "t-in"))(t)
		gone := true
		starts.Each(func(o kadm.ListedOffset) { gone = gone && o.Offset == ends(o.Partition) })
		return gone
	})
}

// configure sets the configuration of a topic until the test ends. It resets the settings even if the topic is deleted: a
// broker (4.1.2) that is killed later applies the settings of a deleted topic to a new topic of the same name.
func (w *wire) configure(t *testing.T, topic string, settings map[string]string) {
	t.Helper()
	var alter, back []kadm.AlterConfig
	for name, value := range settings {
		alter = append(alter, kadm.AlterConfig{Op: kadm.SetConfig, Name: name, Value: &value})
		back = append(back, kadm.AlterConfig{Op: kadm.DeleteConfig, Name: name})
	}
	t.Cleanup(func() { w.alter(context.Background(), t, topic, back) })
	w.alter(t.Context(), t, topic, alter)
}

func (w *wire) alter(ctx context.Context, t *testing.T, topic string, alter []kadm.AlterConfig) {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for _, d := range must.Get(w.admin.AlterTopicConfigs(ctx, alter, topic))(t) {
		must.OK(t, d.Err)
	}
}
