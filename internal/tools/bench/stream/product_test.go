package stream

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/smartfeed/smartfeed/internal/cli"
	"github.com/smartfeed/smartfeed/internal/testkit/child"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/topics"
)

// product is `smartfeed dev` with its defaults, in another process, so measurements exclude the cost of the
// clients.
type product struct {
	b     *testing.B
	pid   int
	dir   string
	url   string // of the HTTP server
	admin string // URL of the admin server
	setup topics.Setup
}

// serve is a child.Role that runs a command of smartfeed.
func serve(ctx context.Context, args []string) error {
	if code := cli.Execute(ctx, args, nil, os.Stdin, os.Stdout, os.Stderr); code != 0 {
		return fmt.Errorf("exit code %d", code)
	}
	return nil
}

func startProduct(b *testing.B) *product {
	b.Helper()
	dir := filepath.Join(b.TempDir(), "state")
	admin := freeAddress(b)
	config := filepath.Join(b.TempDir(), "smartfeed.yaml")
	must.OK(b, os.WriteFile(config, []byte("admin: "+admin+"\nlog: {level: error}\n"+os.Getenv("STREAM_CONFIG")), 0o600))
	p := child.Start(b, "smartfeed", "dev", "--dir", dir, "--http", "127.0.0.1:0", "--kafka", "127.0.0.1:0", "--registry", "127.0.0.1:0", "--config", config)
	started := map[string]string{}
	for line := p.Line(); !strings.Contains(line, "state "); line = p.Line() {
		if fields := strings.Fields(line); len(fields) == 2 {
			started[fields[0]] = fields[1]
		}
	}
	kafka := topics.Kafka{Brokers: strings.Split(started["kafka"], ","), Partitions: topics.EmbeddedPartitions, Embedded: true}
	return &product{b, p.Process.Pid, dir, strings.TrimSuffix(started["console"], "/"), "http://" + admin, topics.Setup{Kafka: kafka, Registry: started["registry"]}}
}

// used is what the product has used so far.
type used struct {
	at       time.Time
	cpu      time.Duration
	counters map[string]float64 // by metric and group
}

func (p *product) used() used {
	return used{time.Now(), child.CPU(p.b, p.pid), p.counters()}
}

// sum returns a counter of one group, or of all groups for "".
func (u used) sum(metric, group string) (sum float64) {
	for name, n := range u.counters {
		of, its, _ := strings.Cut(name, " ")
		if of == metric && (group == "" || group == its) {
			sum += n
		}
	}
	return sum
}

// counters returns the product's counters, by metric and group.
func (p *product) counters() map[string]float64 {
	res := must.Get(http.Get(p.admin + "/metrics"))(p.b)
	defer res.Body.Close()
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(res.Body)
	must.OK(p.b, err)
	sums := map[string]float64{}
	for name, family := range families {
		for _, m := range family.GetMetric() {
			for _, l := range m.GetLabel() {
				if l.GetName() == "group" {
					sums[name+" "+l.GetValue()] += m.GetCounter().GetValue()
				}
			}
		}
	}
	return sums
}

// peak returns the maximum memory of the product so far, in MiB.
func (p *product) peak() float64 {
	f := must.Get(os.Open(filepath.Join("/proc", strconv.Itoa(p.pid), "status")))(p.b)
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if rest, ok := strings.CutPrefix(lines.Text(), "VmHWM:"); ok {
			kib := must.Get(strconv.ParseFloat(strings.Fields(rest)[0], 64))(p.b)
			return kib / 1024
		}
	}
	p.b.Fatal("no VmHWM in the status of the process")
	return 0
}

// disk returns the size of the product's files, in MiB.
func (p *product) disk() float64 {
	var sum int64
	err := filepath.WalkDir(p.dir, func(_ string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return ignoreMissing(err)
		}
		info, err := e.Info()
		if err == nil {
			sum += info.Size()
		}
		return ignoreMissing(err)
	})
	must.OK(p.b, err)
	return float64(sum) / (1 << 20)
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// profile writes a CPU profile of the product to STREAM_PROFILES, if it is set, until the returned function is called.
func (p *product) profile(name string) (stop func()) {
	dir := os.Getenv("STREAM_PROFILES")
	if dir == "" {
		return func() {}
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := 0; ctx.Err() == nil; i++ {
			res, err := http.Get(p.admin + "/debug/pprof/profile?seconds=10")
			if err != nil {
				return
			}
			if f, err := os.Create(filepath.Join(dir, fmt.Sprintf("%s-%d.pprof", name, i))); err == nil {
				_, _ = io.Copy(f, res.Body)
				_ = f.Close()
			}
			_ = res.Body.Close()
		}
	}()
	return func() { cancel(); <-done }
}

// freeAddress returns an address that no server listens on.
func freeAddress(t testing.TB) string {
	t.Helper()
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	must.OK(t, l.Close())
	return l.Addr().String()
}
