package test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/smartfeed/smartfeed/app"
	"github.com/smartfeed/smartfeed/internal/testkit/eventually"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/topics"
)

// produce writes the code of an example with the addresses of the product to a file, and runs it.
func (p *product) produce(code, name string, command ...string) {
	p.t.Helper()
	ours := strings.NewReplacer("http://127.0.0.1:8081", p.RegistryURL(), "127.0.0.1:9092", p.Brokers()[0])
	file := filepath.Join(p.t.TempDir(), name)
	must.OK(p.t, os.WriteFile(file, []byte(ours.Replace(code)), 0o600))
	if out, err := exec.CommandContext(p.t.Context(), command[0], append(command[1:], file)...).CombinedOutput(); err != nil {
		p.t.Fatalf("%q: %v\n%s", command, err, out)
	}
}

// awaitSaves waits until the topic and the features of user:ada have a number of saves, and checks the partitions of the records.
func (p *product) awaitSaves(want int) {
	p.t.Helper()
	client := must.Get(kgo.NewClient(kgo.SeedBrokers(p.Brokers()...), kgo.ConsumeTopics(topics.Actions)))(p.t)
	defer client.Close()
	found := 0
	eventually.True(p.t, "the records are on the topic", func() bool {
		fetched := client.PollFetches(p.t.Context())
		must.OK(p.t, fetched.Err())
		fetched.EachRecord(func(r *kgo.Record) {
			found++
			expect.Equal(p.t, r.Partition, topics.Partition(string(r.Key), topics.EmbeddedPartitions), "partition of the key %s", r.Key)
		})
		return found == want
	})
	p.wait()
	expect.Equal(p.t, strings.Count(p.actionsOf("user:ada"), `"object":"pin:emil-2998","verb":"save"`), want, "saves of user:ada")
}

// The page shows the code of the Python example, and both examples publish an action that counts in the features of its user.
func TestExample_ProducersPublishActions(t *testing.T) {
	tools := exampleTools(t)
	p := start(t, app.Dev, testConfig(t))
	p.publish(map[string]any{"stream": "pins", "id": "pin", "time": time.Now().Format(time.RFC3339Nano),
		"actor": "user:emil", "verb": "create", "object": "pin:emil-2998"})
	guide := string(must.Get(os.ReadFile("docs/how-to/produce-events.md"))(t))
	shown := regexp.MustCompile("(?s)```python\n(.*?)```").FindStringSubmatch(guide)[1]
	python := string(must.Get(os.ReadFile("examples/python-producer/producer.py"))(t))
	if shown != python || strings.Count(python, "\n") > 15 {
		t.Errorf("docs/how-to/produce-events.md shows\n%s\nwant examples/python-producer/producer.py, of at most 15 lines", shown)
	}
	p.produce(shown, "producer.py", filepath.Join(tools, "python/bin/python"))
	p.awaitSaves(1)
	p.produce(string(must.Get(os.ReadFile("examples/java-producer/Producer.java"))(t)), "Producer.java", "java", "-cp", filepath.Join(tools, "java/*"))
	p.awaitSaves(2)
}
