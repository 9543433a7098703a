package app

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// checkProcesses publishes a pin to a follower, and checks that it reaches the follower's pool.
func (s *started) checkProcesses(n int) {
	s.t.Helper()
	now := time.Now().UnixMicro()
	s.api().answers(http.StatusAccepted, "", "/v1/events", fmt.Sprintf(
		`{"stream":"follows","id":"f-%d","time":%d,"actor":"user:fan","verb":"follow","object":"user:star"}
{"stream":"pins","id":"p-%d","time":%d,"actor":"user:star","verb":"create","object":"pin:%d","title":"t"}
`, n, now, n, now, n))
	s.wait()
	pool := must.Get(s.services.Generator.Pool(s.t.Context(), "user:fan", schemas.Following, 1000))(s.t)
	want := schemas.PinID(fmt.Sprintf("pin:%d", n))
	for _, item := range pool.Items {
		if item.Pin == want {
			return
		}
	}
	s.t.Errorf("%s is not in the pool: the pipeline is blocked", want)
}

func TestEvents_RejectsBadLines(t *testing.T) {
	t.Parallel()
	s := start(t, testConfig(t.TempDir()))
	future := time.Now().Add(time.Hour).UnixMicro()
	for name, c := range map[string]struct {
		lines  string
		status int
		want   []string
	}{
		"broken JSON":  {"{\"stream\":\n", 400, []string{"line 1"}},
		"wrong id":     {`{"stream":"pins","id":"x","time":1,"actor":"ada","verb":"create","object":"pin:1"}`, 400, []string{"line 1", "actor"}},
		"future":       {fmt.Sprintf(`{"stream":"pins","id":"x","time":%d,"actor":"user:a","verb":"create","object":"pin:1"}`, future), 400, []string{"line 1", "time"}},
		"unknown verb": {`{"stream":"actions","id":"x","time":1,"actor":"user:a","verb":"juggle","object":"pin:1"}`, 400, []string{"line 1", "juggle"}},
		"several": {"{}\n" + `{"stream":"pins","id":"good","time":1,"actor":"user:a","verb":"create","object":"pin:never"}` + "\nnonsense\n",
			400, []string{"line 1", "line 3", "nothing was published"}},
		"nothing":      {"\n\n", 400, []string{"no event"}},
		"10 MB":        {strings.Repeat(strings.Repeat("x", 1023)+"\n", 10<<10), 413, []string{"larger"}},
		"a NUL in id":  {`{"stream":"users","id":"x","time":1,"actor":"user:\u0000","verb":"update","object":"user:\u0000"}`, 400, []string{"line 1"}},
		"deep nesting": {strings.Repeat("[", 100_000) + "\n", 400, []string{"line 1"}},
	} {
		status, body := s.api().send("/v1/events", c.lines)
		expect.Equal(t, status, c.status, "%s: status of %.300s", name, body)
		for _, want := range c.want {
			expect.Contains(t, body, want, "%s", name)
		}
	}
	s.checkProcesses(1)
	card := must.Get(s.feed.List(t.Context(), "user:a", "", "", 10))(t)
	expect.Equal(t, len(card.Items), 0, "pins published from a good line among bad ones")
}

// The test writes invalid bytes to each topic that a group or a sink reads. The groups send each record to the dead-letter
// topic with a reason, or drop it, and process later valid records.
func TestGroups_ContinueAfterInvalidRecords(t *testing.T) {
	t.Parallel()
	s := start(t, testConfig(t.TempDir()))
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
	s.checkProcesses(2)
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
