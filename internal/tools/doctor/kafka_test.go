package doctor_test

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/smartfeed/smartfeed/internal/secure"
	"github.com/smartfeed/smartfeed/internal/testkit/faultnet"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/internal/testkit/topicstest"
	"github.com/smartfeed/smartfeed/internal/tools/doctor"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
	"github.com/smartfeed/smartfeed/topics/generation"
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
	return &wire{c, t, doctor.Kafka{Kafka: c.Kafka, Member: "test", Now: time.Now, Readers: []topics.Reader{
		{Group: topics.Fanout, Topics: []string{topics.Follows}}, {Group: topics.Features, Topics: []string{topics.ActionsEnriched}},
	}}}
}

// produce sends n records with different keys.
func (w *wire) produce(topic string, n int) {
	w.t.Helper()
	for i := range n {
		w.Produce(topic, "user:"+strconv.Itoa(i), []byte("x"))
	}
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
		if !strings.Contains("\n"+got, "\n"+line) {
			t.Errorf("no line %q in\n%s", line, got)
		}
	}
}

func TestKafka_FindsNoProblemOnHealthyBroker(t *testing.T) {
	w := newWire(t)
	w.Apply()
	want(t, w.examine(), "kafka ok the embedded broker", "topics ok ",
		"transactions ok wrote to 2 partitions and aborted", "transactions ok clocks are not compared",
		"groups warning fanout: no member; 0 records unprocessed", "dead letters ok none")
	// The aborted transaction left no committed record.
	want(t, w.examine(), "dead letters ok none")
}

func TestKafka_ReportsUnreachableBroker(t *testing.T) {
	w := newWire(t)
	w.Apply()
	reached := w.Kafka.Brokers[0]
	w.doctor.Brokers = []string{reached, "127.0.0.1:1"}
	want(t, w.examine(), "kafka problem 127.0.0.1:1 is unreachable: dial tcp 127.0.0.1:1: connect: connection refused", "topics note skipped")
	w.doctor.Brokers = []string{"127.0.0.1:1"}
	w.doctor.Embedded = true
	want(t, w.examine(), "kafka note no broker listens on 127.0.0.1:1", "topics note skipped, because it needs kafka", "groups note skipped, because it needs topics")
}

func TestTopics_ReportsMissingAndDifferentTopics(t *testing.T) {
	w := newWire(t)
	must.Get(w.Admin().CreateTopic(t.Context(), 3, 1, nil, topics.Pins))(t)
	want(t, w.examine(), "topics problem pins: partitions is 3 and must be 2", "topics problem follows is missing", "transactions note skipped")
}

// three returns a cluster of three brokers with the topics of the catalogue. It supports the settings of topics.
func three(t *testing.T) (*wire, *kfake.Cluster) {
	t.Helper()
	c, err := kfake.NewCluster(kfake.NumBrokers(3))
	must.OK(t, err)
	t.Cleanup(c.Close)
	k := topics.Kafka{Brokers: c.ListenAddrs()[:1], Partitions: 2}
	must.Get(topics.Apply(t.Context(), k, topics.Catalogue(topics.Profile{Partitions: 2})))(t)
	return &wire{topicstest.On(t, k, nil), t, doctor.Kafka{Kafka: k, Member: "test", Now: time.Now}}, c
}

// examineTopics runs the checks up to that of topics.
func (w *wire) examineTopics() string {
	w.t.Helper()
	return run(w.t, w.doctor.Checks()[:3]...)
}

// A partition is writable if it has the in-sync replicas that its topic requires. The number of running brokers does not
// matter.
func TestTopics_ReportsPartitionsBelowMinISR(t *testing.T) {
	for name, c := range map[string]struct {
		left []int32
		want string
	}{
		"all available":   {[]int32{0, 1, 2}, "topics ok "},
		"one unavailable": {[]int32{0, 1}, "topics warning pins: 2 partitions with missing replicas"},
		"two unavailable": {[]int32{0}, "topics problem pins: 2 partitions cannot be written: fewer in-sync replicas than 2"},
	} {
		t.Run(name, func(t *testing.T) {
			w, brokers := three(t)
			for broker := int32(len(c.left)); broker < 3; broker++ {
				must.OK(t, brokers.RemoveNode(broker))
			}
			net := faultnet.New()
			w.doctor.Dial = net.Dial
			net.Alter(kmsg.Metadata, 1, func(r kmsg.Response) { // kfake does not report unavailable replicas
				told, _ := r.(*kmsg.MetadataResponse)
				for i := range told.Topics {
					for j := range told.Topics[i].Partitions {
						told.Topics[i].Partitions[j].Replicas, told.Topics[i].Partitions[j].ISR = []int32{0, 1, 2}, c.left
					}
				}
			})
			want(t, w.examineTopics(), c.want)
			if net.Hits(kmsg.Metadata) == 0 {
				t.Error("no metadata response was altered")
			}
		})
	}
}

// second creates the topics of a second generation of the pools and makes it active.
func (w *wire) second(p topics.Profile) {
	w.t.Helper()
	w.CreateGeneration(p, 2)
	w.SetGeneration(2, 0)
}

// The check includes the topics of the active generation.
func TestTopics_ChecksActiveGeneration(t *testing.T) {
	w, _ := three(t)
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
			if *hit == 0 {
				t.Error("no request hit the fault")
			}
		})
	}
}

func TestGroups_ReportsLagAndLostRecords(t *testing.T) {
	w := newWire(t)
	w.Apply()
	w.produce(topics.Follows, 7)
	adm := w.Admin()
	commit := func(at int64) {
		t.Helper()
		var offsets kadm.Offsets
		for p := range int32(2) {
			offsets.Add(kadm.Offset{Topic: topics.Follows, Partition: p, At: at})
		}
		must.OK(t, adm.CommitAllOffsets(t.Context(), topics.Fanout, offsets))
	}
	commit(0)
	want(t, w.examine(), "groups warning fanout: no member; 7 records unprocessed")
	var gone kadm.Offsets
	gone.Add(kadm.Offset{Topic: topics.Follows, Partition: 0, At: 1})
	gone.Add(kadm.Offset{Topic: topics.Follows, Partition: 1, At: 1})
	must.Get(adm.DeleteRecords(t.Context(), gone))(t)
	want(t, w.examine(), "groups problem fanout: retention deleted records of follows/")
}

func TestGroups_AcceptsRunningMember(t *testing.T) {
	w := newWire(t)
	w.Apply()
	w.doctor.Readers = w.doctor.Readers[:1]
	member, err := w.Kafka.Client(kgo.ConsumerGroup(topics.Fanout), kgo.ConsumeTopics(topics.Follows))
	must.OK(t, err)
	defer member.Close()
	ctx, cancel := context.WithTimeout(t.Context(), checkTimeout)
	defer cancel()
	w.produce(topics.Follows, 1)
	member.PollRecords(ctx, 1)
	must.OK(t, member.CommitUncommittedOffsets(ctx))
	want(t, w.examine(), "groups ok 1 group with 1 member, a lag of at most 0 records")
}

// generation creates the topics of a generation of the pools and starts a member, which processes all records. It returns
// a function that stops the member.
func (w *wire) generation(number int) (stop func()) {
	w.t.Helper()
	name := generation.Name(topics.Pools, number)
	if number > generation.First {
		w.CreateGeneration(topics.Profile{Embedded: true, Partitions: 2}, number)
	}
	member := w.Client(kgo.ConsumerGroup(name), kgo.ConsumeTopics(topics.Deliveries))
	w.produce(topics.Deliveries, 1)
	ctx, cancel := context.WithTimeout(w.t.Context(), checkTimeout)
	defer cancel()
	ends := w.End(topics.Deliveries)
	for at := int64(0); at < ends; {
		at += int64(member.PollRecords(ctx, 0).NumRecords())
		if ctx.Err() != nil {
			w.t.Fatalf("%s has read %d of %d records", name, at, ends)
		}
	}
	if err := member.CommitUncommittedOffsets(ctx); err != nil {
		w.t.Fatal(err)
	}
	return member.Close
}

// The check includes the active generation and the one that is being built, but not a retired one.
func TestGroups_ChecksRunningGenerations(t *testing.T) {
	w := newWire(t)
	w.Apply()
	w.doctor.Readers = []topics.Reader{{Group: topics.Pools, Topics: []string{topics.Deliveries, topics.TicksOf(topics.Pools)}}}
	stop := w.generation(1)
	w.SetGeneration(1, 2)
	stopNext := w.generation(2)
	w.produce(topics.TicksOf("pools.2"), 5)
	want(t, w.examine(), "groups ok 2 groups with 2 members, a lag of at most 1 record") // the first has not read the second's record

	w.SetGeneration(2, 0)
	stop()
	want(t, w.examine(), "groups ok 1 group with 1 member, a lag of at most 0 records")

	stopNext()
	w.produce(topics.Deliveries, 3)
	results := doctor.Run(t.Context(), checkTimeout, w.doctor.Checks()...)
	at := slices.IndexFunc(results, func(r doctor.Result) bool { return r.Name == doctor.GroupsCheck })
	diff := cmp.Diff(doctor.Findings{{
		Level: doctor.Warning, Message: "pools.2: no member; 3 records unprocessed", Advice: `start "smartfeed process pools"`,
	}}, results[at].Findings)
	if diff != "" {
		t.Errorf("active generation without members (-want +got):\n%s", diff)
	}
}

func TestDeadLetters_CountsRecentRecords(t *testing.T) {
	w := newWire(t)
	w.Apply()
	w.produce(topics.DeadLetters, 3)
	want(t, w.examine(), "dead letters warning 3 records in the last 24 h")
	w.doctor.Now = func() time.Time { return time.Now().Add(48 * time.Hour) }
	want(t, w.examine(), "dead letters ok none")
}

// head is a store with the same position for every user.
type head int64

func (h head) Page(_ context.Context, user schemas.UserID, _ int64, _ int) ([]schemas.FeedEntry, int64, error) {
	if h < 0 {
		return nil, 0, nil
	}
	return []schemas.FeedEntry{{User: user, Position: int64(h)}}, 0, nil
}

func TestDrift_ReportsLaggingStore(t *testing.T) {
	w := newWire(t)
	w.Apply()
	w.produce(topics.FeedEntries, 5)
	for name, c := range map[string]struct {
		primary, standby head
		want             string
	}{
		"equal":         {4, 4, "drift ok both stores have the same newest items of the 5 last visited feeds"},
		"empty":         {-1, -1, "drift ok both stores"},
		"standby lags":  {4, 3, "drift warning the standby lags in 5 of the 5 last visited feeds"},
		"primary empty": {-1, 3, "drift warning the primary lags in 5 of the 5 last visited feeds"},
	} {
		with := func(_ context.Context, use func(primary, standby doctor.Heads)) error {
			use(c.primary, c.standby)
			return nil
		}
		check := doctor.Drift{Kafka: w.Kafka, With: with}.Check()
		t.Run(name, func(t *testing.T) { want(t, lines(doctor.Run(t.Context(), checkTimeout, check)), c.want) })
	}
}

// guarded returns a broker that grants a user only the permissions of the roles.
func guarded(t *testing.T, roles ...string) *wire {
	t.Helper()
	acls := []kfake.ACL{}
	for _, role := range roles {
		grants, err := topics.Grants(role, topics.Catalogue(topics.Profile{Partitions: 2, Replicas: 1}))
		must.OK(t, err)
		for _, g := range grants {
			acls = append(acls, acl(t, g)...)
		}
	}
	c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.EnableSASL(), kfake.EnableACLs(),
		kfake.Superuser(topics.Plain, "root", "secret"), kfake.User(topics.Plain, "ada", "secret", acls...))
	must.OK(t, err)
	t.Cleanup(c.Close)
	as := func(user string) topics.Kafka {
		return topics.Kafka{Brokers: c.ListenAddrs(), Partitions: 2, SASL: topics.SASL{
			Mechanism: topics.Plain, Login: secure.Login{User: user, Password: "secret"},
		}}
	}
	must.Get(topics.Apply(t.Context(), as("root"), topics.Catalogue(topics.Profile{Partitions: 2, Replicas: 1})))(t)
	return &wire{topicstest.On(t, as("root"), nil), t, doctor.Kafka{Kafka: as("ada"), Member: "test", Now: time.Now}}
}

func acl(t *testing.T, g topics.Grant) (all []kfake.ACL) {
	t.Helper()
	resource, err := kmsg.ParseACLResourceType(g.Kind)
	must.OK(t, err)
	pattern := kmsg.ACLResourcePatternTypeLiteral
	if g.Prefix {
		pattern = kmsg.ACLResourcePatternTypePrefixed
	}
	for _, name := range g.Operations {
		op, err := kmsg.ParseACLOperation(name)
		must.OK(t, err)
		all = append(all, kfake.ACL{Resource: resource, Name: g.Name, Pattern: pattern, Operation: op, Allow: true})
	}
	return all
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
			got := "\n" + guarded(t, c.roles...).examineTopics()
			for _, want := range c.want {
				if !strings.Contains(got, "\n"+want) {
					t.Errorf("no line begins with %q:\n%s", want, got)
				}
			}
		})
	}
}
