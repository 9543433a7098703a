package app

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// checkProcesses publishes a pin to a follower, and checks that it reaches the follower's pool.
func (s *started) checkProcesses() {
	s.t.Helper()
	now := time.Now()
	s.publish(event(now, "f", "follows", "user:fan", "follow", "user:star", nil), event(now, "p", "pins", "user:star", "create", "pin:1", nil))
	pool := s.pool("user:fan", schemas.Following, 1000)
	if len(pool.Items) != 1 || pool.Items[0].Pin != "pin:1" {
		s.t.Errorf("the pool has %+v, want pin:1: the pipeline is blocked", pool.Items)
	}
}

// The test writes invalid bytes to each topic that a group or a sink reads. The groups send each record to the dead-letter
// topic with a reason, or drop it, and process later valid records.
func TestGroups_ContinueAfterInvalidRecords(t *testing.T) {
	t.Parallel()
	s := start(t, testConfig(t.TempDir()))
	future := lines(t, event(time.Now().Add(time.Hour), "future", "pins", "user:star", "create", "pin:0", nil))
	s.api().answers(http.StatusBadRequest, "ahead", "/v1/events", future)
	client := must.Get(s.kafka.Client())(t)
	defer client.Close()
	garbage := [][]byte{
		nil, {}, {0}, []byte("not avro at all"),
		{0, 0, 0xff, 0xff, 0xff, 1, 2, 3},                  // an unknown schema id
		append([]byte{0, 0, 0, 0, 1}, 0xff, 0xff, 0xff),    // a truncated number
		append([]byte{0, 0, 0, 0, 1}, make([]byte, 99)...), // zeros
	}
	sent := 0
	for _, topic := range topics.Catalogue(topics.Profile{Embedded: true, Partitions: s.cfg.partitions()}) {
		if len(topic.Readers) == 0 || topic.Record == "" {
			continue
		}
		for i, value := range garbage {
			key := fmt.Sprintf("user:garbage-%d", i)
			must.OK(t, client.ProduceSync(t.Context(), &kgo.Record{Topic: topic.Name, Key: []byte(key), Value: value}).FirstErr())
			sent++
		}
	}
	s.checkProcesses()
	out := must.Get(s.run("dead-letters", "list", "--limit", "1000"))(t)
	for _, topic := range []string{topics.Pins, topics.Follows, topics.Actions, topics.Users, topics.Publications, topics.Deliveries,
		topics.Served, topics.Edges, topics.FeedEntries, topics.ActionsEnriched} {
		expect.Contains(t, out, topic, "dead letters")
	}
	for _, st := range s.supervisor.State() {
		expect.Equal(t, st.Restarts, 0, "restarts of %s, the last after %s", st.Name, st.LastError)
	}
	t.Logf("%d invalid records", sent)
}

func TestStart_ReportsEveryMistake(t *testing.T) {
	t.Parallel()
	taken := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer taken.Close()
	file := filepath.Join(t.TempDir(), "a-file")
	must.OK(t, os.WriteFile(file, nil, 0o600))
	features := filepath.Join(t.TempDir(), "features.yaml")
	must.OK(t, os.WriteFile(features, []byte("features:\n  - name: Bad Name\n    entity: user\n    aggregate: juggle\n"), 0o600))
	free := []string{"--kafka", "127.0.0.1:0", "--registry", "127.0.0.1:0"}
	for name, c := range map[string]struct {
		args []string
		code int
		want []string
	}{
		"HTTP port in use":     {append([]string{"dev", "--dir", t.TempDir(), "--http", taken.Addr().String()}, free...), 1, []string{taken.Addr().String(), "in use"}},
		"Kafka port in use":    {[]string{"dev", "--dir", t.TempDir(), "--http", "127.0.0.1:0", "--registry", "127.0.0.1:0", "--kafka", taken.Addr().String()}, 1, []string{taken.Addr().String(), "in use"}},
		"DIR is a file":        {append([]string{"dev", "--dir", file, "--http", "127.0.0.1:0"}, free...), 1, []string{file, "not a directory"}},
		"DIR below a file":     {append([]string{"dev", "--dir", filepath.Join(file, "x"), "--http", "127.0.0.1:0"}, free...), 1, []string{file}},
		"public address":       {append([]string{"dev", "--dir", t.TempDir(), "--http", "0.0.0.0:0"}, free...), 2, []string{"api.insecure"}},
		"bad definitions":      {append([]string{"dev", "--dir", t.TempDir(), "--http", "127.0.0.1:0", "--features_file", features}, free...), 2, []string{features, "juggle", "Bad Name"}},
		"missing config":       {[]string{"config", "check", "--config", "/no/such/file"}, 2, []string{"/no/such/file"}},
		"wrong values":         {[]string{"config", "check", "--pools.max_candidates", "1", "--rows.commit_interval", "soon", "--partitions", "3"}, 2, []string{"--rows.commit_interval"}},
		"values out of bounds": {[]string{"config", "check", "--pools.max_candidates", "1", "--partitions", "3"}, 2, []string{"pools.max_candidates", "partitions: 3"}},
		"unknown command":      {[]string{"feeed"}, 2, []string{"feeed"}},
		"unknown flag":         {[]string{"dev", "--nosuch"}, 2, []string{"--nosuch"}},
		"too many arguments":   {[]string{"dev", "here"}, 2, []string{"want no arguments"}},
		"no files to import":   {[]string{"import", "lastfm", t.TempDir()}, 1, []string{"user_artists.dat"}},
		"no DIR to import":     {[]string{"import", "lastfm"}, 2, []string{"accepts 1 arg"}},
	} {
		t.Run(name, func(t *testing.T) {
			code, _, problems := execute(t, nil, c.args...)
			expect.Equal(t, code, c.code, "exit code of %s", problems)
			for _, want := range c.want {
				expect.Contains(t, problems, want, "problems")
			}
		})
	}
}
