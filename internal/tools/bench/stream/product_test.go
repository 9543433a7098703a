package stream

import (
	"cmp"
	"context"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/twmb/franz-go/pkg/sr/srfake"

	"github.com/smartfeed/smartfeed/internal/testkit/child"
	"github.com/smartfeed/smartfeed/internal/testkit/eventually"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/internal/testkit/topicstest"
	"github.com/smartfeed/smartfeed/topics"
)

// product is a running smartfeed, with its defaults, in other processes, so measurements exclude the cost of the clients.
type product struct {
	system
	setup topics.Setup
	rates []float64 // of visits per second
}

// execute is a child.Role that becomes the program bin/smartfeed.
func execute(_ context.Context, args []string) error {
	own := func(variable string) bool { return strings.HasPrefix(variable, "SMARTFEED_") } // variables of tests, which the program rejects
	file := cmp.Or(os.Getenv("STREAM_BINARY"), "../../../../bin/smartfeed")
	return syscall.Exec(file, append([]string{file}, args...), slices.DeleteFunc(os.Environ(), own))
}

// startProduct starts `smartfeed dev`, or `process` and `serve` on the Kafka broker that `.ci/services` started.
func startProduct(b *testing.B) *product {
	b.Helper()
	config := filepath.Join(b.TempDir(), "smartfeed.yaml")
	must.OK(b, os.WriteFile(config, []byte("log: {level: error}\n"+os.Getenv("STREAM_CONFIG")), 0o600))
	if addresses := os.Getenv(topicstest.RealKafka); addresses != "" {
		return startOnKafka(b, addresses, config)
	}
	return startDev(b, config)
}

func startDev(b *testing.B, config string) *product {
	b.Helper()
	dir, admin := filepath.Join(b.TempDir(), "state"), child.FreeAddress(b)
	p := child.Start(b, "smartfeed", "dev", "--config", config, "--dir", dir, "--admin", admin,
		"--http", "127.0.0.1:0", "--kafka", "127.0.0.1:0", "--registry", "127.0.0.1:0")
	started := map[string]string{}
	for line := p.Line(); !strings.Contains(line, "state "); line = p.Line() {
		if fields := strings.Fields(line); len(fields) == 2 {
			started[fields[0]] = fields[1]
		}
	}
	kafka := topics.Kafka{Brokers: strings.Split(started["kafka"], ","), Partitions: topics.EmbeddedPartitions, Embedded: true}
	return &product{
		system: system{
			parts: []part{{"dev", []int{p.Process.Pid}, []string{dir}}},
			url:   strings.TrimSuffix(started["console"], "/"), admins: []string{"http://" + admin},
		},
		setup: topics.Setup{Kafka: kafka, Registry: started["registry"]},
		rates: []float64{100, 300},
	}
}

func startOnKafka(b *testing.B, addresses, config string) *product {
	b.Helper()
	registry := srfake.New()
	b.Cleanup(registry.Close)
	kafka := topics.Kafka{Brokers: strings.Split(addresses, ","), Partitions: topics.RealPartitions}
	catalogue := topics.Catalogue(must.Get(topics.ProfileOf(b.Context(), kafka))(b))
	if plan := must.Get(topics.Apply(b.Context(), kafka, catalogue))(b); len(plan.Create) != len(catalogue) {
		b.Fatalf("the brokers %s have topics of smartfeed, whose records would count: start the broker on an empty directory", addresses)
	}
	p := &product{setup: topics.Setup{Kafka: kafka, Registry: registry.URL()}, rates: []float64{60}}
	flags := []string{"--config", config, "--kafka", addresses, "--registry", registry.URL(), "--partitions", strconv.Itoa(topics.RealPartitions)}
	processes := []string{"", ""} // the group of each process; none: all
	if os.Getenv("STREAM_PROCESSES") == "groups" {
		processes = topics.RowGroups()
	}
	for _, group := range processes {
		p.start(b, cmp.Or(group, "process"), append([]string{"process"}, strings.Fields(group)...), flags)
	}
	share := float64(len(topics.RowGroups()) * topics.RealPartitions / len(processes))
	for _, admin := range p.admins {
		process := &system{admins: []string{admin}}
		eventually.True(b, "each process owns its share of the partitions", func() bool {
			return process.used(b).sum("partitions_owned", "") == share
		})
	}
	p.start(b, "serve", []string{"serve"}, flags)
	services := os.Getenv("STREAM_SERVICES")
	pid := strings.TrimSpace(string(must.Get(os.ReadFile(filepath.Join(services, "kafka.pid")))(b)))
	p.parts = append(p.parts, part{broker, []int{must.Get(strconv.Atoi(pid))(b)}, []string{filepath.Join(services, "data", "kafka")}})
	return p
}

// start starts a process of a part, and waits until it is ready. The last one answers requests.
func (p *product) start(b *testing.B, name string, command, flags []string) {
	b.Helper()
	dir, web, admin := b.TempDir(), child.FreeAddress(b), child.FreeAddress(b)
	c := child.Start(b, "smartfeed", slices.Concat(command, []string{"--dir", dir, "--http", web, "--admin", admin}, flags)...)
	if last := len(p.parts) - 1; last < 0 || p.parts[last].name != name {
		p.parts = append(p.parts, part{name: name})
	}
	of := &p.parts[len(p.parts)-1]
	of.pids, of.dirs = append(of.pids, c.Process.Pid), append(of.dirs, dir)
	p.url, p.admins = "http://"+web, append(p.admins, "http://"+admin)
	eventually.True(b, name+" is ready", func() bool {
		res, err := http.Get(p.url + "/readyz")
		return err == nil && res.Body.Close() == nil && res.StatusCode == http.StatusOK
	})
}
