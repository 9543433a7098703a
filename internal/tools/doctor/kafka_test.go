package doctor_test

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/internal/testkit/topicstest"
	"github.com/smartfeed/smartfeed/internal/tools/doctor"
	"github.com/smartfeed/smartfeed/topics"
)

// wire is a cluster with the checks of the doctor.
type wire struct {
	*topicstest.Cluster
	t      *testing.T
	doctor doctor.Kafka
}

// newWire returns an embedded broker without topics. The doctor checks it like an external one.
func newWire(t *testing.T) *wire {
	t.Helper()
	c := topicstest.Bare(t, 2)
	c.Kafka.Embedded = false
	return &wire{c, t, doctor.Kafka{Kafka: c.Kafka, Member: "test"}}
}

// examine runs the checks and returns their output.
func (w *wire) examine() string {
	w.t.Helper()
	return lines(doctor.Run(w.t.Context(), checkTimeout, w.doctor.Checks()...))
}

// checkTimeout is long, for busy machines.
const checkTimeout = 30 * time.Second

// want reports each missing line.
func want(t *testing.T, got string, want ...string) {
	t.Helper()
	for _, line := range want {
		expect.Contains(t, "\n"+got, "\n"+line, "lines")
	}
}

func TestKafka_FindsNoProblemOnHealthyBroker(t *testing.T) {
	w := newWire(t)
	w.Apply()
	want(t, w.examine(), "kafka ok the embedded broker", "topics ok ",
		"transactions ok wrote to 2 partitions and aborted", "transactions ok clocks are not compared")
	expect.Equal(t, len(w.Records(topics.DeadLetters)), 0, "committed records of the aborted transaction")
}

func TestKafka_ReportsUnreachableBroker(t *testing.T) {
	w := newWire(t)
	w.Apply()
	reached := w.Kafka.Brokers[0]
	w.doctor.Brokers = []string{reached, "127.0.0.1:1"}
	want(t, w.examine(), "kafka problem 127.0.0.1:1 is unreachable: dial tcp 127.0.0.1:1: connect: connection refused", "topics note skipped")
	w.doctor.Brokers = []string{"127.0.0.1:1"}
	w.doctor.Embedded = true
	want(t, w.examine(), "kafka note no broker listens on 127.0.0.1:1", "topics note skipped, because it needs kafka", "transactions note skipped, because it needs topics")
}

func TestTopics_ReportsMissingAndDifferentTopics(t *testing.T) {
	w := newWire(t)
	must.Get(w.Admin().CreateTopic(t.Context(), 3, 1, nil, topics.Pins))(t)
	want(t, w.examine(), "topics problem pins: partitions is 3 and must be 2", "topics problem follows is missing", "transactions note skipped")
}

// three returns a cluster of three brokers with the topics of the catalogue. It supports the settings of topics.
func three(t *testing.T) *wire {
	t.Helper()
	c := must.Get(kfake.NewCluster(kfake.NumBrokers(3)))(t)
	t.Cleanup(c.Close)
	k := topics.Kafka{Brokers: c.ListenAddrs()[:1], Partitions: 2}
	must.Get(topics.Apply(t.Context(), k, topics.Catalogue(topics.Profile{Partitions: 2})))(t)
	return &wire{topicstest.On(t, k, nil), t, doctor.Kafka{Kafka: k, Member: "test"}}
}

// examineTopics runs the checks up to that of topics.
func (w *wire) examineTopics() string {
	w.t.Helper()
	return run(w.t, w.doctor.Checks()[:3]...)
}

// second creates the topics of a second generation of the pools and makes it active.
func (w *wire) second(p topics.Profile) {
	w.t.Helper()
	w.CreateGeneration(p, 2)
	w.SetGeneration(2, 0)
}

// The check includes the topics of the active generation.
func TestTopics_ChecksActiveGeneration(t *testing.T) {
	w := three(t)
	w.second(topics.Profile{Partitions: 2, Replicas: 2}) // created while a broker was unavailable
	want(t, w.examineTopics(),
		"topics warning fewer replicas than the number of brokers permits: pools.2-table (2 of 3), pools.2-ticks (2 of 3)")
	w.SetConfig("pools.2-table", "retention.ms", "3600000")
	must.Get(w.Admin().DeleteTopics(t.Context(), "pools.2-ticks"))(t)
	want(t, w.examineTopics(),
		"topics warning pools.2-table: retention.ms is 3600000 and must be -1", "topics problem pools.2-ticks is missing")
}

// Without permissions for generations, the check reports a note, not a problem.
func TestTopics_SkipsGenerationsWithoutPermission(t *testing.T) {
	const note = "topics note the topics of generations are not checked: "
	for role, says := range map[string]string{
		topics.RoleMaterialize: note, topics.RoleServe: note,
		topics.RoleProcess: "topics warning pools.2-table: ", topics.RoleOperate: "topics warning pools.2-table: ",
	} {
		t.Run(role, func(t *testing.T) {
			w := guarded(t, role)
			w.second(topics.Profile{Partitions: 2, Replicas: 1})
			w.SetConfig("pools.2-table", "retention.ms", "3600000")
			want(t, w.examineTopics(), says)
		})
	}
}

// answers makes the broker respond to one kind of request with an error, and counts the requests.
func (w *wire) answers(key kmsg.Key, failed func(kmsg.Request) kmsg.Response) *int {
	n := new(int)
	w.Broker().ControlKey(key.Int16(), func(r kmsg.Request) (kmsg.Response, error, bool) {
		w.Broker().KeepControl()
		*n++
		return failed(r), nil, true
	})
	return n
}

func TestTransaction_ReportsFailure(t *testing.T) {
	for name, c := range map[string]struct {
		code *kerr.Error
		want string
	}{
		"denied": {kerr.TransactionalIDAuthorizationFailed, "transactions problem a transaction was denied: "},
		"broken": {kerr.InvalidProducerEpoch, "transactions problem a transaction failed: "},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWire(t)
			w.Apply()
			hit := w.answers(kmsg.InitProducerID, func(r kmsg.Request) kmsg.Response {
				resp, _ := r.ResponseKind().(*kmsg.InitProducerIDResponse)
				resp.ErrorCode = c.code.Code
				return resp
			})
			want(t, w.examine(), c.want)
			expect.AtLeast(t, *hit, 1, "requests that hit the fault")
		})
	}
}

// guarded returns a broker that grants a user only the permissions of the roles.
func guarded(t *testing.T, roles ...string) *wire {
	t.Helper()
	root, as := topicstest.Guarded(t, "ada")
	w := &wire{topicstest.On(t, root, nil), t, doctor.Kafka{Kafka: as("ada"), Member: "test"}}
	for _, role := range roles {
		grants := must.Get(topics.Grants(role, topics.Catalogue(topics.Profile{Partitions: 2, Replicas: 1})))(t)
		topicstest.Grant(t, w.Admin(), "User:ada", grants)
	}
	return w
}

func TestAccess_ReportsMissingPermissions(t *testing.T) {
	for _, c := range []struct {
		name  string
		roles []string
		want  []string
	}{
		{"all", topics.Roles(), []string{"access ok this user has the permissions of every role", "topics ok "}},
		{"a role that includes others", []string{topics.RoleServe}, []string{"access note this user has the permissions of materialize, serve, produce, and not of process, operate", "topics ok "}},
		{"none", nil, []string{"access problem this user lacks permissions: the role process needs ", "topics problem Describe on topic "}},
	} {
		t.Run(c.name, func(t *testing.T) {
			want(t, guarded(t, c.roles...).examineTopics(), c.want...)
		})
	}
}
