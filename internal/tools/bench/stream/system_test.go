package stream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/smartfeed/smartfeed/internal/testkit/child"
	"github.com/smartfeed/smartfeed/internal/testkit/memory"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
)

// system is a set of processes whose use of resources is measured: the product, or the bare loop, each with its broker.
type system struct {
	parts  []part
	url    string       // of its HTTP server
	admins []string     // URLs of servers with metrics and profiles
	kafka  *kadm.Client // nil: the traffic is not measured
	rest   []float64    // CPU-seconds per second that a part uses for other systems, by part; nil: none
}

// part is a kind of processes that is measured as one.
type part struct {
	name string
	pids []int
	dirs []string // with all of their files
}

// broker is the name of the part that is a broker in a separate process. The embedded broker is a part of `smartfeed dev`.
const broker = "broker"

// broker returns the system's broker, if it is a separate process.
func (s *system) broker() []part {
	if last := len(s.parts) - 1; s.parts[last].name == broker {
		return s.parts[last:]
	}
	return nil
}

// usage is what the parts of a system have used so far.
type usage struct {
	counters
	at      time.Time
	cpu     []time.Duration // by part
	rest    []float64       // of the system
	traffic traffic
}

func (s *system) used(t testing.TB) usage {
	t.Helper()
	u := usage{at: time.Now(), rest: s.rest, counters: counters{}}
	for _, p := range s.parts {
		u.cpu = append(u.cpu, p.cpu(t))
	}
	for _, admin := range s.admins {
		addMetrics(t, u.counters, admin)
	}
	if s.kafka != nil {
		u.traffic = trafficOf(t, s.kafka)
	}
	return u
}

// counters are values of metrics, by metric and group, separated by a space.
type counters map[string]float64

// sum returns a metric of one group, or of all groups for "".
func (c counters) sum(metric, group string) (sum float64) {
	for name, n := range c {
		of, its, _ := strings.Cut(name, " ")
		if of == "smartfeed_group_"+metric && (group == "" || group == its) {
			sum += n
		}
	}
	return sum
}

// addMetrics adds the counters and gauges of groups in a process.
func addMetrics(t testing.TB, sums counters, admin string) {
	t.Helper()
	res := must.Get(http.Get(admin + "/metrics"))(t)
	defer res.Body.Close()
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families := must.Get(parser.TextToMetricFamilies(res.Body))(t)
	for name, family := range families {
		for _, m := range family.GetMetric() {
			for _, l := range m.GetLabel() {
				if l.GetName() == "group" {
					sums[name+" "+l.GetValue()] += m.GetCounter().GetValue() + m.GetGauge().GetValue()
				}
			}
		}
	}
}

func (p part) cpu(t testing.TB) (sum time.Duration) {
	t.Helper()
	for _, pid := range p.pids {
		sum += child.CPU(t, pid)
	}
	return sum
}

// peak returns the sum of the maximum memory of each process so far, in MiB.
func (p part) peak(t testing.TB) (sum float64) {
	t.Helper()
	for _, pid := range p.pids {
		sum += must.Get(memory.Of(pid))(t).Peak
	}
	return sum
}

// disk returns the size of the files, in MiB.
func (p part) disk(t testing.TB) float64 {
	t.Helper()
	var sum int64
	for _, dir := range p.dirs {
		must.OK(t, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() || strings.HasSuffix(path, "index") { // Kafka's index files are sparse
				return ignoreMissing(err)
			}
			info, err := e.Info()
			if err == nil {
				sum += info.Size()
			}
			return ignoreMissing(err)
		}))
	}
	return float64(sum) / (1 << 20)
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// profile writes CPU profiles of the system to STREAM_PROFILES, if it is set, until the returned function is called.
func (s *system) profile(name string) (stop func()) {
	dir := os.Getenv("STREAM_PROFILES")
	if dir == "" {
		return func() {}
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	for process, admin := range s.admins {
		running.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				file := fmt.Sprintf("%s-%d-%d.pprof", strings.NewReplacer(" ", "-", "/", "-per-", ",", "").Replace(name), process, i)
				if err := saveProfile(admin, filepath.Join(dir, file)); err != nil {
					fmt.Fprintln(os.Stderr, "profile:", err)
					return
				}
			}
		})
	}
	return func() { cancel(); running.Wait() }
}

func saveProfile(admin, file string) error {
	res, err := http.Get(admin + "/debug/pprof/profile?seconds=10")
	if err != nil {
		return err
	}
	defer res.Body.Close()
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, res.Body)
	return errors.Join(err, f.Close())
}
