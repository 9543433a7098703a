package app

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/smartfeed/smartfeed/internal/ops"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// Ids of the erased user and of the user's objects. Every trace of the user in these tests starts with one of them.
const (
	erased     = "user:gone"
	erasedPins = "pin:gone-"
)

// lifeOfAUser returns the events of a user with a profile, pins, actions, and users on both sides of every kind of
// edge, live and deleted.
func lifeOfAUser(now time.Time) []map[string]any {
	s := &story{now: now.Add(-time.Hour)}
	s.add("users", erased, "update", erased, map[string]any{"interests": []string{"interest:tea"}})
	for n := range 30 {
		author, fan := fmt.Sprint("user:author-", n), fmt.Sprint("user:fan-", n)
		s.add("follows", erased, "follow", author, nil)
		s.add("follows", fan, "follow", erased, nil)
		if n%3 == 0 {
			s.add("follows", erased, "unfollow", author, nil)
			s.add("follows", fan, "unfollow", erased, nil)
		}
	}
	for _, other := range []string{"user:foe", "board:foe"} {
		s.add("follows", erased, "block", other, nil)
	}
	s.add("follows", "user:enemy", "block", erased, nil)
	for _, followee := range []string{erased, "board:g", "interest:tea", "user:author-1"} {
		s.add("follows", "user:reader", "follow", followee, nil)
	}
	facets := map[string]any{"board": "board:g", "interests": []string{"interest:tea"}}
	for n := range 40 {
		s.add("pins", erased, "create", fmt.Sprint(erasedPins, n), facets)
		s.add("pins", fmt.Sprint("user:author-", n%30), "create", fmt.Sprint("pin:other-", n), facets)
	}
	for n := range 10 {
		save := map[string]any{"board": "board:saved"}
		s.add("actions", erased, "save", fmt.Sprint("pin:other-", n), save)
		s.add("actions", "user:reader", "save", fmt.Sprint(erasedPins, n), save)
		s.add("actions", "user:reader", "save", fmt.Sprint("pin:other-", n), save)
	}
	for n := range 12 { // of authors with an affinity but no follow
		pin := fmt.Sprint("pin:other-stranger-", n)
		s.add("pins", fmt.Sprint("user:stranger-", n), "create", pin, nil)
		for range 2 { // a single action has decayed too far to change the weight
			s.add("actions", erased, "save", pin, nil)
		}
	}
	return s.events
}

// show sends every request whose response contained the user or a pin of the user before the erasure, and returns those
// whose response still does.
func (s httpAPI) show() (shown []string) {
	s.t.Helper()
	ask := func(path string, hints ...string) {
		text := s.get(path)
		for _, hint := range hints {
			if strings.Contains(text, hint) {
				shown = append(shown, path+" has "+hint)
			}
		}
	}
	for _, path := range []string{
		"/v1/users/user:reader/feed?limit=100", "/v1/users/user:reader/pools?source=following&limit=1000",
		"/v1/users/user:reader/pools?source=interest&limit=1000", "/v1/users/user:reader/pools?source=related&limit=1000",
		"/v1/users/user:fan-1/feed?limit=100", "/v1/boards/board:g/pins?limit=100", "/v1/interests/interest:tea/pins?limit=100",
		"/v1/users/" + erased + "/pins?limit=100", "/v1/pins/pin:other-1/related?limit=100",
	} {
		ask(path, erased, erasedPins)
	}
	// Items of other users, which the erased user has seen.
	for _, path := range []string{
		"/v1/users/" + erased + "/feed?limit=100", "/v1/users/" + erased + "/pools?source=following&limit=1000",
		"/v1/users/" + erased + "/pools?source=related&limit=1000",
	} {
		ask(path, "pin:other-")
	}
	ask("/v1/users/"+erased+"/interests", "interest:tea")
	ask("/v1/insights/xd28s", `"users":2`) // the erased user and the reader
	return shown
}

// checkErased checks that no response contains the user, and that the data of other users remains.
func (s httpAPI) checkErased() {
	s.t.Helper()
	expect.Empty(s.t, s.show(), "responses with the user")
	for path, want := range map[string]string{
		"/v1/users/" + erased + "/feed/new":                      `"count":0`,
		"/v1/users/user:reader/feed?limit=100":                   "pin:other-",
		"/v1/users/user:reader/pools?source=interest&limit=1000": `"source":"interest"`,
		"/v1/interests/interest:tea/pins?limit=100":              "pin:other-",
		"/v1/users/" + erased + "/feed/why?pin=pin:other-1":      `user_deleted`,
		"/v1/insights/xd28s":                                     `"users":1`,
	} {
		expect.Contains(s.t, s.get(path), want, "%s", path)
	}
	// Until a sweep, a candidate of related has its author. Otherwise the reason is that the pin is deleted.
	why := s.get("/v1/users/user:reader/feed/why?pin=" + erasedPins + "1")
	if !strings.Contains(why, `"reason":"deleted"`) && !strings.Contains(why, `"reason":"author_deleted"`) {
		s.t.Errorf("why: neither the pin nor its author is deleted in %.500s", why)
	}
	s.checkFeaturesMissing()
}

// checkFeaturesMissing checks that the features of the erased user, alone and in a pair, are missing.
func (s httpAPI) checkFeaturesMissing() {
	s.t.Helper()
	answer := post[struct {
		Values  map[string]map[string]any
		Missing []struct{ Entity, Feature, Reason string }
	}](s, "/v1/features", `{"features":["interests_24h","last_actions","pair_author_96h"],"users":["`+erased+`"],"pairs":[["`+erased+`","pin:other-1"]]}`)
	expect.AtLeast(s.t, len(answer.Missing), 1, "missing features")
	for entity, values := range answer.Values {
		for name, value := range values {
			expect.True(s.t, value == nil, "%s of %s is %v, want none", name, entity, value)
		}
	}
	for _, m := range answer.Missing {
		expect.Equal(s.t, m.Reason, "deleted", "reason of %s of %s", m.Feature, m.Entity)
	}
}

// tracesIn returns the number of rows that contain the user or one of the user's pins, by "group: owner kind".
func (s *started) tracesIn(groups ...string) map[string]int {
	s.t.Helper()
	found := map[string]int{}
	for _, group := range groups {
		table := topics.TableOf(group)
		rows := map[string][]byte{}
		for _, r := range s.records(table) {
			if rows[string(r.Key)] = r.Value; r.Value == nil {
				delete(rows, string(r.Key))
			}
		}
		for key, value := range rows {
			if strings.Contains(key, erased) || bytes.Contains(value, []byte(erased)) {
				owner, row, _ := strings.Cut(key, "\x00")
				found[fmt.Sprintf("%s: %q %.1q", table, owner, row)]++
			}
		}
	}
	return found
}

// logsThatName returns the topics, except tables, with records that contain the user's id.
func (s *started) logsThatName(user string) (names []string) {
	s.t.Helper()
	for _, topic := range topics.Catalogue(topics.Profile{Embedded: true}) {
		if topic.Record == "" {
			continue
		}
		if slices.ContainsFunc(s.records(topic.Name), func(r *kgo.Record) bool {
			return bytes.Contains(r.Key, []byte(user)) || bytes.Contains(r.Value, []byte(user))
		}) {
			names = append(names, topic.Name)
		}
	}
	return names
}

// checkRemains checks that the list has every topic and every group with data of the user.
func (s *started) checkRemains(list []ops.Remain) {
	s.t.Helper()
	where := map[string]bool{}
	for _, r := range list {
		where[r.Where] = true
	}
	named := s.logsThatName(erased)
	for _, topic := range named {
		expect.True(s.t, where[topic], "erase reports %s, which contains the user", topic)
	}
	for _, topic := range []string{topics.Deliveries, topics.BoardSaves, topics.RelatedPairs, topics.InterestMarks, topics.DeadLetters, topics.VisitLog} {
		expect.True(s.t, slices.Contains(named, topic), "%s contains the user: otherwise, the test does not cover it", topic)
	}
	rows := s.tracesIn(topics.RowGroups()...)
	for trace := range rows {
		group, _, _ := strings.Cut(trace, "-table")
		if !where["rows of "+group] && !(group == topics.Pools && where["pools of other users"] && where["materialized feeds of other users"]) {
			s.t.Errorf("erase does not report rows like %s", trace)
		}
	}
	expect.Equal(s.t, rows[`retries-table: "actions" "b"`], 1, "waiting dead letters of the user in %v", rows)
}

// sweepPools fires the timers that are due within two days. They sweep the pools of other users.
func (s *started) sweepPools() {
	s.t.Helper()
	client := must.Get(s.kafka.Client(kgo.RecordPartitioner(kgo.ManualPartitioner())))(s.t)
	defer client.Close()
	for p := range s.kafka.Partitions {
		tick := &kgo.Record{Topic: topics.TicksOf(topics.Pools), Partition: p, Timestamp: time.Now().Add(49 * time.Hour)}
		must.OK(s.t, client.ProduceSync(s.t.Context(), tick).FirstErr())
	}
	s.wait()
}

// canRemain reports whether a trace remains after an erasure. These remain:
//
//   - the record of the deletion;
//   - hidden items in the materialized feeds of other users;
//   - affinities of other users, until they are next published;
//   - the latest saves to a board;
//   - timers of impressions of the user, for interests.attribution_window.
func canRemain(trace string) bool {
	return trace == `actors-table: "user:gone" "u"` ||
		strings.HasPrefix(trace, `pools-table: "user:`) && !strings.Contains(trace, erased) && slices.Contains([]string{`"a"`, `"e"`}, trace[len(trace)-3:]) ||
		strings.HasPrefix(trace, `related-table: "board:`) && strings.HasSuffix(trace, ` "s"`) ||
		strings.HasPrefix(trace, `actors-table: "user:reader" `) || trace == `actors-table: "" "t"` || trace == `interests-table: "" "t"`
}

func TestErase_RemovesEveryTrace(t *testing.T) {
	t.Parallel()
	for name, adjust := range map[string]func(*Config){
		"pushed":                    func(*Config) {},
		"in small steps":            func(c *Config) { c.Fanout.StepFollowers = 3 },
		"pulled":                    func(c *Config) { c.Fanout.PullThreshold = 5 },
		"more affinities than kept": func(c *Config) { c.Actors.TopAffinities, c.Actors.MaxAffinities = 1, 8 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := testConfig(t.TempDir())
			adjust(&cfg)
			testErase(t, cfg)
		})
	}
}

func testErase(t *testing.T, cfg Config) {
	cfg.Retries.InitialDelay, cfg.VisitLog.Share = time.Hour, 1
	cfg.settle()
	s := start(t, cfg)
	s.publish(lifeOfAUser(time.Now())...)
	s.publishDance(erased, "pin:other-1")
	s.api().becomes("actions/objects/verb-unknown-verb-known-are-click", schemas.RetryWaiting)
	s.api().show() // visits: materialized feeds have the pins
	must.AtLeast(t, len(s.api().show()), 10, "data in the responses before the erasure")
	done := runJSON[ops.Erased](s, "erase", erased)
	if done.Had[topics.Pools] == 0 || done.Has[topics.Pools] != 0 || done.Has[topics.Fanout] != 0 || done.Has[topics.Actors] != 1 {
		t.Errorf("erase: got %+v", done)
	}
	s.checkRemains(done.Remains)
	s.api().checkErased()
	expect.AtLeast(t, s.tracesIn(topics.Pools)[`pools-table: "user:reader" "c"`], 1, "candidates of the user in the reader's pools")
	s.sweepPools()
	for trace, n := range s.tracesIn(topics.Objects, topics.Actors, topics.Fanout, topics.Related, topics.Pools, topics.Interests, topics.Insights) {
		expect.True(t, canRemain(trace), "%d rows remain: %s", n, trace)
	}
	expect.Empty(t, must.Get(s.store.Edges(t.Context(), "user:reader", []schemas.ID{erased}))(t), "edges in the feed store")
	s.eraseAgain()
}

// eraseAgain erases the deleted user after new events of that user, and a user who never existed.
func (s *started) eraseAgain() {
	s.t.Helper()
	late := &story{prefix: "late-", now: time.Now()}
	late.add("pins", erased, "create", erasedPins+"late", map[string]any{"interests": []string{"interest:tea"}})
	late.add("follows", "user:reader", "follow", erased, nil)
	late.add("follows", erased, "follow", "user:author-1", nil)
	late.add("users", erased, "update", erased, nil)
	s.publish(late.events...)
	s.api().checkErased()
	if out, err := s.run("erase", erased); err != nil || !strings.Contains(out, "deleted_before") || !strings.Contains(out, "forever") {
		s.t.Errorf("erase again: %v: %s", err, out)
	}
	s.api().checkErased()
	if out, err := s.run("erase", "user:never"); err == nil || !strings.Contains(err.Error(), "exit code 1") || !strings.Contains(err.Error(), "no data of this user") {
		s.t.Errorf("erase an unknown user: %v: %s", err, out)
	}
	if out, err := s.run("erase", "user:never", "--unknown"); err != nil {
		s.t.Errorf("erase an unknown user with --unknown: %v: %s", err, out)
	}
}

// Sweeps of the embedded store delete whole days. The controller of Pinot checks periodically, and deletes whole segments.
func TestRemains_ReportDeletionTimeOfActions(t *testing.T) {
	embedded, withPinot := DefaultConfig(), DefaultConfig()
	embedded.Feature.SweepInterval = 3 * time.Hour
	withPinot.Pinot.Brokers = []string{"127.0.0.1:8000"}
	for _, c := range []struct {
		cfg                       *Config
		arrived, where, now, want string
	}{
		{&embedded, "after midnight", "the embedded feature store", "2026-02-27 00:10", "2026-03-04 03:00"},
		{&embedded, "within the clock skew of the next day", "the embedded feature store", "2026-02-27 23:57", "2026-03-05 03:00"},
		// 5 minutes of clock skew, 2 hours in an open segment, 30 days for sequences, 6 hours until the check, 7 days as a
		// file, 6 hours until the next check.
		{&withPinot, "after midnight", "Pinot", "2026-02-27 00:10", "2026-04-05 14:15"},
	} {
		now := must.Get(time.Parse("2006-01-02 15:04", c.now))(t)
		got := c.cfg.Remains(now)[0]
		if until := got.Until.Format("2006-01-02 15:04"); got.Where != c.where || until != c.want {
			t.Errorf("%s, %s: in %s until %s, want until %s", c.where, c.arrived, got.Where, until, c.want)
		}
	}
}

// The process is killed repeatedly after the delete is acknowledged.
func TestErase_ResumesAfterKills(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes: not with -short")
	}
	t.Parallel()
	for attempt := 1; !eraseKilled(t); attempt++ { // on a busy machine, the kills may be late
		if attempt == 5 {
			t.Fatal("in five attempts, every kill came after the erasure was complete")
		}
	}
}

// eraseKilled reports whether data remained at the last kill.
func eraseKilled(t *testing.T) bool {
	t.Helper()
	c := newChild(t, t.TempDir())
	c.args = append(c.args, "--fanout.step_followers", "2", "--rows.max_batch_records", "1")
	c.start()
	at := httpAPI{t, c.http}
	c.publish(lifeOfAUser(time.Now())...)
	at.show()
	c.post(event(time.Now(), "goodbye", "users", erased, "delete", erased, nil))
	for k := range 3 {
		c.until("processing records", func() bool { return k == 0 || c.records() > 0 })
		t.Logf("kill %d, %d records after the start", k+1, c.records())
		c.kill()
		c.launch()
	}
	c.until("ready", c.ready)
	c.wait()
	at.checkErased()
	hit := c.effect("erased_pins") > 0
	c.kill()
	return hit
}

// replaceDir replaces a directory with a copy of another.
func replaceDir(t *testing.T, dir, with string) {
	t.Helper()
	must.OK(t, os.RemoveAll(dir))
	must.OK(t, os.CopyFS(dir, os.DirFS(with)))
}

// eraseUsersAgain runs the command and returns its result.
func (s *started) eraseUsersAgain(args ...string) ops.ErasedAgain {
	s.t.Helper()
	return runJSON[ops.ErasedAgain](s, append([]string{"erase", "reapply", "--timeout", processingTimeout}, args...)...)
}

// A copy of the directory from before an erasure restores the user. "erase reapply" with the separate list of erased users
// erases them again.
func TestEraseAgain_AfterRestoreOfOlderCopy(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	cfg := testConfig(filepath.Join(root, "live"))
	backup, list := filepath.Join(root, "backup"), filepath.Join(root, "erased-users.txt")

	s := start(t, cfg)
	s.publish(lifeOfAUser(time.Now())...)
	s.api().show() // the visits put the pins into materialized feeds
	s.stop()
	replaceDir(t, backup, cfg.Dir)

	s = start(t, cfg)
	must.Get(s.run("erase", erased))(t)
	out, err := s.run("erase", "list")
	if err != nil || !strings.HasPrefix(out, erased+" ") || strings.Count(out, "\n") != 1 {
		t.Fatalf("erase list: %v: %q", err, out)
	}
	must.OK(t, os.WriteFile(list, []byte(out), 0o600))
	s.stop()
	replaceDir(t, cfg.Dir, backup)

	s = start(t, cfg)
	must.AtLeast(t, len(s.api().show()), 10, "data to erase in the restored copy")
	done := s.eraseUsersAgain(list)
	expect.Equal(t, [2]int{done.Users, done.Restored}, [2]int{1, 1}, "users erased again, and restored before")
	s.api().checkErased()
	for _, args := range [][]string{{list}, nil} { // without a file: the deleted users on the brokers
		done := s.eraseUsersAgain(args...)
		expect.Equal(t, [2]int{done.Users, done.Restored}, [2]int{1, 0}, "users erased again by %v, and restored before", args)
	}
	s.api().checkErased()
}
