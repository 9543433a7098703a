package app

import (
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/smartfeed/smartfeed/internal/status"
	testchild "github.com/smartfeed/smartfeed/internal/testkit/child"
	"github.com/smartfeed/smartfeed/internal/testkit/eventually"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/internal/testkit/oracle/visits"
)

// childVariable makes the test binary run the program, so that a test can kill it.
const childVariable = "SMARTFEED_TEST_CHILD"

// runMain runs the program in a child process, and otherwise the tests.
func runMain(m *testing.M) {
	if os.Getenv(childVariable) != "" {
		os.Exit(Execute(interruptible(), os.Args[1:], programEnviron(), os.Stdin, os.Stdout, os.Stderr))
	}
	// These tests spend most of their time waiting.
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		if err := flag.Set("test.parallel", strconv.Itoa(max(6, runtime.GOMAXPROCS(0)))); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}

// programEnviron returns the environment without the variables of tests, which are not configuration.
func programEnviron() []string {
	return slices.DeleteFunc(os.Environ(), func(variable string) bool { return strings.HasPrefix(variable, "SMARTFEED_TEST_") })
}

// interruptible returns a context that SIGINT and SIGTERM cancel, like main.
func interruptible() context.Context {
	ctx, _ := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	return ctx
}

// child is `smartfeed dev` in another process.
type child struct {
	t       *testing.T
	program string // "": this test binary
	args    []string
	http    string
	flags   []string // of commands that connect to it
	cmd     *exec.Cmd
}

// newChild reserves free ports, which stay the same over restarts.
func newChild(t *testing.T, dir string) *child {
	t.Helper()
	kafka, registry, web := testchild.FreeAddress(t), testchild.FreeAddress(t), testchild.FreeAddress(t)
	c := &child{t: t, http: "http://" + web, flags: []string{"--kafka", kafka, "--registry", registry}}
	c.args = append([]string{"dev", "--dir", dir, "--http", web}, c.flags...)
	for _, wait := range []string{"feed.generator_timeout", "feed.read_timeout", "feed.catch_up_timeout", "feed.ack_timeout", "feature.timeout"} {
		c.args = append(c.args, "--"+wait, patience.String())
	}
	t.Cleanup(c.kill)
	return c
}

// start starts the program and returns when it is ready.
func (c *child) start() {
	c.t.Helper()
	c.launch()
	c.until("ready", c.ready)
}

func (c *child) launch() {
	c.t.Helper()
	c.cmd = exec.Command(cmp.Or(c.program, os.Args[0]), c.args...)
	if c.cmd.Env = programEnviron(); c.program == "" {
		c.cmd.Env = append(c.cmd.Env, childVariable+"=1")
	}
	c.cmd.Stderr = c.t.Output()
	must.OK(c.t, c.cmd.Start())
}

func (c *child) ready() bool {
	res, err := http.Get(c.http + "/readyz")
	if err != nil {
		return false
	}
	res.Body.Close()
	return res.StatusCode == http.StatusOK
}

// until waits for a condition.
func (c *child) until(what string, cond func() bool) {
	c.t.Helper()
	eventually.True(c.t, what, cond)
}

func (c *child) kill() {
	if c.cmd == nil || c.cmd.ProcessState != nil {
		return
	}
	_ = c.cmd.Process.Signal(syscall.SIGKILL) // Wait reports whether it has exited before
	_ = c.cmd.Wait()
}

// retriedCommand is a command that runs again until it succeeds, while the program is killed.
type retriedCommand struct {
	ended  chan struct{}
	killed atomic.Bool // no other kill will follow
}

// retry runs the command that args returns until it succeeds. A kill must interrupt the command, even on a busy machine.
// Therefore args returns a slow command until killed is true: no other kill will follow.
func (c *child) retry(args func(killed bool) []string) *retriedCommand {
	i := &retriedCommand{ended: make(chan struct{})}
	go func() {
		defer close(i.ended)
		for c.t.Context().Err() == nil {
			if _, err := runCommand(c.t.Context(), append(args(i.killed.Load()), c.flags...)...); err == nil {
				return
			}
		}
	}()
	return i
}

func (i *retriedCommand) over() bool {
	select {
	case <-i.ended:
		return true
	default:
		return false
	}
}

// fault is a kill after the program has counted an effect a number of times since its start.
type fault struct {
	effect string
	times  int64
}

// survives kills the program at each fault, restarts it, and returns when the command has succeeded.
func (i *retriedCommand) survives(c *child, faults ...fault) {
	c.t.Helper()
	for n, f := range faults {
		c.until(fmt.Sprintf("at %d %s", f.times, f.effect), func() bool { return c.effect(f.effect) >= f.times || i.over() })
		if i.over() {
			c.t.Fatalf("the kill at %d %s was too late", f.times, f.effect)
		}
		i.killed.Store(n == len(faults)-1)
		c.kill()
		c.start()
	}
	c.until("done", i.over)
}

// counts returns the status of the groups, or none if the process does not respond.
func (c *child) counts() (groups []status.Group) {
	res, err := http.Get(c.http + "/v1/status")
	if err != nil {
		return nil
	}
	defer res.Body.Close()
	var st status.Status
	if json.NewDecoder(res.Body).Decode(&st) != nil {
		return nil
	}
	return st.Groups
}

// records returns the number of input records that the groups have applied since the start of the process.
func (c *child) records() (n int64) {
	for _, g := range c.counts() {
		n += int64(g.Counters.Records)
	}
	return n
}

// effect returns the number of an effect since the start of the process.
func (c *child) effect(name string) (n int64) {
	for _, g := range c.counts() {
		n += int64(g.Effects[name])
	}
	return n
}

// testKills imports a dataset while it kills the program repeatedly, each time after at most most records. It compares the
// result with brute force: nothing is missing or duplicated. A resumed import sends every event again, so the groups
// process at least as many records as there are events; most must be smaller.
func testKills(t *testing.T, dir string, kills int, most int64) {
	d := readDataset(t, dir)
	c := newChild(t, t.TempDir())
	c.start()
	import_ := func(ctx context.Context) error {
		_, err := runCommand(ctx, append([]string{"import", "lastfm", d.dir, "--last-action", d.last.Format(time.RFC3339)}, c.flags...)...)
		return err
	}
	late := 0
	for done := 0; done < kills; {
		goal := rand.Int64N(most>>late) + 1
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		had := c.records()
		go func() { ended <- import_(ctx) }()
		over := false
		c.until(fmt.Sprintf("past %d records", goal), func() bool {
			select {
			case err := <-ended:
				if err != nil {
					t.Fatalf("the import ended before the kill: %v", err)
				}
				over = true
			default:
			}
			return over || c.records() >= had+goal
		})
		if over { // on a busy machine, the import may complete before the kill: try again, and kill sooner
			if cancel(); late == 5 {
				t.Fatalf("six kills were too late, the last one at %d records", goal)
			}
			late++
			continue
		}
		done++
		t.Logf("kill %d after %d records", done, c.records())
		c.kill()
		cancel()
		expect.Fails(t, <-ended, "import despite the kill")
		c.start()
	}
	must.OK(t, import_(t.Context()))
	c.compare(d)
}

// compare checks the program's responses.
func (c *child) compare(d *dataset) {
	c.t.Helper()
	limit := DefaultConfig().Pools.MaxCandidates
	server := &visits.HTTP{URL: c.http, Client: &http.Client{Timeout: 2 * patience}}
	for _, user := range d.users {
		if err := visits.CheckPools(c.t.Context(), server, d.product, user, limit); err != nil {
			c.t.Errorf("pools of %s: %.3000v", user, err)
		}
	}
	at := httpAPI{c.t, c.http}
	at.checkFeatures(d)
	at.checkItems(d)
	at.checkVisits(d, limit)
}

func TestImport_SurvivesKills(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes: not with -short")
	}
	t.Parallel()
	testKills(t, generated(t, 0.03), 3, 3_000)
}

func TestImport_SurvivesKillsOfLastfm(t *testing.T) {
	if testing.Short() {
		t.Skip("imports the whole set: not with -short")
	}
	testKills(t, lastfmDir(t), 5, 140_000)
}

// Two processes cannot use the same directory, even with different ports.
func TestDir_RejectsSecondProcess(t *testing.T) {
	dir := t.TempDir()
	first := newChild(t, dir)
	first.start()
	second := newChild(t, dir)
	cmd := exec.Command(os.Args[0], second.args...)
	cmd.Env = append(os.Environ(), childVariable+"=1")
	out, err := cmd.CombinedOutput()
	if err == nil || cmd.ProcessState.ExitCode() != 1 || !strings.Contains(string(out), "in use by another process") || !strings.Contains(string(out), dir) {
		t.Errorf("second process: %v, %s", err, out)
	}
}

// post publishes events and returns when they are acknowledged.
func (c *child) post(events ...map[string]any) {
	c.t.Helper()
	if status, text := (httpAPI{c.t, c.http}).send("/v1/events", lines(c.t, events...)); status != http.StatusAccepted {
		c.t.Fatalf("events: %d %s", status, text)
	}
}

// publish publishes events and returns when they have been processed.
func (c *child) publish(events ...map[string]any) {
	c.t.Helper()
	c.post(events...)
	c.wait()
}

func (c *child) wait() {
	c.t.Helper()
	if out, err := runCommand(c.t.Context(), append([]string{"wait", "--timeout", eventually.Limit().String()}, c.flags...)...); err != nil {
		c.t.Fatalf("wait: %v %s", err, out)
	}
}
