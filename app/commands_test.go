package app

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/smartfeed/smartfeed/internal/testkit/eventually"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
)

// execute runs a command in an empty directory, and returns its exit code and output.
func execute(t testing.TB, environ []string, args ...string) (code int, out, errOut string) {
	t.Helper()
	var o, e bytes.Buffer
	code = Execute(t.Context(), args, environ, strings.NewReader(""), &o, &e)
	return code, o.String(), e.String()
}

// configured runs a command with a configuration, and returns its output.
func configured(t *testing.T, file string, args ...string) string {
	t.Helper()
	out, err := runCommand(t.Context(), append(args, "--config", file)...)
	if err != nil {
		t.Fatalf("%v: %v\n%s", args, err, out)
	}
	return out
}

// deaf is an address at which no server listens.
const deaf = "127.0.0.1:1"

// With -o json, commands print JSON.
func TestCommands_PrintJSON(t *testing.T) {
	t.Parallel()
	s := start(t, testConfig(t.TempDir()))
	event, rows := filepath.Join(t.TempDir(), "events"), filepath.Join(t.TempDir(), "rows.jsonl")
	must.OK(t, os.WriteFile(rows, []byte(`{"user":"user:ada","time":"2026-01-02T03:04:05Z"}`), 0o600))
	text := `{"stream":"follows","id":"c1","time":1,"actor":"user:ada","verb":"follow","object":"user:bob"}`
	must.OK(t, os.WriteFile(event, []byte(text), 0o600))
	for _, args := range [][]string{
		{"version"}, {"config", "check"}, {"id", "encode", "3429", "1", "7075733"}, {"id", "decode", "241294492511762325"},
		{"token", "--auth.secret_file", filepath.Join(t.TempDir(), "secret"), "--user", "user:ada"},
		{"topics", "plan"}, {"topics", "apply"}, {"topics", "verify"}, {"publish", event}, {"wait", "--timeout", processingTimeout},
		{"simulate", "--for", "0", "--users", "3", "--pins", "3"}, {"wait", "--timeout", processingTimeout}, {"dead-letters", "list"},
		{"dead-letters", "retry"}, {"query", "get", "dead-letters/kinds"}, {"query", "get", "dead-letters/retries?limit=7"}, {"features", "verify"},
		{"features", "history", "--rows", rows, "--features", "interests_24h", "--out", rows + ".out"},
		{"query", "feed", "user:ada"}, {"query", "why", "user:ada", "pin:1"}, {"query", "get", "users/user:ada/pools?source=related"},
		{"query", "features"}, {"query", "features", "last_actions", "--user", "user:ada"}, {"query", "get", "status"},
		{"query", "get", "dictionary"}, {"query", "get", "users/user:ada/interests"}, {"query", "get", "interests/interest:tea/engagement"},
		{"query", "ready"}, {"rebuild", "user:ada"}, {"erase", "user:ada"}, {"doctor", "--timeout", "1m"},
		{"feed-store", "refill", "--store", "standby", "--feed_store.cassandra.primary.hosts", deaf, "--feed_store.cassandra.standby.hosts", deaf},
	} {
		out, err := s.run(append(args, "-o", "json")...)
		if err != nil || !json.Valid([]byte(out)) {
			t.Errorf("%q: %v, printed %s", args, err, out)
		}
	}
}

// An unconfigured store is a usage error. A store that a process fills cannot be refilled.
func TestRefill_RejectsStoreInUse(t *testing.T) {
	s := start(t, testConfig(t.TempDir()))
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"--store", "standby"}, 2, `--store: "standby": the configuration has primary`},
		{[]string{"--store", "green"}, 2, `--store: "green"`},
		{nil, 1, "materialize is Stable with 1 member: stop every process that fills its store"},
	} {
		var out string
		var err error
		eventually.True(t, c.want, func() bool { // until the sink has joined its group
			out, err = s.run(append([]string{"feed-store", "refill"}, c.args...)...)
			return err != nil && strings.Contains(err.Error(), c.want)
		})
		if code := fmt.Sprintf("exit code %d: ", c.code); out != "" || !strings.HasPrefix(err.Error(), code) {
			t.Errorf("%q: printed %q, %v, want %s", c.args, out, err, code)
		}
	}
}
