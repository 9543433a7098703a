package app

import (
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/sr/srfake"

	"github.com/smartfeed/smartfeed/internal/secure"
	"github.com/smartfeed/smartfeed/internal/status"
	testchild "github.com/smartfeed/smartfeed/internal/testkit/child"
	"github.com/smartfeed/smartfeed/internal/testkit/eventually"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/internal/testkit/securetest"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/serving/api"
	"github.com/smartfeed/smartfeed/topics"
)

// restricted is a broker and a registry. Each role has its own Kafka user, named after the role, with only the permissions
// that "topics acls" prints for the role.
type restricted struct {
	t        *testing.T
	brokers  []string
	registry string
}

func newRestricted(t *testing.T) *restricted {
	t.Helper()
	const root = "root"
	opts := []kfake.Opt{
		kfake.NumBrokers(1), kfake.ClusterID(topics.EmbeddedCluster + "restricted"),
		kfake.GroupMinSessionTimeout(time.Second), kfake.SleepOutOfOrder(),
		kfake.EnableSASL(), kfake.EnableACLs(), kfake.Superuser(topics.ScramSHA256, root, securetest.Literal),
	}
	for _, role := range topics.Roles() {
		opts = append(opts, kfake.User(topics.ScramSHA256, role, securetest.Literal))
	}
	cluster := must.Get(kfake.NewCluster(opts...))(t)
	t.Cleanup(cluster.Close)
	registry := srfake.New()
	t.Cleanup(registry.Close)
	f := &restricted{t, cluster.ListenAddrs(), registry.URL()}
	f.run(root, "topics", "apply")
	adm := must.Get(topics.Kafka{Brokers: f.brokers, SASL: loginOf(root)}.Admin())(t)
	defer adm.Close()
	for _, role := range topics.Roles() {
		allow(t, adm, f.run(root, "topics", "acls", role, "--principal", "User:"+role))
	}
	return f
}

func loginOf(user string) topics.SASL {
	return topics.SASL{Mechanism: topics.ScramSHA256, Login: secure.Login{User: user, Password: securetest.Literal}}
}

// start starts a role as its user.
func (f *restricted) start(role string, pieces []opener) *started {
	f.t.Helper()
	cfg := testConfig(f.t.TempDir())
	cfg.Kafka, cfg.Registry, cfg.HTTP = f.brokers, f.registry, testchild.FreeAddress(f.t)
	cfg.Pools.InactiveAfter = time.Second
	cfg.KafkaClient.SASL = loginOf(role)
	return startPieces(f.t, cfg, pieces)
}

// run executes a command as a user and returns its output.
func (f *restricted) run(user string, args ...string) string {
	f.t.Helper()
	environ := []string{
		"SMARTFEED_KAFKA_CLIENT_SASL_MECHANISM=" + topics.ScramSHA256, "SMARTFEED_KAFKA_CLIENT_SASL_USER=" + user,
		"SMARTFEED_KAFKA_CLIENT_SASL_PASSWORD=" + securetest.Literal,
	}
	code, out, problems := execute(f.t, environ, append(args, "--kafka", f.brokers[0], "--registry", f.registry)...)
	if code != 0 {
		f.t.Fatalf("%v as %s: exit code %d\n%s%s", args, user, code, out, problems)
	}
	return out
}

// After a cut-over, each role works with only the permissions that "topics acls" prints for it. A serving process reports
// the lag of the new generation, lists dead letters and retries them. The doctor finds no problem.
func TestACLs_SufficeAfterCutOver(t *testing.T) {
	t.Parallel()
	f := newRestricted(t)
	process := f.start(topics.RoleProcess, processing(topics.RowGroups()))
	front := f.start(topics.RoleServe, serving())
	f.run(topics.RoleOperate, "rebuild", "all", "--timeout", processingTimeout)
	process.answersFrom(2)
	front.checkLag("pools.2")
	front.checkDeadLetters()
	f.run(topics.RoleOperate, "doctor", "--http", front.server.Addr(), "--timeout", patience.String())
}

// checkLag checks that the status reports the lag of a group in another process.
func (s *started) checkLag(group string) {
	s.t.Helper()
	now := get[status.Status](s.api(), "/v1/status")
	at := slices.IndexFunc(now.Groups, func(g status.Group) bool { return g.Group == group })
	if at < 0 || len(now.Groups[at].Lag) == 0 || len(now.Unavailable) > 0 {
		s.t.Errorf("got groups %+v with missing %v, want the lag of %s", now.Groups, now.Unavailable, group)
	}
}

// publishDance publishes an action with an unknown verb, which becomes a dead letter.
func (s *started) publishDance(actor schemas.UserID, pin schemas.ID) {
	s.t.Helper()
	dance := schemas.Event{ID: "dance", Time: schemas.MicrosOf(time.Now()), Actor: actor, Verb: "dance", Object: pin}
	must.OK(s.t, s.publisher.Publish(s.t.Context(), []schemas.Line{schemas.NewLine(&schemas.ActionEvent{Event: dance})}))
}

// checkDeadLetters lists and retries a record that cannot be processed.
func (s *started) checkDeadLetters() {
	s.t.Helper()
	s.publishDance("user:b", "pin:1")
	eventually.True(s.t, "the dead letter is listed", func() bool {
		list := get[struct {
			DeadLetters []struct{ Retried bool } `json:"dead_letters"`
		}](s.api(), "/v1/dead-letters").DeadLetters
		return len(list) > 0 && !list[len(list)-1].Retried
	})
	expect.AtLeast(s.t, post[api.Retried](s.api(), "/v1/dead-letters/retry", "{}").Published, 1, "retried dead letters")
}
