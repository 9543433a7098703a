package app

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	testchild "github.com/smartfeed/smartfeed/internal/testkit/child"
	"github.com/smartfeed/smartfeed/internal/testkit/memory"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/serving/feature"
)

// realServers is the environment variable with the addresses of Kafka, registry, Cassandra primary and standby, Pinot's
// controller and broker, in this order. The servers must be empty. The test fills them.
const realServers = "SMARTFEED_TEST_SERVERS"

// lastfmScale is the environment variable with the scale of a generated dataset, see lastfmtest.Write. Empty: the real
// dataset.
const lastfmScale = "LASTFM_SCALE"

func lastfmSet(t *testing.T) string {
	t.Helper()
	text := os.Getenv(lastfmScale)
	if text == "" {
		return lastfmDir(t)
	}
	scale := must.Get(strconv.ParseFloat(text, 64))(t)
	return generated(t, scale)
}

// realProduct is a product on real servers, with each role in its own process.
type realProduct struct {
	t          *testing.T
	at         []string // addresses, see realServers
	file       string   // configuration
	partitions int32
	features   []string // ten built-in features of users
}

// startReal creates the topics and tables. Deadlines are far longer than in production, for busy machines.
func startReal(t *testing.T) *realProduct {
	t.Helper()
	at := strings.Split(os.Getenv(realServers), ",")
	if len(at) != 6 {
		t.Skipf("set %s to the addresses of Kafka, registry, two Cassandras, Pinot's controller and broker", realServers)
	}
	r := &realProduct{t: t, at: at, file: filepath.Join(t.TempDir(), "smartfeed.yaml"), partitions: 8}
	text := fmt.Sprintf(`
kafka: [%s]
registry: http://%s/apis/ccompat/v7
partitions: %d
feed_store:
  cassandra:
    primary: {hosts: [%q], replicas: 1}
    standby: {hosts: [%q], replicas: 1}
pinot: {controller: %q, brokers: [%q]}
feed: {generator_timeout: 10s, read_timeout: 2s, catch_up_timeout: 2s, ack_timeout: 2s}
feature: {timeout: 1m}
`, at[0], at[1], r.partitions, at[2], at[3], at[4], at[5])
	must.OK(t, os.WriteFile(r.file, []byte(text), 0o600))
	for _, args := range [][]string{{"topics", "apply"}, {"feed-store", "apply"}, {"pinot", "apply"}} {
		configured(t, r.file, args...)
	}
	definitions := must.Get(feature.Load(""))(t)
	for _, d := range definitions {
		if d.Entity == feature.User && len(r.features) < 10 {
			r.features = append(r.features, d.Name)
		}
	}
	return r
}

// role starts a process. It returns when it is ready, and logs how long that took.
func (r *realProduct) role(name string) *child {
	r.t.Helper()
	web := testchild.FreeAddress(r.t)
	c := &child{t: r.t, http: "http://" + web, args: []string{name, "--config", r.file, "--dir", r.t.TempDir(), "--http", web}}
	r.t.Cleanup(c.kill)
	began := time.Now()
	c.start()
	r.t.Logf("%s: ready after %v and %v of CPU time", name, time.Since(began).Round(time.Millisecond), testchild.CPU(r.t, c.cmd.Process.Pid))
	return c
}

// importSet imports a dataset, and returns when all of it has been processed, also by Pinot.
func (r *realProduct) importSet(d *dataset, front *child) string {
	r.t.Helper()
	began := time.Now()
	out := configured(r.t, r.file, "import", "lastfm", d.dir, "--last-action", d.last.Format(time.RFC3339), "--http", strings.TrimPrefix(front.http, "http://"))
	configured(r.t, r.file, "wait", "--timeout", "30m")
	return fmt.Sprintf("%s\nimport and processing: %s", out, time.Since(began).Round(time.Second))
}

// The test imports the whole dataset, or a generated one, into real servers, with each role in its own process, and compares
// the result with brute force. It prints the duration of the import, and the CPU time and peak memory of every process. It
// does not test latency.
func TestRealServers_ImportLastfm(t *testing.T) {
	r := startReal(t)
	d := readDataset(t, lastfmSet(t))
	var roles []*child
	for _, name := range []string{"process", "process", "materialize", "serve"} {
		roles = append(roles, r.role(name))
	}
	front := roles[len(roles)-1]
	t.Log(r.importSet(d, front))
	front.compare(d)
	for _, c := range roles {
		t.Logf("%s: %s", c.args[0], used(t, c.cmd.Process.Pid))
	}
	for _, name := range strings.Fields(os.Getenv("SERVICES_UP")) {
		t.Logf("%s: %s", name, used(t, session(t, name)...))
	}
}

// used returns the total CPU time and the total peak memory of processes.
func used(t *testing.T, pids ...int) string {
	t.Helper()
	cpu, peak := time.Duration(0), 0.0
	for _, pid := range pids {
		cpu += testchild.CPU(t, pid)
		peak += must.Get(memory.Of(pid))(t).Peak
	}
	return fmt.Sprintf("%.0f CPU-seconds, %.0f MiB at most", cpu.Seconds(), peak)
}

// session returns the processes of a server that .ci/services has started.
func session(t *testing.T, name string) (pids []int) {
	t.Helper()
	dir := os.Getenv("SERVICES_DIR")
	if dir == "" {
		dir = "../.ci/state"
	}
	text := must.Get(os.ReadFile(filepath.Join(dir, name+".pid")))(t)
	leader := strings.TrimSpace(string(text))
	all := must.Get(exec.Command("ps", "-o", "pid=", "-s", leader).Output())(t)
	for _, f := range strings.Fields(string(all)) {
		pid := must.Get(strconv.Atoi(f))(t)
		if syscall.Kill(pid, 0) == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}
