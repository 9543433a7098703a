package app

import (
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/smartfeed/smartfeed/internal/config"
	"github.com/smartfeed/smartfeed/internal/secure"
	"github.com/smartfeed/smartfeed/internal/testkit/cassandratest"
	testchild "github.com/smartfeed/smartfeed/internal/testkit/child"
	"github.com/smartfeed/smartfeed/internal/testkit/eventually"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/internal/testkit/securetest"
	"github.com/smartfeed/smartfeed/internal/testkit/topicstest"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/serving/feedstore"
	"github.com/smartfeed/smartfeed/serving/feedstore/cassandra"
	"github.com/smartfeed/smartfeed/topics"
)

// Environment variables with the addresses of a Kafka broker, a registry and a Cassandra node that require TLS and a login
// (kafka-secured, registry-secured and cassandra-secured of .ci/services), and with the directory of their certificates.
const (
	realSecured          = "SMARTFEED_TEST_KAFKA_SECURED"
	realSecuredRegistry  = "SMARTFEED_TEST_REGISTRY_SECURED"
	realSecuredCassandra = "SMARTFEED_TEST_CASSANDRA_SECURED"
	realCertificates     = "SMARTFEED_TEST_CERTIFICATES"
)

// securedFile writes a configuration with TLS and a login on every connection, followed by more.
func securedFile(t *testing.T, more string) string {
	t.Helper()
	kafka, registry := os.Getenv(realSecured), os.Getenv(realSecuredRegistry)
	if kafka == "" || registry == "" {
		t.Skipf("set %s and %s to the addresses of a Kafka broker and a registry that require TLS and a login", realSecured, realSecuredRegistry)
	}
	file := filepath.Join(t.TempDir(), "smartfeed.yaml")
	text := fmt.Sprintf(`
kafka: [%[1]s]
kafka_client:
  tls: {enabled: true, ca_file: %[3]s/ca.pem}
  sasl: {mechanism: SCRAM-SHA-512, user: smartfeed, password_file: %[3]s/password}
registry: https://%[2]s/apis/ccompat/v7
registry_client: {tls: {ca_file: %[3]s/ca.pem}, user: smartfeed, password_file: %[3]s/password}
partitions: 4
`, kafka, registry, os.Getenv(realCertificates))
	must.OK(t, os.WriteFile(file, []byte(text+more), 0o600))
	return file
}

// With TLS and a login on every connection, topics can be created, groups run, and an event reaches a feed.
func TestRealSecured_ProcessesEvents(t *testing.T) {
	file := securedFile(t, "")
	command := func(args ...string) { configured(t, file, args...) }
	command("topics", "apply")
	role := func(pieces []opener) *started {
		cfg := testConfig(t.TempDir())
		must.OK(t, config.Load(&cfg, config.Source{File: file}))
		shortHandover(&cfg)
		cfg.HTTP = testchild.FreeAddress(t)
		return startPieces(t, cfg, pieces)
	}
	role(processing(topics.RowGroups()))
	front := role(serving())
	events := filepath.Join(t.TempDir(), "events.jsonl")
	now := time.Now().UTC().Format(time.RFC3339)
	text := fmt.Sprintf(`{"stream":"follows","id":"f-%[1]s","time":"%[1]s","actor":"user:ada","verb":"follow","object":"user:bob"}
{"stream":"pins","id":"p-%[1]s","time":"%[1]s","actor":"user:bob","verb":"create","object":"pin:1","title":"t","link":"https://example.com"}
`, now)
	must.OK(t, os.WriteFile(events, []byte(text), 0o600))
	command("publish", events)
	command("wait", "--timeout", processingTimeout)
	expect.Contains(t, front.api().get("/v1/users/user:ada/feed"), `"pin:1"`, "the feed")
	for name, says := range map[string]string{"SMARTFEED_KAFKA_CLIENT_SASL_PASSWORD": "SASL_AUTHENTICATION_FAILED", "SMARTFEED_REGISTRY_CLIENT_PASSWORD": "401"} {
		t.Run("wrong "+name, func(t *testing.T) { wrongPassword(t, file, name, says) })
	}
}

// Each role works as its own user with only the permissions that "topics acls" prints for it, and those of
// docs/operations/deploy.md in the feed store. A role without a permission does not start, and the error names the
// permission.
func TestRealSecured_RolesNeedOnlyPrintedPermissions(t *testing.T) {
	g := newGuarded(t)
	for _, role := range topics.Roles() {
		g.admit(role)
	}
	g.as("", "topics", "apply")
	g.as(topics.RoleOperate, "feed-store", "apply")
	g.as(topics.RoleOperate, "feed-store", "verify")
	g.grant(topics.RoleMaterialize, "SELECT", "MODIFY")
	g.grant(topics.RoleServe, "SELECT")
	g.start(topics.RoleProcess, processing(topics.RowGroups()))
	g.start(topics.RoleMaterialize, materializing())
	front := g.start(topics.RoleServe, serving())
	events := filepath.Join(t.TempDir(), "events.jsonl")
	now := time.Now().UTC().Format(time.RFC3339)
	text := fmt.Sprintf(`{"stream":"follows","id":"f-%[2]s","time":"%[1]s","actor":"user:%[2]s","verb":"follow","object":"user:bob-%[2]s"}
{"stream":"pins","id":"p-%[2]s","time":"%[1]s","actor":"user:bob-%[2]s","verb":"create","object":"pin:%[2]s","title":"t","link":"https://example.com"}
{"stream":"actions","id":"a-%[2]s","time":"%[1]s","actor":"user:%[2]s","verb":"click","object":"pin:%[2]s","surface":"home"}
`, now, g.run)
	must.OK(t, os.WriteFile(events, []byte(text), 0o600))
	g.as(topics.RoleProduce, "publish", events)
	g.as(topics.RoleOperate, "wait", "--timeout", processingTimeout)
	g.as(topics.RoleOperate, "topics", "verify")
	g.as(topics.RoleOperate, "dead-letters", "list")
	front.checkDeadLetters()
	answer := front.api().get("/v1/users/user:" + g.run + "/feed")
	expect.Contains(t, answer, `"pin:`+g.run+`"`, "feed")
	expect.Contains(t, answer, `"degraded":[]`, "feed")
	g.as(topics.RoleOperate, "wait", "--timeout", processingTimeout) // the result of the visit
	g.checkMaterialized()
	g.revoke(topics.RoleProcess, topics.Deliveries)
	_, err := openApp(t.Context(), g.config(topics.RoleProcess), slog.New(slog.NewTextHandler(t.Output(), nil)), processing(topics.RowGroups()))
	expect.Error(t, err, "on topic deliveries", "without a permission")
	expect.Error(t, err, "topics acls process", "without a permission")
	err = topics.VerifyAccess(t.Context(), g.kafka(topics.RoleProduce), topics.RoleServe)
	for _, says := range []string{"Read on group features*", "Read on group dead-letters*", "Describe on group pools*"} {
		expect.Error(t, err, says, "a producer as a server")
	}
}

// guarded runs roles with their own users in Kafka and in the feed store, named after the role and the run.
type guarded struct {
	t         *testing.T
	file, run string
	keyspace  string
	cluster   cassandra.Cluster // as a user with all permissions
}

func newGuarded(t *testing.T) *guarded {
	t.Helper()
	at, ca := os.Getenv(realSecuredCassandra), filepath.Join(os.Getenv(realCertificates), securetest.CA)
	if at == "" {
		t.Skipf("set %s to the address of a Cassandra node that requires a login", realSecuredCassandra)
	}
	g := &guarded{t: t, run: fmt.Sprint(time.Now().UnixNano()), cluster: cassandra.DefaultCluster()}
	g.keyspace = "smartfeed_" + g.run
	g.cluster.Hosts, g.cluster.Replicas = []string{at}, 1
	g.cluster.TLS = secure.TLS{Enabled: true, Certificates: secure.Certificates{CAFile: ca}}
	g.cluster.Login = secure.Login{User: "cassandra", Password: "cassandra"} // the default user of a new cluster
	g.file = securedFile(t, fmt.Sprintf(`feed_store:
  cassandra:
    keyspace: %s
    timeout: 30s
    primary:
      hosts: [%q]
      replicas: 1
      tls: {enabled: true, ca_file: %s}
      login: {user: unknown, password: %s}
`, g.keyspace, at, ca, securetest.Literal))
	return g
}

// checkMaterialized compares the feed store, read as the serving role, with the only visit.
func (g *guarded) checkMaterialized() {
	g.t.Helper()
	cfg := g.config(topics.RoleServe).FeedStore
	store := openStore(g.t, "checked", cfg.Cassandra.Config, cfg.Cassandra.Primary)
	rows, _, err := store.Page(g.t.Context(), schemas.UserID("user:"+g.run), math.MaxInt64, 10)
	if err != nil || len(rows) != 1 || rows[0].Pin != schemas.PinID("pin:"+g.run) {
		g.t.Errorf("the feed store has %+v, %v, want pin:%s", rows, err, g.run)
	}
	err = store.Write(g.t.Context(), feedstore.Batch{Deleted: []schemas.DeletedUser{{User: "user:ada", Time: 1}}})
	expect.Error(g.t, err, "MODIFY", "a write as the serving role")
}

// openStore opens a feed store until the test ends.
func openStore(t *testing.T, name string, cfg cassandra.Config, at cassandra.Cluster) *cassandra.Store {
	t.Helper()
	s := must.Get(cassandra.New(name, cfg, at, DefaultConfig().FeedStore.MaxItems, slog.New(slog.NewTextHandler(t.Output(), nil))))(t)
	stop := topicstest.Run(t, s.Run)
	t.Cleanup(func() { must.OK(t, stop()) })
	eventually.True(t, "the store has a session", s.Connected)
	return s
}

// grant grants permissions in the feed store to a role's user.
func (g *guarded) grant(role string, permissions ...string) {
	g.t.Helper()
	for _, p := range permissions {
		cassandratest.Do(g.t, g.cluster, fmt.Sprintf("GRANT %s ON KEYSPACE %s TO %q", p, g.keyspace, g.user(role)))
	}
}

func (g *guarded) user(role string) string { return role + "-" + g.run }

// config returns the configuration of a role; "" is a user with all permissions.
func (g *guarded) config(role string) Config {
	g.t.Helper()
	cfg := testConfig(g.t.TempDir())
	must.OK(g.t, config.Load(&cfg, config.Source{File: g.file}))
	if role != "" {
		cfg.KafkaClient.SASL.User = g.user(role)
		cfg.FeedStore.Cassandra.Primary.Login.User = g.user(role)
	}
	shortHandover(&cfg)
	cfg.HTTP = testchild.FreeAddress(g.t)
	return cfg
}

func (g *guarded) kafka(role string) topics.Kafka {
	g.t.Helper()
	cfg := g.config(role)
	return must.Get(cfg.kafka())(g.t)
}

func (g *guarded) start(role string, pieces []opener) *started {
	return startPieces(g.t, g.config(role), pieces)
}

// as runs a command.
func (g *guarded) as(role string, args ...string) string {
	g.t.Helper()
	var environ []string
	if role != "" {
		environ = []string{
			"SMARTFEED_KAFKA_CLIENT_SASL_USER=" + g.user(role), "SMARTFEED_FEED_STORE_CASSANDRA_PRIMARY_LOGIN_USER=" + g.user(role),
		}
	}
	code, out, problems := execute(g.t, environ, append(args, "--config", g.file)...)
	if code != 0 {
		g.t.Fatalf("%v as %s: exit code %d\n%s%s", args, role, code, out, problems)
	}
	return out
}

func (g *guarded) admin() *kadm.Client {
	g.t.Helper()
	adm := must.Get(g.kafka("").Admin())(g.t)
	g.t.Cleanup(adm.Close)
	return adm
}

// admit creates a role's user with the permissions that the command prints. The user of operate may also create
// keyspaces.
func (g *guarded) admit(role string) {
	g.t.Helper()
	adm, name := g.admin(), g.user(role)
	_, err := adm.AlterUserSCRAMs(g.t.Context(), nil, []kadm.UpsertSCRAM{{User: name, Mechanism: kadm.ScramSha512, Iterations: 4096, Password: securetest.Literal}})
	must.OK(g.t, err)
	cassandratest.Do(g.t, g.cluster, fmt.Sprintf("CREATE ROLE %q WITH PASSWORD = '%s' AND LOGIN = true", name, securetest.Literal))
	if role == topics.RoleOperate {
		cassandratest.Do(g.t, g.cluster, fmt.Sprintf("GRANT CREATE ON ALL KEYSPACES TO %q", name)) // includes all permissions on keyspaces that it creates
	}
	allow(g.t, adm, g.as("", "topics", "acls", role, "--principal", "User:"+name))
}

// allow creates the ACLs printed by "topics acls".
func allow(t *testing.T, adm *kadm.Client, printed string) {
	t.Helper()
	for line := range strings.Lines(printed) {
		results, err := adm.CreateACLs(t.Context(), parseACL(t, strings.Fields(line)))
		if err == nil && results[0].Err != nil {
			err = results[0].Err
		}
		must.OK(t, err)
	}
}

// parseACL parses the arguments of kafka-acls.sh.
func parseACL(t *testing.T, args []string) *kadm.ACLBuilder {
	t.Helper()
	flags := pflag.NewFlagSet("kafka-acls.sh", pflag.ContinueOnError)
	_ = flags.Bool("add", false, "")
	principal := flags.String("allow-principal", "", "")
	names := flags.StringArray("operation", nil, "")
	topic, group, id := flags.String("topic", "", ""), flags.String("group", "", ""), flags.String("transactional-id", "", "")
	pattern := flags.String("resource-pattern-type", "literal", "")
	must.OK(t, flags.Parse(args))
	b := kadm.NewACLs().Allow(*principal).AllowHosts()
	switch {
	case *topic != "":
		b = b.Topics(*topic)
	case *group != "":
		b = b.Groups(*group)
	case *id != "":
		b = b.TransactionalIDs(*id)
	}
	p := must.Get(kmsg.ParseACLResourcePatternType(*pattern))(t)
	var ops []kadm.ACLOperation
	for _, name := range *names {
		op := must.Get(kmsg.ParseACLOperation(name))(t)
		ops = append(ops, op)
	}
	return b.ResourcePatternType(p).Operations(ops...)
}

// revoke removes a role's permissions on a topic.
func (g *guarded) revoke(role, topic string) {
	g.t.Helper()
	b := kadm.NewACLs().Allow("User:" + g.user(role)).AllowHosts().Topics(topic).ResourcePatternType(kadm.ACLPatternLiteral).Operations(kadm.OpAny)
	results, err := g.admin().DeleteACLs(g.t.Context(), b)
	if err != nil || len(results) != 1 || len(results[0].Deleted) == 0 {
		g.t.Fatalf("revoke %s: %v, %+v", topic, err, results)
	}
}

// wrongPassword starts a role with a wrong password in the environment. It must stop with an error that does not contain
// the password.
func wrongPassword(t *testing.T, file, name, says string) {
	const wrong = "battery-staple"
	clear := strings.TrimSuffix(name, "PASSWORD") + "PASSWORD_FILE="
	code, out, problems := execute(t, []string{name + "=" + wrong, clear}, "process", "--config", file, "--dir", t.TempDir(), "--http", testchild.FreeAddress(t))
	if code != 1 || !strings.Contains(problems, says) || strings.Contains(problems+out, wrong) {
		t.Errorf("exit code %d, %s%s\nwant 1, and an error with %q", code, out, problems, says)
	}
}

// The commands about the configuration must not print a configured secret.
func TestSecrets_AreInNoConfigurationOutput(t *testing.T) {
	const secret = "correct-horse"
	var environ []string
	for _, name := range []string{
		"KAFKA_CLIENT_SASL_PASSWORD", "REGISTRY_CLIENT_PASSWORD", "PINOT_CLIENT_PASSWORD",
		"FEED_STORE_CASSANDRA_PRIMARY_LOGIN_PASSWORD", "FEED_STORE_CASSANDRA_STANDBY_LOGIN_PASSWORD",
	} {
		environ = append(environ, "SMARTFEED_"+name+"="+secret, "SMARTFEED_"+strings.TrimSuffix(name, "PASSWORD")+"USER=ada")
	}
	mechanism := "SMARTFEED_KAFKA_CLIENT_SASL_MECHANISM="
	stream := `SMARTFEED_PINOT_STREAM_CONFIG={sasl.jaas.config: ` + secret + `}`
	with := func(more ...string) []string { return slices.Concat(environ, more) }
	for _, c := range []struct {
		name    string
		environ []string
		args    []string
		code    int
		says    string
	}{
		{"in order", with(mechanism+"SCRAM-SHA-256", stream), []string{"config", "check"}, 0, "is valid"},
		{"shown", with(mechanism+"SCRAM-SHA-256", stream), []string{"config", "show"}, 0, "password: (hidden)"},
		{"in addresses", with(mechanism+"SCRAM-SHA-256", "SMARTFEED_AUTH_AUDIENCE=a", "SMARTFEED_AUTH_JWKS=https://host/keys?key="+secret, "SMARTFEED_GENERATOR_MODEL_URL=https://host/scores?key="+secret,
			"SMARTFEED_GENERATOR_EXTERNAL_SOURCES=[{name: trends, url: 'https://host/trends?key="+secret+"', timeout: 40ms, max_candidates: 10, share: 0.1}]"), []string{"config", "show"}, 0, "https://host/trends?(hidden)"},
		{"a redacted address", with(mechanism+"SCRAM-SHA-256", "SMARTFEED_GENERATOR_MODEL_URL=https://host/scores?(hidden)"), []string{"config", "check"}, 2, "is the redacted form of an address"},
		{"another mistake", with(mechanism + "NONE"), []string{"config", "check"}, 2, "mechanism"},
		{"in the address of the registry", with(mechanism+"SCRAM-SHA-256", "SMARTFEED_REGISTRY=https://ada:"+secret+"@host"), []string{"config", "check"}, 2, "registry: the address contains a user"},
		{"in the address of keys", with("SMARTFEED_AUTH_AUDIENCE=a", "SMARTFEED_AUTH_JWKS=https://ada:"+secret+"@host/keys"), []string{"config", "check"}, 2, "auth.jwks: contains a user"},
		{"in the address of a model", with("SMARTFEED_GENERATOR_MODEL_URL=ftp://host/?key=" + secret), []string{"config", "check"}, 2, "ftp://host/"},
	} {
		code, out, problems := execute(t, c.environ, c.args...)
		all := out + problems
		if code != c.code || !strings.Contains(all, c.says) || strings.Contains(all, secret) {
			t.Errorf("%s: exit code %d, want %d, %q and no secret in:\n%s", c.name, code, c.code, c.says, all)
		}
	}
}
