package app

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/smartfeed/smartfeed/internal/convert"
	"github.com/smartfeed/smartfeed/internal/ops/generations"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/internal/testkit/oracle"
	"github.com/smartfeed/smartfeed/internal/testkit/oracle/visits"
	"github.com/smartfeed/smartfeed/processors/actors"
	"github.com/smartfeed/smartfeed/processors/objects"
	"github.com/smartfeed/smartfeed/processors/rules"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
	"github.com/smartfeed/smartfeed/topics/generation"
)

const (
	replayReaders = 8
	replayCap     = 10
)

// replayConfig keeps few pins per followee: the rules determine which ones.
func replayConfig(t *testing.T) Config {
	cfg := testConfig(t.TempDir())
	cfg.Pools.MaxCandidates, cfg.Fanout.MaxRecentPublications, cfg.Fanout.StepFollowers = replayCap, 4*replayCap, 3
	cfg.Actors.EdgeWeightSteps = actors.Steps{{MinAffinity: math.Inf(-1), Weight: 1}} // brute force has no weights
	return cfg
}

// gold is a quality rule that applies to the pins of one author in three.
func gold(factor float64) []objects.QualityRule {
	return []objects.QualityRule{{Field: "attributes.tier", Equals: "gold", Factor: factor}}
}

// randomProduct returns users who follow, unfollow and block each other, and the pins of authors over many days, some of a
// better tier. With changes, some pins are moved and some deleted; the contents of a pool at its cap then depend on the
// order of arrival.
func randomProduct(seed uint64, pins int, changes bool) []map[string]any {
	random := rand.New(rand.NewPCG(seed, 1))
	begin := time.Now().Add(-40 * 24 * time.Hour)
	s := story{prefix: "random-"}
	followees := []string{"user:author-0", "user:author-1", "user:author-2", "board:b-0", "board:b-1", "interest:i-0", "interest:i-1"}
	for n := range replayReaders {
		reader := fmt.Sprint("user:reader-", n)
		for _, f := range followees {
			switch random.IntN(8) {
			case 0:
			case 1:
				s.addAt(begin, "follows", reader, "follow", f, nil)
				s.addAt(begin.Add(time.Hour), "follows", reader, "unfollow", f, nil)
			default:
				s.addAt(begin, "follows", reader, "follow", f, nil)
			}
		}
		if n == 1 {
			s.addAt(begin, "follows", reader, "block", "user:author-2", nil)
		}
	}
	for n := range pins {
		author, pin := fmt.Sprint("user:author-", random.IntN(3)), fmt.Sprint("pin:", n)
		at := begin.Add(time.Duration(random.Int64N(int64(35 * 24 * time.Hour))))
		facets := func() map[string]any {
			return map[string]any{"board": fmt.Sprint("board:b-", random.IntN(3)), "interests": []string{fmt.Sprint("interest:i-", random.IntN(3))}}
		}
		create := facets()
		if random.IntN(3) == 0 {
			create["attributes"] = map[string]string{"tier": "gold"}
		}
		s.addAt(at, "pins", author, "create", pin, create)
		if !changes {
			continue
		}
		for k := range random.IntN(3) {
			s.addAt(at.Add(time.Duration(k+1)*time.Minute), "pins", author, "update", pin, facets())
		}
		if random.IntN(10) == 0 {
			s.addAt(at.Add(time.Hour), "pins", author, "delete", pin, nil)
		}
	}
	return s.events
}

// edgesFirst publishes the edges and, after they have been processed, the pins. If an unfollow or a block arrived after
// pins that it hides, a pool at its cap would have fewer candidates than that of the oracle.
func edgesFirst(publish func(...map[string]any), events []map[string]any) {
	pins := slices.IndexFunc(events, func(e map[string]any) bool { return e["stream"] == "pins" })
	publish(events[:pins]...)
	publish(events[pins:]...)
}

// bruteForce computes the expected results of the events with the rules of a configuration.
func bruteForce(t testing.TB, cfg Config, events []map[string]any) *dataset {
	t.Helper()
	d := &dataset{product: oracle.New(oracle.Config{HalfLife: cfg.Fanout.ScoreHalfLife, Quality: func(e *schemas.PinEvent) float64 {
		q := 1.0
		for _, r := range cfg.Objects.QualityRules {
			if e.Attributes["tier"] == r.Equals {
				q *= r.Factor
			}
		}
		return q
	}})}
	for _, e := range events {
		text := must.Get(json.Marshal(e))(t)
		line := must.Get(schemas.ParseLine(text))(t)
		d.product.Apply(line)
	}
	for n := range replayReaders {
		d.users = append(d.users, schemas.UserID(fmt.Sprint("user:reader-", n)))
	}
	return d
}

// replay runs the command and returns its result.
func (s *started) replay(args ...string) generations.Replayed {
	s.t.Helper()
	flags := []string{"--rate", "100000", "--users", "100000", "--timeout", processingTimeout}
	done := runJSON[generations.Replayed](s, slices.Concat([]string{"replay"}, flags, args)...)
	if done.Built != nil {
		s.answersFrom(done.Built.Generation)
	}
	return done
}

// countedTopics returns the topics to which a replay must not write duplicates.
func countedTopics() []string {
	return []string{topics.Impressions, topics.ItemFeatures, topics.ActionsJoined, topics.ActionsEnriched, topics.FeedEntries, topics.HotPins,
		topics.Edges, topics.PinAttributes}
}

// recordCounts returns the number of records in each of the countedTopics.
func (s *started) recordCounts() map[string]int {
	said := map[string]int{}
	for _, topic := range countedTopics() {
		for _, r := range s.records(topic) {
			if !generation.IsMark(r) {
				said[topic]++
			}
		}
	}
	return said
}

// After a replay, the changed rules rank published pins, like the oracle. Before it, pools keep their contents.
func TestReplay_AppliesChangedRules(t *testing.T) {
	t.Parallel()
	roomy := func(c *Config) { c.Pools.MaxCandidates, c.Fanout.MaxRecentPublications = 500, 1000 }
	for name, c := range map[string]struct {
		changes       bool
		before, after func(*Config)
	}{
		"a longer half-life, more pins than are kept": {false, func(*Config) {}, func(c *Config) { c.Fanout.ScoreHalfLife *= 10 }},
		"a shorter half-life and another quality, pulled": {
			false,
			func(c *Config) { c.Fanout.PullThreshold, c.Objects.QualityRules = 2, gold(1.5) },
			func(c *Config) {
				c.Fanout.PullThreshold, c.Fanout.ScoreHalfLife, c.Objects.QualityRules = 2, c.Fanout.ScoreHalfLife/4, gold(20)
			},
		},
		"another quality, with moved and deleted pins": {
			true,
			func(c *Config) { roomy(c); c.Objects.QualityRules = gold(50) },
			func(c *Config) { roomy(c); c.Objects.QualityRules = gold(0.05) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := replayConfig(t)
			changed := cfg
			c.before(&cfg)
			c.after(&changed)
			changed.settle()
			testReplay(t, cfg, changed, randomProduct(7, 200, c.changes))
		})
	}
}

func testReplay(t *testing.T, cfg, changed Config, events []map[string]any) {
	s := start(t, cfg)
	edgesFirst(s.publish, events)
	s.checkPools(bruteForce(t, cfg, events), cfg.Pools.MaxCandidates)
	s.stop()

	s = start(t, changed)
	s.publish(
		event(time.Now(), "a-1", "actions", "user:reader-0", "save", "pin:1", map[string]any{"board": "board:x"}),
		event(time.Now(), "a-2", "actions", "user:reader-0", "click", "pin:2", nil))
	r := &reading{started: s, user: "user:visitor", limit: 5, shown: map[schemas.PinID]visits.Item{}}
	s.publish(event(time.Now(), "v-1", "follows", "user:visitor", "follow", "user:author-0", nil))
	r.visit()
	must.AtLeast(t, len(r.shown), 1, "shown items")
	r.wait()
	before := s.recordCounts()
	done := s.replay("all", "--half-life", changed.Fanout.ScoreHalfLife.String())
	if done.Events.Events == 0 || done.Built.Previous != 1 || done.Built.Generation != 2 {
		t.Errorf("replayed %+v, built %+v", done.Events, done.Built)
	}
	expect.NoDiff(t, s.recordCounts(), before, "duplicate records")
	s.checkPools(bruteForce(t, changed, events), cfg.Pools.MaxCandidates)
	r.visit() // checks that nothing is new again
	r.wait()
	s.checkReportedOnce()
	s.checkCards(changed, events)

	again := s.poolsOf([]schemas.UserID{"user:reader-0", "user:reader-1"})
	s.replay("following")
	s.replay("user:reader-0")
	got := s.poolsOf([]schemas.UserID{"user:reader-0", "user:reader-1"})
	expect.NoDiffBut(t, cmpopts.EquateEmpty(), got, again, "pools after a second replay")
}

// checkCards checks that cards have the quality of the current rules.
func (s *started) checkCards(cfg Config, events []map[string]any) {
	s.t.Helper()
	qualities := map[schemas.PinID]float64{}
	for _, r := range s.records(topics.PinCards) {
		if c, err := s.streams.PinCards.Decode(r.Value); err == nil && !c.Deleted {
			qualities[c.Pin] = c.Quality
		}
	}
	for _, pin := range bruteForce(s.t, cfg, events).product.Pins() {
		expect.Equal(s.t, qualities[pin.ID], pin.Quality, "quality on the card of %s", pin.ID)
	}
}

// An interrupted run resumes. While a generation is being built, another run is rejected.
func TestReplay_ResumesAndAborts(t *testing.T) {
	t.Parallel()
	cfg := replayConfig(t)
	events := randomProduct(3, 150, false)
	s := start(t, cfg)
	edgesFirst(s.publish, events)
	s.stop()
	cfg.Fanout.ScoreHalfLife *= 5
	cfg.settle()
	s = start(t, cfg)
	s.interrupt(topics.Objects, "replayed", 40, "replay, after", "replay", "all", "--rate", "100")
	building := []string{"replay", "all", "--rate", "100000", "--users", "1"}
	s.interrupt(topics.Pools, "rebuilt", 2, `"smartfeed replay all" resumes it`, building...)
	s.checkRejected("replay all", "replay", "following")
	s.checkRejected("replay all", "rebuild", "all")
	must.Get(s.run("replay", "all", "--abort"))(t)
	s.interrupt(topics.Pools, "rebuilt", 2, `"smartfeed replay all" resumes it`, building...)
	if done := s.replay("all"); done.Events != nil || done.Built.Copied != nil || done.Built.Generation != 3 {
		t.Errorf("resumed: %+v, %+v", done.Events, done.Built)
	}
	s.checkPools(bruteForce(t, cfg, events), replayCap)
}

// checkRejected checks that a command does not resume the build of another one, and that the error names the other one.
func (s *started) checkRejected(other string, args ...string) {
	s.t.Helper()
	expect.Error(s.t, expect.ErrorOf(s.run(args...)), strconv.Quote("smartfeed "+other)+" resumes it", "%v during that of %s", args, other)
}

// The program is killed during the replay of the log, during the build of the generation, and at the cut-over. The test
// restarts the command each time.
func TestReplay_ResumesAfterKills(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes: not with -short")
	}
	t.Parallel()
	cfg := replayConfig(t)
	events := randomProduct(11, 200, false)
	c := newChild(t, t.TempDir())
	c.args = append(c.args, "--pools.max_candidates", strconv.Itoa(replayCap), "--fanout.max_recent_publications", strconv.Itoa(4*replayCap))
	c.start()
	edgesFirst(c.publish, append([]map[string]any{event(time.Now(), "v", "follows", "user:visitor", "follow", "user:author-0", nil)}, events...))
	at := httpAPI{t, c.http}
	shown := at.newPins("user:visitor")
	c.kill()
	cfg.Fanout.ScoreHalfLife = 10 * 24 * time.Hour
	c.args = append(c.args, "--fanout.score_half_life", "240h")
	c.start()
	done := c.retry(func(killed bool) []string {
		args := []string{"replay", "all", "--timeout", processingTimeout}
		if killed {
			return append(args, "--rate", "100000", "--users", "100000")
		}
		return append(args, "--rate", "40", "--users", "1") // without kills: five seconds, and eight
	})
	done.survives(c, fault{"replayed", 20}, fault{"replayed", 40}, fault{"rebuilt", 2}, fault{"rebuilt", 1})
	c.until("the new generation is active", func() bool {
		for _, g := range c.counts() {
			if strings.HasPrefix(g.Group, "pools.") && g.Ready {
				return true
			}
		}
		return false
	})
	for _, pin := range at.newPins("user:visitor") {
		expect.False(t, slices.Contains(shown, pin), "%s is new twice", pin)
	}
	d := bruteForce(t, cfg, events)
	for _, user := range d.users {
		for _, source := range []schemas.Source{schemas.Following, schemas.FromInterest} {
			got := get[schemas.Pool](at, fmt.Sprintf("/v1/users/%s/pools?source=%s&limit=1000", user, source))
			pinOf := func(item schemas.PoolItem) schemas.PinID { return item.Pin }
			want := convert.All(d.product.Pool(user, source, replayCap), pinOf)
			expect.NoDiff(t, convert.All(got.Items, pinOf), want, "pool %s of %s", source, user)
		}
	}
}

// With another partition count, the command publishes nothing.
func TestReplay_RejectsOtherPartitions(t *testing.T) {
	t.Parallel()
	s := start(t, replayConfig(t))
	s.publish(randomProduct(1, 5, false)...)
	_, err := runCommand(t.Context(), "replay", "all", "--kafka", s.kafka.Brokers[0], "--registry", s.registry(), "--partitions", "8")
	expect.Error(t, err, "the topics have 4 partitions, partitions is 8", "replay with other partitions")
	expect.Error(t, err, "exit code 1", "replay with other partitions")
	expect.Equal(t, len(s.records(topics.Replays)), 0, "published events")
}

// newPins visits and returns the new pins.
func (s httpAPI) newPins(user schemas.UserID) (pins []schemas.PinID) {
	s.t.Helper()
	from := &visits.HTTP{URL: s.base, Client: &http.Client{Timeout: 2 * patience}, Feed: rules.Home, Limit: 10}
	page, err := from.Visit(s.t.Context(), user)
	if err != nil || len(page.Degraded) > 0 {
		s.t.Fatalf("visit of %s: degraded %v, %v", user, page.Degraded, err)
	}
	pins = freshOf(page)
	expect.AtLeast(s.t, len(pins), 1, "new pins of the visit of %s", user)
	return pins
}
