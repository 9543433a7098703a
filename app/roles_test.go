package app

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	testchild "github.com/smartfeed/smartfeed/internal/testkit/child"
	"github.com/smartfeed/smartfeed/internal/testkit/eventually"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/internal/testkit/topicstest"
	"github.com/smartfeed/smartfeed/topics"
	"github.com/smartfeed/smartfeed/topics/embedded"
)

// startBroker runs a broker and a registry with every topic. Roles use them like external ones.
func startBroker(t *testing.T) *embedded.Server {
	t.Helper()
	return topicstest.Start(t, 0).Server
}

// roleConfig returns the configuration of a role on a broker.
func roleConfig(t *testing.T, broker *embedded.Server) Config {
	t.Helper()
	cfg := testConfig(t.TempDir())
	cfg.Kafka, cfg.Registry, cfg.HTTP = broker.Kafka(0).Brokers, broker.RegistryURL(), testchild.FreeAddress(t)
	return cfg
}

// Two processes share the groups and a third serves. After one of the two stops, the other has all pools.
func TestRoles_RunInSeparateProcesses(t *testing.T) {
	t.Parallel()
	d := readDataset(t, generated(t, 0.03))
	limit := DefaultConfig().Pools.MaxCandidates
	broker := startBroker(t)
	first := startPieces(t, roleConfig(t, broker), processing(topics.RowGroups()))
	second := startPieces(t, roleConfig(t, broker), processing(topics.RowGroups()))
	front := startPieces(t, roleConfig(t, broker), serving())
	front.importSet(d)
	for _, s := range []*started{first, second} {
		if n := len(s.local(topics.Pools).Partitions); n == 0 || n == int(s.cfg.partitions()) {
			t.Fatalf("one process has %d of %d partitions of pools: want some, not all", n, s.cfg.partitions())
		}
	}
	front.checkPools(d, limit)
	front.api().checkFeatures(d)
	front.checkLists(d)
	front.api().checkRelated(d)

	first.stop()
	front.checkPools(d, limit)
	expect.Equal(t, len(second.local(topics.Pools).Partitions), int(second.cfg.partitions()), "partitions of pools of the remaining process")
	front.api().checkVisits(d, limit)
	second.checkNoLoss()
}

// Each of two serving processes has the features of all users, and the deleted users. A process that lost its directory reads
// everything again. Both answer insights from the processes that own the partitions.
func TestServe_EachProcessHasEveryUser(t *testing.T) {
	t.Parallel()
	broker := startBroker(t)
	startPieces(t, roleConfig(t, broker), processing(topics.RowGroups()))
	lost := roleConfig(t, broker)
	first, second := startPieces(t, roleConfig(t, broker), serving()), startPieces(t, lost, serving())
	now, users := time.Now(), []string{}
	events := []map[string]any{event(now, "p", "pins", "user:author", "create", "pin:1", map[string]any{"interests": []string{"interest:tea"}})}
	for i := range 12 {
		user := fmt.Sprint("user:", i)
		users = append(users, user)
		events = append(events, event(now, user, "actions", user, "save", "pin:1", nil))
	}
	first.publish(events...)
	for _, s := range []*started{first, second} {
		eventually.True(t, s.url("")+" knows everybody", func() bool { return s.hasActions(users, 12) })
	}

	must.Get(first.run("erase", users[0]))(t)
	second.stop()
	must.OK(t, os.RemoveAll(lost.Dir))
	second = startPieces(t, lost, serving())
	for _, s := range []*started{first, second} {
		eventually.True(t, s.url("")+" has the actions of the other users", func() bool { return s.hasActions(users[1:], 11) })
		expect.Equal(t, s.interestsOf(users[0]), "null", "%s: interests of the deleted user", s.url(""))
	}
}

// hasActions reports whether a process has the actions of each of the users, and the number of active ones.
func (s *started) hasActions(users []string, active int) bool {
	s.t.Helper()
	for _, user := range users {
		if s.interestsOf(user) != `{"interest:tea":1}` {
			return false
		}
	}
	return strings.Contains(s.api().get("/v1/insights/xd28s"), fmt.Sprintf(`"users":%d`, active))
}

// interestsOf returns the feature interests_24h of a user.
func (s *started) interestsOf(user string) string {
	s.t.Helper()
	answer := post[struct {
		Values map[string]map[string]json.RawMessage
	}](s.api(), "/v1/features", `{"features":["interests_24h"],"users":["`+user+`"]}`)
	return strings.Join(strings.Fields(string(answer.Values[user]["interests_24h"])), "")
}

func TestRoles_ReportMistakes(t *testing.T) {
	t.Parallel()
	broker := startBroker(t)
	used := roleConfig(t, broker)
	startPieces(t, used, processing([]string{topics.Objects}))
	flags := func(partitions, http, dir string) []string {
		return []string{"--kafka", used.Kafka[0], "--registry", used.Registry, "--partitions", partitions, "--http", http, "--dir", dir}
	}
	for name, c := range map[string]struct {
		args  []string
		says  string
		usage bool // wrong usage instead of a failure
	}{
		"unknown group":       {append([]string{"process", "feeds"}, flags("4", "127.0.0.1:1", t.TempDir())...), `unknown group "feeds": want one of objects`, true},
		"listed twice":        {append([]string{"process", "pools", "pools"}, flags("4", "127.0.0.1:1", t.TempDir())...), "listed twice", true},
		"no fixed port":       {append([]string{"process"}, flags("4", "127.0.0.1:0", t.TempDir())...), "set --advertise", true},
		"other partitions":    {append([]string{"process"}, flags("8", "127.0.0.1:1", t.TempDir())...), "partitions is 4 and must be 8", false},
		"directory in use":    {append([]string{"serve"}, flags("4", "127.0.0.1:1", used.Dir)...), "another process", false},
		"no broker":           {[]string{"process", "--kafka", "127.0.0.1:1", "--http", "127.0.0.1:1", "--dir", t.TempDir()}, "127.0.0.1:1", false},
		"no registry":         {[]string{"serve", "--kafka", used.Kafka[0], "--registry", "127.0.0.1:1", "--http", "127.0.0.1:1", "--dir", t.TempDir()}, "127.0.0.1:1: the schema registry is unavailable", false},
		"arguments for serve": {append([]string{"serve", "pools"}, flags("4", "127.0.0.1:1", t.TempDir())...), "want no arguments", true},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			code := 1
			if c.usage {
				code = 2
			}
			out, err := runCommand(ctx, c.args...)
			if err == nil || !strings.Contains(err.Error(), c.says) || !strings.HasPrefix(err.Error(), fmt.Sprintf("exit code %d: ", code)) {
				t.Errorf("got %v, %s\nwant exit code %d and an error with %q", err, out, code, c.says)
			}
		})
	}
}

// A group of the catalogue without an entry would have no constructor, and an entry without a group would have no ACLs.
func TestGroups_MatchCatalogue(t *testing.T) {
	var names []string
	for _, g := range groups() {
		names = append(names, g.name)
		expect.True(t, g.define != nil, "%s has a constructor", g.name)
		expect.False(t, g.read != nil && g.owners == "", "%s serves requests, but peers cannot find the owners of its partitions", g.name)
		if g.owners != "" && !slices.Contains(topics.ReadBy(g.name), g.owners) {
			t.Errorf("%s does not read %s, so its members do not own the partitions", g.name, g.owners)
		}
	}
	expect.NoDiff(t, names, topics.RowGroups(), "names")
}

func TestOpen_RejectsInvalidGroups(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Dir = t.TempDir()
	for want, names := range map[string][]string{
		`unknown group "pool": want one of objects`: {"pool"},
		"group pools is listed twice":               {topics.Pools, topics.Pools},
	} {
		expect.Error(t, expect.ErrorOf(Open(t.Context(), Options{Config: cfg, Role: Process, Groups: names})), want, "%v", names)
	}
}
