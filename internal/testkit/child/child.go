// Package child runs the test binary as another process, which tests can kill:
//
//	func TestMain(m *testing.M) {
//		child.Run(map[string]child.Role{"writer": write})
//		m.Run()
//	}
//
//	p := child.Start(t, "writer", dir)
//	first := p.Line()
//	p.Kill()
package child

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/smartfeed/smartfeed/internal/testkit/must"
)

// Role is the main function of a child process. SIGTERM cancels ctx.
type Role func(ctx context.Context, args []string) error

// roleVariable is the environment variable that names the role of a child process.
const roleVariable = "SMARTFEED_TEST_ROLE"

// Run runs a role and exits, if this process is a child. Otherwise it returns.
func Run(roles map[string]Role) {
	name, isChild := os.LookupEnv(roleVariable)
	if !isChild {
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if err := roles[name](ctx, os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// Process is a running child. It is killed when the test ends.
type Process struct {
	*exec.Cmd
	Output *bufio.Scanner // of lines

	t    testing.TB
	wait func() error // supports several concurrent callers, unlike exec.Cmd
}

// Start starts a child in a role.
func Start(t testing.TB, role string, args ...string) *Process {
	t.Helper()
	p := &Process{Cmd: exec.Command(os.Args[0], args...), t: t}
	p.wait = sync.OnceValue(p.Cmd.Wait)
	p.Env = append(os.Environ(), roleVariable+"="+role)
	p.Stderr = t.Output()
	out := must.Get(p.StdoutPipe())(t)
	must.OK(t, p.Cmd.Start())
	t.Cleanup(func() {
		limit := time.Duration(0)
		if t.Failed() && p.Process.Signal(syscall.SIGQUIT) == nil {
			limit = 10 * time.Second // for the exit with a print of its goroutines
		}
		defer time.AfterFunc(limit, func() { _ = p.Process.Kill() }).Stop()
		_ = p.Wait()
	})
	p.Output = bufio.NewScanner(out)
	return p
}

// Wait waits until the process has exited.
func (p *Process) Wait() error { return p.wait() }

// Line returns the next line of the child's output, without its newline. It fails the test if the child exits before.
func (p *Process) Line() string {
	p.t.Helper()
	if !p.Output.Scan() {
		p.t.Fatalf("the child exited unexpectedly: %v", p.Wait())
	}
	return p.Output.Text()
}

// usedPorts has the ports that FreeAddress has returned, or found in use.
var usedPorts sync.Map

// FreeAddress returns an address on which no process listens and which it has not returned before: the caller may not
// listen yet. Its port is below the range of ephemeral ports: no outgoing connection can take it in the meantime.
func FreeAddress(t testing.TB) string {
	t.Helper()
	for range 100 {
		port := 22_000 + rand.IntN(10_000)
		if _, before := usedPorts.LoadOrStore(port, true); before {
			continue
		}
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err == nil {
			defer l.Close()
			return l.Addr().String()
		}
	}
	t.Fatal("a hundred ports are in use")
	return ""
}

// CPU returns the CPU time that a process has used, which may be this one. It reads /proc/PID/stat (proc_pid_stat(5)), and so
// fails the test on systems other than Linux.
func CPU(t testing.TB, pid int) time.Duration {
	t.Helper()
	text := must.Get(os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)))(t)
	_, rest, _ := strings.Cut(string(text), ") ") // the name may contain spaces
	fields := strings.Fields(rest)
	const user, system, tick = 11, 12, 10 * time.Millisecond // USER_HZ is 100 on Linux
	var sum time.Duration
	for _, field := range fields[user : system+1] {
		n := must.Get(strconv.Atoi(field))(t)
		sum += time.Duration(n) * tick
	}
	return sum
}

// Kill kills the child, which simulates a crash, and waits until it has exited. It discards further output. It fails the
// test if the child exited before.
func (p *Process) Kill() {
	p.t.Helper()
	if err := p.Process.Kill(); err != nil {
		p.t.Errorf("kill the child: %v", err)
	}
	_ = p.Wait()
	if p.ProcessState.Exited() {
		p.t.Errorf("the child exited unexpectedly: %v", p.ProcessState)
	}
}
