package embedded_test

import (
	"context"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sr"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/topics"
	"github.com/smartfeed/smartfeed/topics/embedded"
)

func config(dir string) embedded.Config {
	cfg := embedded.DefaultConfig()
	cfg.Dir, cfg.Kafka, cfg.Registry = dir, "127.0.0.1:0", "127.0.0.1:0"
	return cfg
}

func start(t *testing.T, cfg embedded.Config) *embedded.Server {
	t.Helper()
	s := must.Get(embedded.Start(t.Context(), cfg, slog.New(slog.NewTextHandler(t.Output(), nil))))(t)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func createTopic(t *testing.T, k topics.Kafka, name string) {
	t.Helper()
	adm := must.Get(k.Admin())(t)
	defer adm.Close()
	must.Get(adm.CreateTopic(t.Context(), k.Partitions, 1, nil, name))(t)
}

func produce(t *testing.T, k topics.Kafka, topic string, values ...string) {
	t.Helper()
	cl := must.Get(k.Client())(t)
	defer cl.Close()
	for _, v := range values {
		r := &kgo.Record{Topic: topic, Key: []byte(v), Value: []byte(v)}
		must.OK(t, cl.ProduceSync(t.Context(), r).FirstErr())
	}
}

// consume reads until n values have arrived.
func consume(t *testing.T, k topics.Kafka, topic string, n int) map[string]int {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	cl := must.Get(k.Client(kgo.ConsumeTopics(topic)))(t)
	defer cl.Close()
	values := map[string]int{}
	for len(values) < n {
		fetches := cl.PollFetches(ctx)
		if err := fetches.Err0(); err != nil {
			t.Fatalf("%d of %d values were delivered: %v", len(values), n, err)
		}
		fetches.EachRecord(func(r *kgo.Record) { values[string(r.Value)]++ })
	}
	return values
}

func TestServer_KeepsStateOverRestart(t *testing.T) {
	dir := t.TempDir()
	s := start(t, config(dir))
	createTopic(t, s.Kafka(0), "t")
	produce(t, s.Kafka(0), "t", "a", "b", "c")
	must.OK(t, s.Close())
	s = start(t, config(dir))
	produce(t, s.Kafka(0), "t", "d")
	expect.Equal(t, len(consume(t, s.Kafka(0), "t", 4)), 4, "records")
}

func register(t *testing.T, url, subject, schema string) int {
	t.Helper()
	cl := must.Get(sr.NewClient(sr.URLs(url)))(t)
	ss := must.Get(cl.CreateSchema(t.Context(), subject, sr.Schema{Schema: schema}))(t)
	return ss.ID
}

func TestRegistry_KeepsIDsOverRestart(t *testing.T) {
	dir := t.TempDir()
	s := start(t, config(dir))
	schemas := []struct{ subject, schema string }{
		{"b", `"string"`}, {"a", `"long"`}, {"c", `"string"`}, {"a", `"double"`},
	}
	var want []int
	for _, e := range schemas {
		want = append(want, register(t, s.RegistryURL(), e.subject, e.schema))
	}
	expect.Equal(t, want[0], want[2], "ids of equal schemas")
	must.OK(t, s.Close())
	s = start(t, config(dir))
	for i := len(schemas) - 1; i >= 0; i-- {
		got := register(t, s.RegistryURL(), schemas[i].subject, schemas[i].schema)
		expect.Equal(t, got, want[i], "id of %v after a restart", schemas[i])
	}
	expect.Equal(t, register(t, s.RegistryURL(), "d", `"int"`), 4, "the next new schema has id")
}

func TestStart_RejectsChangedSchemaIDs(t *testing.T) {
	dir := t.TempDir()
	s := start(t, config(dir))
	register(t, s.RegistryURL(), "a", `"string"`)
	register(t, s.RegistryURL(), "b", `"long"`)
	must.OK(t, s.Close())
	path := filepath.Join(dir, "registry.json")
	data := must.Get(os.ReadFile(path))(t)
	must.OK(t, os.WriteFile(path, []byte(strings.Replace(string(data), `"id": 2`, `"id": 5`, 1)), 0o600))
	_, err := embedded.Start(t.Context(), config(dir), nil)
	expect.Error(t, err, "subject b: schema id would change from 5 to 2", "Start with an id that would change")
}

func TestRegistry_RejectsDeletes(t *testing.T) {
	s := start(t, config(t.TempDir()))
	id := register(t, s.RegistryURL(), "a", `"string"`)
	cl := must.Get(sr.NewClient(sr.URLs(s.RegistryURL())))(t)
	expect.Fails(t, expect.ErrorOf(cl.DeleteSubject(t.Context(), "a", sr.SoftDelete)), "deletion of a subject")
	expect.Equal(t, must.Get(cl.SchemaByID(t.Context(), id))(t).Schema, `"string"`, "schema")
}

func TestStart_RejectsLockedDirectory(t *testing.T) {
	dir := t.TempDir()
	start(t, config(dir))
	locked := must.As[*embedded.LockedError](t, expect.ErrorOf(embedded.Start(t.Context(), config(dir), nil)))
	expect.Equal(t, locked.Dir, dir, "locked directory")
}

func TestStart_NamesPortInUse(t *testing.T) {
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer l.Close()
	for _, field := range []string{"kafka", "registry"} {
		cfg := config(t.TempDir())
		if field == "kafka" {
			cfg.Kafka = l.Addr().String()
		} else {
			cfg.Registry = l.Addr().String()
		}
		expect.Error(t, expect.ErrorOf(embedded.Start(t.Context(), cfg, nil)), field+" address "+l.Addr().String()+" is in use", "Start")
		cfg.Kafka, cfg.Registry = "127.0.0.1:0", "127.0.0.1:0"
		start(t, cfg) // a failed start releases the lock
	}
}

func TestStart_RejectsFileAsDirectory(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	must.OK(t, os.WriteFile(path, nil, 0o600))
	expect.Error(t, expect.ErrorOf(embedded.Start(t.Context(), config(path), nil)), path, "Start")
}

func TestConfig_ValidateReportsEveryProblem(t *testing.T) {
	err := embedded.Config{Kafka: "0.0.0.0:9092", Registry: "nowhere"}.Validate()
	for _, want := range []string{"dir", `kafka "0.0.0.0:9092": not a loopback`, `registry "nowhere": not host:port`, "max_bytes 0"} {
		expect.Error(t, err, want, "Validate")
	}
	must.OK(t, embedded.DefaultConfig().Validate())
}

// Clients of this process connect in memory. A closed connection returns the error of the network, which clients retry.
func TestServer_ConnectsItsProcessInMemory(t *testing.T) {
	s := start(t, config(t.TempDir()))
	kafka := s.Kafka(0)
	conn := must.Get(kafka.Dial(t.Context(), "tcp", kafka.Brokers[0]))(t)
	expect.True(t, conn.RemoteAddr().Network() != "tcp", "the connection is in memory")
	must.OK(t, conn.SetDeadline(time.Now().Add(20*time.Second)))
	must.Get(conn.Write([]byte("POST / HTTP/1.1")))(t) // too long for a request, so the broker closes the connection
	expect.Is(t, expect.ErrorOf(conn.Read(make([]byte, 1))), io.EOF, "read")
	expect.Is(t, expect.ErrorOf(conn.Write([]byte("request"))), net.ErrClosed, "write")
}
