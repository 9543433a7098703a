package app

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"maps"
	"math"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/smartfeed/smartfeed/internal/convert"
	"github.com/smartfeed/smartfeed/internal/testkit/eventually"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/lastfmtest"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/internal/testkit/oracle"
	"github.com/smartfeed/smartfeed/internal/testkit/oracle/visits"
	"github.com/smartfeed/smartfeed/internal/tools/lastfm"
	"github.com/smartfeed/smartfeed/processors/actors"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/serving/feature"
	"github.com/smartfeed/smartfeed/serving/feed"
	"github.com/smartfeed/smartfeed/topics"
)

// started is an App that runs in this process, like `smartfeed dev`.
type started struct {
	*App
	t    testing.TB
	stop func()
}

// checkRelated checks the neighbors of pins with actions: some pins have neighbors, and the relation is symmetric unless a
// pin has more neighbors than the group keeps.
func (s httpAPI) checkRelated(d *dataset) {
	s.t.Helper()
	found := 0
	for _, p := range d.product.Pins() {
		if found >= 20 {
			return
		}
		for _, other := range s.related(p.ID) {
			found++
			if back := s.related(other); len(back) < DefaultConfig().Related.MaxNeighbors && !slices.Contains(back, p.ID) {
				s.t.Errorf("%s is a neighbor of %s, but not vice versa", other, p.ID)
			}
		}
	}
	expect.AtLeast(s.t, found, 1, "pins with neighbors")
}

func (s httpAPI) related(pin schemas.PinID) []schemas.PinID {
	s.t.Helper()
	answer := get[feed.RelatedPins](s, "/v1/pins/"+string(pin)+"/related?limit=100")
	if len(answer.Degraded) > 0 {
		s.t.Fatalf("related to %s: degraded %v", pin, answer.Degraded)
	}
	return convert.All(answer.Items, func(item feed.RelatedPin) schemas.PinID { return item.ID })
}

// patience is a long timeout of requests, for tests of the content of responses on busy machines.
const patience = min(eventually.Slowdown*20*time.Second, time.Minute) // the maximum of the setting

// processingTimeout is how long a test waits until everything has been processed.
var processingTimeout = max(5*time.Minute, eventually.Patience).String()

// testConfig returns a configuration with free ports.
func testConfig(dir string) Config {
	cfg := DefaultConfig()
	cfg.Feed.GeneratorTimeout, cfg.Feed.ReadTimeout, cfg.Feed.CatchUpTimeout, cfg.Feed.AckTimeout = patience, patience, patience, patience
	cfg.Feature.Timeout = patience
	cfg.Rows.DeferredCommitInterval, cfg.Rows.FetchMaxWait = 0, 50*time.Millisecond // topics.Wait reads committed offsets
	cfg.Dir, cfg.HTTP, cfg.Kafka, cfg.Registry = dir, "127.0.0.1:0", []string{"127.0.0.1:0"}, "127.0.0.1:0"
	cfg.settle()
	shortHandover(&cfg)
	return cfg
}

// shortHandover makes the generator wait for visits at the previous owner only for the default timeout of visits. In tests,
// visits have a long timeout but are short. Loading a configuration resets this.
func shortHandover(cfg *Config) { cfg.Generator.HandoverWait = feed.DefaultConfig().Longest() }

func start(t *testing.T, cfg Config) *started {
	t.Helper()
	return startPieces(t, cfg, everything())
}

func startPieces(t *testing.T, cfg Config, pieces []opener) *started {
	t.Helper()
	return startLogging(t, cfg, slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelError})), pieces)
}

func startLogging(t *testing.T, cfg Config, log *slog.Logger, pieces []opener) *started {
	t.Helper()
	s := launch(t, cfg, log, pieces)
	ready, done := context.WithTimeout(t.Context(), eventually.Patience)
	defer done()
	if s.Ready(ready) != nil {
		t.Fatalf("not ready within the timeout: %v", s.missing())
	}
	return s
}

// launch starts an App without waiting until it is ready.
func launch(t testing.TB, cfg Config, log *slog.Logger, pieces []opener) *started {
	t.Helper()
	return launchWith(t, Options{Config: cfg, Log: log}, pieces)
}

func launchWith(t testing.TB, o Options, pieces []opener) *started {
	t.Helper()
	p := must.Get(openParts(t.Context(), o, pieces))(t)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	s := &started{App: p, t: t}
	s.stop = func() {
		cancel()
		expect.Error(t, errors.Join(<-ended, p.Close()), "", "stop")
		s.stop = func() {}
	}
	t.Cleanup(func() { s.stop() })
	return s
}

// url returns the URL of a path.
func (s *started) url(path string) string { return "http://" + s.server.Addr() + path }

// registry returns the address of the registry.
func (s *started) registry() string {
	if s.broker != nil {
		return s.broker.RegistryURL()
	}
	return s.cfg.registryURL()
}

// run executes a command that connects to the App, and returns its output.
func (s *started) run(args ...string) (string, error) {
	s.t.Helper()
	return s.runIn(s.t.Context(), args...)
}

// runJSON executes a command whose output is JSON, and returns the decoded output.
func runJSON[V any](s *started, args ...string) (v V) {
	s.t.Helper()
	must.OK(s.t, json.Unmarshal([]byte(must.Get(s.run(append(args, "-o", "json")...))(s.t)), &v))
	return v
}

func (s *started) runIn(ctx context.Context, args ...string) (string, error) {
	return runCommand(ctx, append(args, "--kafka", s.kafka.Brokers[0], "--registry", s.registry(),
		"--partitions", strconv.Itoa(int(s.cfg.partitions())), "--http", s.server.Addr())...)
}

// interrupt runs a command until a group has counted an effect a number of times. It fails the test unless the error
// has the text resume.
func (s *started) interrupt(group, effect string, times int64, resume string, args ...string) {
	s.t.Helper()
	ctx, cancel := context.WithCancel(s.t.Context())
	defer cancel()
	ended := make(chan error, 1)
	before := s.effect(group, effect)
	go func() {
		_, err := s.runIn(ctx, args...)
		ended <- err
	}()
	eventually.True(s.t, fmt.Sprint(times, " ", effect), func() bool { return s.effect(group, effect) >= before+times })
	cancel()
	expect.Error(s.t, <-ended, resume, "%v: error with how to resume it", args)
}

func runCommand(ctx context.Context, args ...string) (string, error) {
	var out, problems bytes.Buffer
	if code := Execute(ctx, args, nil, new(bytes.Buffer), &out, &problems); code != 0 {
		return out.String(), fmt.Errorf("exit code %d: %s", code, problems.String())
	}
	return out.String(), nil
}

// dataset is a directory of files in the format of Last.fm, and the oracle's product of them.
type dataset struct {
	dir     string
	last    time.Time // of the newest action
	product *oracle.Product
	// deliveries is the number of pairs of an edge and a pin that it delivers, including repetitions of a user, source
	// and pin.
	deliveries int
	users      []schemas.UserID // a sample of 50, spread over all
}

func readDataset(t *testing.T, dir string) *dataset {
	t.Helper()
	set := must.Get(lastfm.Read(os.DirFS(dir)))(t)
	d := &dataset{dir: dir, last: time.Now().UTC().Truncate(time.Second)}
	d.product = oracle.New(oracle.Config{HalfLife: DefaultConfig().Fanout.ScoreHalfLife})
	shift := set.ShiftTo(d.last)
	for line := range set.Events(shift) {
		d.product.Apply(line)
	}
	d.deliveries = countDeliveries(set.Follows(shift), set.Pins(shift))
	all := d.product.Users()
	for i := 0; i < len(all) && len(d.users) < 50; i += max(1, len(all)/50) {
		d.users = append(d.users, all[i])
	}
	return d
}

// countDeliveries counts the followers of each pin's author and interests. This includes an author's own pins over an
// interest, although the author never sees them.
func countDeliveries(follows, pins iter.Seq[schemas.Line]) int {
	followers := map[schemas.ID]int{}
	for line := range follows {
		e, _ := line.Event.(*schemas.FollowEvent)
		followers[e.Object]++
	}
	n := 0
	for line := range pins {
		e, _ := line.Event.(*schemas.PinEvent)
		n += followers[schemas.ID(e.Actor)]
		for _, interest := range e.Interests {
			n += followers[schemas.ID(interest)]
		}
	}
	return n
}

// generated writes a dataset in the format of Last.fm.
func generated(t *testing.T, scale float64) string {
	t.Helper()
	return lastfmtest.Write(t, scale)
}

// lastfmDir returns the directory of the real files.
func lastfmDir(t *testing.T) string { return lastfmtest.Real(t, "..") }

func (s *started) importSet(d *dataset) {
	s.t.Helper()
	out := must.Get(s.run("import", "lastfm", d.dir, "--last-action", d.last.Format(time.RFC3339)))(s.t)
	s.t.Log(out)
	if allGroups := s.broker != nil; allGroups {
		want := regexp.MustCompile(fmt.Sprintf("results.deliveries +%d\n", d.deliveries))
		expect.True(s.t, want.MatchString(out), "the output of the import has %s", want)
	}
}

// everyCap is larger than every pool of the datasets here.
const everyCap = 100_000

func TestProduct_MatchesBruteForce(t *testing.T) {
	t.Parallel()
	testProduct(t, generated(t, 0.03))
}

// The fan-out delivers no pins: reads merge the pins of all followees from the slots.
func TestProduct_MatchesBruteForceWhenPulled(t *testing.T) {
	t.Parallel()
	d := readDataset(t, generated(t, 0.02))
	d.deliveries = 0
	cfg := testConfig(t.TempDir())
	cfg.Pools.MaxCandidates, cfg.FeedStore.MaxItems, cfg.Fanout.PullThreshold, cfg.Fanout.MaxRecentPublications = everyCap, everyCap, 0, 10_000
	cfg.Actors.EdgeWeightSteps = actors.Steps{{MinAffinity: math.Inf(-1), Weight: 1}} // a pulled pin has the current weight of its edge; brute force has none
	s := start(t, cfg)
	s.importSet(d)
	s.checkPools(d, everyCap)
	s.api().checkVisits(d, DefaultConfig().Pools.MaxCandidates)
	s.checkNoLoss()
	expect.AtLeast(t, s.effect(topics.Fanout, "pulled"), 1, "pulled publications")
}

func TestProduct_MatchesBruteForceOnLastfm(t *testing.T) {
	if testing.Short() {
		t.Skip("imports the whole set twice: not with -short")
	}
	testProduct(t, lastfmDir(t))
}

// testProduct imports a dataset, with a cap above all pools and with the default one, and compares the responses with brute
// force. Each case has its own oracle, because visits change it.
func testProduct(t *testing.T, dir string) {
	for name, limit := range map[string]int{"cap above all pools": everyCap, "default cap": DefaultConfig().Pools.MaxCandidates} {
		t.Run(name, func(t *testing.T) {
			d := readDataset(t, dir)
			cfg := testConfig(t.TempDir())
			cfg.Pools.MaxCandidates = limit
			s := start(t, cfg)
			s.importSet(d)
			s.checkPools(d, limit)
			s.api().checkFeatures(d)
			s.api().checkItems(d)
			s.checkLists(d)
			s.api().checkRelated(d)
			if limit == DefaultConfig().Pools.MaxCandidates {
				expect.AtLeast(t, s.local(topics.Pools).Dropped["cap"], 1, "candidates dropped by the cap")
				s.api().checkVisits(d, limit)
			}
			s.checkNoLoss()
		})
	}
}

// pool returns a pool. If no process owns its partition, pool waits for an owner.
func (s *started) pool(user schemas.UserID, source schemas.Source, limit int) *schemas.Pool {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), eventually.Patience)
	defer cancel()
	return must.Get(s.services.Generator.Pool(ctx, user, source, limit))(s.t)
}

func (s *started) checkPools(d *dataset, limit int) {
	s.t.Helper()
	checked := 0
	for _, user := range d.users {
		for _, source := range []schemas.Source{schemas.Following, schemas.FromInterest} {
			want := d.product.Pool(user, source, limit)
			got := s.pool(user, source, limit)
			expect.Equal(s.t, got.Total, len(want), "candidates in pool %s of %s", source, user)
			if diff := cmp.Diff(want, []schemas.PoolItem(got.Items), cmpopts.EquateEmpty()); diff != "" {
				s.t.Fatalf("pool %s of %s (-want +got):\n%.4000s", source, user, diff)
			}
			checked += len(want)
		}
	}
	expect.AtLeast(s.t, checked, 1, "compared candidates")
	s.t.Logf("%d candidates of %d users compared", checked, len(d.users))
}

// ask posts to /v1/features.
func (s httpAPI) ask(req feature.Request) map[string]map[string]any {
	s.t.Helper()
	answer := post[struct {
		Values   map[string]map[string]any
		Degraded []string
	}](s, "/v1/features", jsonText(s.t, req))
	if len(answer.Degraded) > 0 {
		s.t.Fatalf("features: degraded %v", answer.Degraded)
	}
	return answer.Values
}

func (s httpAPI) checkFeatures(d *dataset) {
	s.t.Helper()
	at := d.last.Add(time.Second)
	names := []string{"interests_24h", "authors_24h", "pins_24h", "last_actions"}
	values := s.ask(feature.Request{Features: names, Users: d.users, At: &at})
	liked := oracle.Feature{Verbs: []schemas.Verb{schemas.Click, schemas.Save}, Window: 24 * time.Hour}
	counted := 0
	for _, user := range d.users {
		got := values[string(user)]
		s.sameCounts(user, got["interests_24h"], d.product.CountByInterest(user, liked, schemas.MicrosOf(at)))
		s.sameCounts(user, got["authors_24h"], d.product.CountByAuthor(user, liked, schemas.MicrosOf(at)))
		pins := map[schemas.ID]bool{}
		for _, a := range d.product.Matching(user, oracle.Feature{Window: 24 * time.Hour}, schemas.MicrosOf(at)) {
			pins[a.Object] = true
		}
		expect.Equal[any](s.t, got["pins_24h"], float64(len(pins)), "pins_24h of %s", user)
		var want []string
		for _, a := range d.product.Matching(user, oracle.Feature{Window: 96 * time.Hour}, schemas.MicrosOf(at)) {
			want = append(want, string(a.Verb)+" "+string(a.Object))
		}
		want = want[:min(20, len(want))]
		expect.NoDiffBut(s.t, cmpopts.EquateEmpty(), actionsOf(got["last_actions"]), want, "last_actions of %s", user)
		counted += len(want)
	}
	expect.AtLeast(s.t, counted, 1, "compared actions")
}

func (s httpAPI) sameCounts(user schemas.UserID, got any, want map[string]int) {
	s.t.Helper()
	counts := map[string]int{}
	groups, _ := got.(map[string]any)
	for k, v := range groups {
		n, _ := v.(float64)
		counts[k] = int(math.Round(n))
	}
	expect.NoDiff(s.t, counts, want, "counts of %s", user)
}

func actionsOf(v any) []string {
	list, _ := v.([]any)
	var out []string
	for _, x := range list {
		a, _ := x.(map[string]any)
		out = append(out, fmt.Sprint(a["verb"], " ", a["object"]))
	}
	return out
}

// checkItems compares the counts of pins over all users. Counts have steps of five minutes, and the window ends now.
// Therefore the test compares only pins whose actions are all within the window.
func (s httpAPI) checkItems(d *dataset) {
	s.t.Helper()
	want, actors := countsOf(d)
	pins := slices.Sorted(maps.Keys(want))
	must.AtLeast(s.t, len(pins), 1, "pins with actions in the window")
	pins = pins[:min(500, len(pins))]
	for pin, features := range s.ask(feature.Request{Features: []string{"pin_actions_24h", "pin_actors_24h", "pin_saves_24h"}, Pins: pins}) {
		counts := want[schemas.PinID(pin)]
		s.sameCounts(schemas.UserID(pin), features["pin_actions_24h"], counts)
		expect.Equal[any](s.t, features["pin_saves_24h"], float64(counts["save"]), "pin_saves_24h of %s", pin)
		n := float64(len(actors[schemas.PinID(pin)]))
		if got, _ := features["pin_actors_24h"].(float64); math.Abs(got-n) > 0.1*n { // an estimate
			s.t.Errorf("pin_actors_24h of %s: got %v, want about %v", pin, got, n)
		}
	}
	s.checkPairs(d, pins)
	s.checkAttributes(d, pins)
}

// countsOf returns the number of actions by verb, and the users, for each pin whose actions are all within the window.
func countsOf(d *dataset) (map[schemas.PinID]map[string]int, map[schemas.PinID]map[schemas.UserID]bool) {
	counts, actors := map[schemas.PinID]map[string]int{}, map[schemas.PinID]map[schemas.UserID]bool{}
	for _, a := range d.product.Actions() {
		pin := schemas.PinID(a.Object)
		if counts[pin] == nil {
			counts[pin], actors[pin] = map[string]int{}, map[schemas.UserID]bool{}
		}
		counts[pin][string(a.Verb)]++
		actors[pin][a.Actor] = true
	}
	for _, a := range d.product.Actions() {
		if a.Time.Time().Before(time.Now().Add(-23 * time.Hour)) {
			delete(counts, schemas.PinID(a.Object))
		}
	}
	return counts, actors
}

// checkPairs compares a feature of pairs of a user with each pin.
func (s httpAPI) checkPairs(d *dataset, pins []schemas.PinID) {
	s.t.Helper()
	at := d.last.Add(time.Second)
	liked := oracle.Feature{Verbs: []schemas.Verb{schemas.Click, schemas.Save}, Window: 96 * time.Hour}
	req, counted := feature.Request{Features: []string{"pair_author_96h"}, At: &at}, 0
	for i, pin := range pins {
		req.Pairs = append(req.Pairs, feature.UserPin{User: d.users[i%len(d.users)], Pin: pin})
	}
	values := s.ask(req)
	for _, pair := range req.Pairs {
		pin, _ := d.product.Pin(pair.Pin)
		want := d.product.CountByAuthor(pair.User, liked, schemas.MicrosOf(at))[string(pin.Author)]
		expect.Equal[any](s.t, values[pair.String()]["pair_author_96h"], float64(want), "pair_author_96h of %s", pair)
		counted += want
	}
	s.t.Logf("features of %d pins compared; %d actions of users on pins of their authors", len(pins), counted)
}

// checkAttributes compares the attributes of the pins.
func (s httpAPI) checkAttributes(d *dataset, pins []schemas.PinID) {
	s.t.Helper()
	answer := post[feature.AttributesAnswer](s, "/v1/features/attributes", jsonText(s.t, feature.AttributesRequest{Pins: pins}))
	if len(answer.Missing)+len(answer.Degraded) > 0 || answer.Fresh == nil {
		s.t.Errorf("attributes: missing %v, degraded %v, fresh %v", answer.Missing, answer.Degraded, answer.Fresh)
	}
	for _, id := range pins {
		pin, _ := d.product.Pin(id)
		got := answer.Pins[id]
		if diff := cmp.Diff(pin.Facets, schemas.Facets{Author: got.Author, Board: got.Board, Interests: got.Interests, Language: pin.Language}, cmpopts.EquateEmpty()); diff != "" {
			s.t.Errorf("attributes of %s (-want +got):\n%s", id, diff)
		}
	}
}

func (s *started) checkLists(d *dataset) {
	s.t.Helper()
	for _, user := range d.users[:10] {
		want := d.product.List(schemas.Followee(user))
		var got []schemas.PinID
		cursor := ""
		for {
			page, err := s.feed.List(s.t.Context(), schemas.Followee(user), "", cursor, 100)
			if err != nil || len(page.Degraded) > 0 {
				s.t.Fatalf("list of %s: %v %v", user, page.Degraded, err)
			}
			for _, pin := range page.Items {
				got = append(got, pin.ID)
			}
			if page.Next == nil {
				break
			}
			cursor = *page.Next
		}
		expect.NoDiff(s.t, got, want, "list of %s", user)
	}
}

// checkVisits reads feeds until no item is new, and plain feeds to their end.
func (s httpAPI) checkVisits(d *dataset, limit int) {
	s.t.Helper()
	client := &http.Client{Timeout: 2 * patience}
	for i, user := range d.users[:12] {
		name := []string{"plain", "home"}[i%2]
		from := &visits.HTTP{URL: s.base, Client: client, Feed: name, Limit: 50}
		reader := visits.NewReader(visits.Config{Limit: 50, Cap: limit, Plain: name == "plain"}, from, d.product, user)
		if err := reader.ReadAll(s.t.Context()); err != nil {
			s.t.Errorf("%s of %s: %.3000v", name, user, err)
		}
		expect.False(s.t, reader.Shown() == 0 && len(d.product.Pool(user, schemas.Following, 1)) > 0, "%s has seen no pin", user)
	}
}

// checkNoLoss checks that the groups have no dead letters and no misplaced records.
func (s *started) checkNoLoss() {
	s.t.Helper()
	for _, g := range s.groups {
		st := g.Status()
		expect.Equal(s.t, st.Counters.DeadLetters, 0, "%s: dead letters", st.Group)
		expect.Equal(s.t, st.Counters.Misplaced, 0, "%s: misplaced records", st.Group)
	}
}
