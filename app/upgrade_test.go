package app

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/internal/testkit/oracle/visits"
	"github.com/smartfeed/smartfeed/schemas"
)

const (
	// upgradeRelease is the variable with the tag or commit whose program writes the state before the upgrade.
	upgradeRelease = "SMARTFEED_TEST_RELEASE"
	// upgradeRecord is the variable that makes the test record upgradeState; see make upgrade-fixture.
	upgradeRecord = "SMARTFEED_TEST_RECORD"
	// upgradeState is a state directory of a former version, with the file recorded.json.
	upgradeState = "testdata/upgrade.tar.gz"
)

// recorded is what a former version has answered.
type recorded struct {
	Pins  []schemas.PinID                       `json:"pins"`  // of all authors; each user follows all of them
	Shown map[schemas.UserID][]schemas.PinID    `json:"shown"` // in feeds, newest visit first, in order
	Saves map[schemas.UserID]int                `json:"saves"`
	Likes map[schemas.UserID]schemas.InterestID `json:"likes"` // an interest among the affinities
}

const (
	upgradeReaders = 4
	upgradeAuthors = 3
	upgradePins    = 30 // before the upgrade
	upgradeKills   = 3
	upgradeBatches = 60 // during the upgrade, one pin each
)

func upgradeReader(n int) schemas.UserID { return schemas.UserID(fmt.Sprint("user:reader-", n)) }

// upgradeChild returns a program on a directory. program is "" for the present version.
func upgradeChild(t *testing.T, program, dir string) *child {
	t.Helper()
	features := filepath.Join(t.TempDir(), "features.yaml")
	define(t, features, `features:
  - {name: saves, entity: user, verbs: [save], aggregate: count}
  - {name: clicks, entity: user, verbs: [click], aggregate: count}
`)
	c := newChild(t, dir)
	c.program = program
	c.args = append(c.args, "--features_file", features)
	return c
}

// reads returns the feed without rules, which shows every candidate.
func (c *child) reads() *visits.HTTP {
	return &visits.HTTP{URL: c.http, Client: &http.Client{Timeout: 2 * patience}, Feed: "plain", Limit: 4}
}

// counts returns a feature of each reader.
func (c *child) countsOf(name string) map[schemas.UserID]int {
	c.t.Helper()
	var users []schemas.UserID
	for n := range upgradeReaders {
		users = append(users, upgradeReader(n))
	}
	values := must.Get(c.reads().Features(c.t.Context(), []string{name}, users, time.Now()))(c.t)
	counts := map[schemas.UserID]int{}
	for user, of := range values {
		var n int
		must.OK(c.t, json.Unmarshal(of[name], &n))
		counts[user] = n
	}
	return counts
}

// writeState makes a running program process events and answer visits, and returns what it answered.
func (c *child) writeState() recorded {
	c.t.Helper()
	r := recorded{Shown: map[schemas.UserID][]schemas.PinID{}, Likes: map[schemas.UserID]schemas.InterestID{}}
	s := story{prefix: "before", now: time.Now().Add(-time.Minute)}
	for n := range upgradeReaders {
		for a := range upgradeAuthors {
			s.add("follows", string(upgradeReader(n)), "follow", fmt.Sprint("user:author-", a), nil)
		}
	}
	for n := range upgradePins {
		pin := fmt.Sprint("pin:before-", n)
		s.add("pins", fmt.Sprint("user:author-", n%upgradeAuthors), "create", pin, map[string]any{"interests": []string{"interest:tea"}, "title": pin})
		r.Pins = append(r.Pins, schemas.PinID(pin))
	}
	for n := range upgradeReaders {
		for i := range n + 2 {
			s.add("actions", string(upgradeReader(n)), "save", fmt.Sprint("pin:before-", i), nil)
		}
		r.Likes[upgradeReader(n)] = "interest:tea"
	}
	c.publish(s.events...)
	for n := range upgradeReaders {
		for range n + 1 { // one user has seen almost everything, and another one little
			page := must.Get(c.reads().Visit(c.t.Context(), upgradeReader(n)))(c.t)
			r.Shown[upgradeReader(n)] = append(freshOf(page), r.Shown[upgradeReader(n)]...)
		}
	}
	c.wait()
	r.Saves = c.countsOf("saves")
	return r
}

func freshOf(page visits.Page) (pins []schemas.PinID) {
	for _, item := range page.Items {
		if item.New {
			pins = append(pins, item.Pin)
		}
	}
	return pins
}

// upgrading publishes events and visits feeds while the program is killed and restarted.
type upgrading struct {
	c      *child
	before recorded
	acked  atomic.Int64 // batches of events
	mu     sync.Mutex
	shown  map[schemas.UserID][]schemas.PinID // in responses that arrived
	killed chan int                           // number of kills so far
	over   atomic.Bool
}

// killAfter returns the number of acknowledged batches before a kill.
func killAfter(kill int) int64 { return int64((kill + 1) * upgradeBatches / (upgradeKills + 1)) }

// publish publishes the batches one after the other. It repeats each one until it is acknowledged. Ten batches after the number
// for a kill, it waits for the kill.
func (u *upgrading) publish(ctx context.Context) {
	for n, kill := 0, 0; n < upgradeBatches; n++ {
		if kill < upgradeKills && int64(n) == killAfter(kill)+10 {
			select {
			case kill = <-u.killed:
			case <-ctx.Done():
				return
			}
		}
		var s story
		now := time.Now()
		pin := fmt.Sprint("pin:during-", n)
		s.events = append(s.events, event(now, "create-"+pin, "pins", fmt.Sprint("user:author-", n%upgradeAuthors), "create", pin, map[string]any{"title": pin}))
		for r := range upgradeReaders {
			s.events = append(s.events, event(now, fmt.Sprint("click-", n, "-", r), "actions", string(upgradeReader(r)), "click", fmt.Sprint("pin:before-", n%upgradePins), nil))
		}
		body := lines(u.c.t, s.events...)
		for ctx.Err() == nil {
			res, err := http.Post(u.c.http+"/v1/events", "application/x-ndjson", strings.NewReader(body))
			if err != nil {
				continue
			}
			res.Body.Close()
			if res.StatusCode == http.StatusAccepted {
				break
			}
		}
		u.acked.Add(1)
	}
}

// visit visits a feed until all events are published. Requests fail while the program is down.
func (u *upgrading) visit(ctx context.Context, user schemas.UserID) {
	for !u.over.Load() && ctx.Err() == nil {
		page, err := u.c.reads().Visit(ctx, user)
		if err != nil {
			continue
		}
		u.mu.Lock()
		u.shown[user] = append(freshOf(page), u.shown[user]...)
		u.mu.Unlock()
	}
}

// run starts the program, generates the load, and kills the program several times.
func (u *upgrading) run() {
	ctx, cancel := context.WithCancel(u.c.t.Context())
	defer cancel()
	u.c.start()
	var load sync.WaitGroup
	load.Go(func() { u.publish(ctx); u.over.Store(true) })
	for n := range upgradeReaders {
		load.Go(func() { u.visit(ctx, upgradeReader(n)) })
	}
	for kill := range upgradeKills {
		u.c.until(fmt.Sprint("batches before kill ", kill), func() bool { return u.acked.Load() >= killAfter(kill) })
		u.c.kill()
		u.killed <- kill + 1
		u.c.start()
	}
	load.Wait()
	u.c.wait()
}

// pins returns all pins that every reader must get.
func (u *upgrading) pins() []schemas.PinID {
	pins := slices.Clone(u.before.Pins)
	for n := range upgradeBatches {
		pins = append(pins, schemas.PinID(fmt.Sprint("pin:during-", n)))
	}
	slices.Sort(pins)
	return pins
}

// check reads the rest of each feed. Every pin is in the feed once, the items from before the upgrade are at its end in the
// same order, and no pin was new twice. It returns the feeds.
func (u *upgrading) check() map[schemas.UserID][]schemas.PinID {
	t, feeds := u.c.t, map[schemas.UserID][]schemas.PinID{}
	t.Helper()
	for n := range upgradeReaders {
		user := upgradeReader(n)
		before := u.before.Shown[user]
		u.c.until("all pins were shown to "+string(user), func() bool {
			page := must.Get(u.c.reads().Visit(t.Context(), user))(t)
			fresh := freshOf(page)
			u.shown[user] = append(fresh, u.shown[user]...)
			return len(fresh) == 0 && len(page.Degraded) == 0
		})
		once := map[schemas.PinID]bool{}
		for _, pin := range slices.Concat(u.shown[user], before) {
			expect.False(t, once[pin], "%s was new twice to %s", pin, user)
			once[pin] = true
		}
		feed := u.c.feed(user)
		feeds[user] = feed
		if len(feed) < len(before) || !slices.Equal(feed[len(feed)-len(before):], before) {
			t.Errorf("the feed of %s ends in other items than before the upgrade: %v, want %v", user, feed, before)
		}
		expect.NoDiff(t, slices.Sorted(slices.Values(feed)), u.pins(), "pins in the feed of %s", user)
		state := strings.ReplaceAll(httpAPI{t, u.c.http}.get("/v1/users/"+string(user)+"/feed/state"), ": ", ":")
		expect.Contains(t, state, fmt.Sprintf(`"facet":%q`, u.before.Likes[user]), "affinities of %s", user)
	}
	return feeds
}

// feed returns a user's whole feed, which has no new items.
func (c *child) feed(user schemas.UserID) (pins []schemas.PinID) {
	c.t.Helper()
	reads := c.reads()
	page, err := reads.Visit(c.t.Context(), user)
	for {
		must.OK(c.t, err)
		for _, item := range page.Items {
			expect.False(c.t, item.New, "%s is new in the feed of %s", item.Pin, user)
			pins = append(pins, item.Pin)
		}
		if page.Next == nil {
			return pins
		}
		page, err = reads.Older(c.t.Context(), user, *page.Next)
	}
}

// testUpgrade runs the present version on the state of a former one, under load and kills, and then the former version again.
func testUpgrade(t *testing.T, former, dir string, before recorded) {
	u := &upgrading{c: upgradeChild(t, "", dir), before: before, shown: map[schemas.UserID][]schemas.PinID{}, killed: make(chan int, upgradeKills)}
	u.run()
	feeds := u.check()
	clicks := map[schemas.UserID]int{}
	for n := range upgradeReaders {
		clicks[upgradeReader(n)] = upgradeBatches
	}
	expect.NoDiff(t, u.c.countsOf("clicks"), clicks, "clicks")
	if before.Saves != nil {
		expect.NoDiff(t, u.c.countsOf("saves"), before.Saves, "saves before the upgrade")
	}
	u.c.drain()

	back := upgradeChild(t, former, dir)
	back.start()
	for user, feed := range feeds {
		expect.NoDiff(t, back.feed(user), feed, "feed of %s after the way back", user)
	}
	expect.NoDiff(t, back.countsOf("clicks"), clicks, "clicks after the way back")
	back.publish(event(time.Now(), "back", "pins", "user:author-0", "create", "pin:back", nil))
	for user := range feeds {
		page := must.Get(back.reads().Visit(t.Context(), user))(t)
		expect.NoDiff(t, freshOf(page), []schemas.PinID{"pin:back"}, "new pins of %s after the way back", user)
	}
}

// The present version continues the state of the recorded version. Features of the recorded actions have expired.
func TestUpgrade_ContinuesRecordedState(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes: not with -short")
	}
	t.Parallel()
	dir := t.TempDir()
	unpack(t, upgradeState, dir)
	text := must.Get(os.ReadFile(filepath.Join(dir, "recorded.json")))(t)
	var before recorded
	must.OK(t, json.Unmarshal(text, &before))
	before.Saves = nil
	testUpgrade(t, "", dir, before)
}

// The present version continues the state of the former release's program.
func TestUpgrade_ContinuesStateOfRelease(t *testing.T) {
	commit := os.Getenv(upgradeRelease)
	if commit == "" {
		t.Skip(upgradeRelease + " is not set")
	}
	former, dir := buildRelease(t, commit), t.TempDir()
	c := upgradeChild(t, former, dir)
	c.start()
	before := c.writeState()
	c.kill()
	testUpgrade(t, former, dir, before)
}

// TestUpgrade_Record records the state for TestUpgrade_ContinuesRecordedState.
func TestUpgrade_Record(t *testing.T) {
	if os.Getenv(upgradeRecord) == "" {
		t.Skip(upgradeRecord + " is not set")
	}
	dir := t.TempDir()
	c := upgradeChild(t, "", dir)
	c.start()
	before := c.writeState()
	c.drain()
	text := must.Get(json.MarshalIndent(before, "", "  "))(t)
	must.OK(t, os.WriteFile(filepath.Join(dir, "recorded.json"), text, 0o600))
	pack(t, upgradeState, dir)
}

// buildRelease builds the program of a tag or commit.
func buildRelease(t *testing.T, commit string) string {
	t.Helper()
	tree, program := filepath.Join(t.TempDir(), "tree"), filepath.Join(t.TempDir(), "smartfeed")
	command := func(dir, name string, args ...string) {
		cmd := exec.Command(name, args...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s %v: %v\n%s", name, args, err, out)
		}
	}
	command(".", "git", "worktree", "add", "--detach", tree, commit)
	t.Cleanup(func() { command(".", "git", "worktree", "remove", "--force", tree) })
	command(tree, "go", "build", "-trimpath", "-o", program, ".")
	return program
}

// pack writes a directory to an archive.
func pack(t *testing.T, archive, dir string) {
	t.Helper()
	f := must.Get(os.Create(archive))(t)
	small := must.Get(gzip.NewWriterLevel(f, gzip.BestCompression))(t)
	files := tar.NewWriter(small)
	must.OK(t, files.AddFS(os.DirFS(dir)))
	must.OK(t, files.Close())
	must.OK(t, small.Close())
	must.OK(t, f.Close())
}

// unpack restores a directory from an archive.
func unpack(t *testing.T, archive, dir string) {
	t.Helper()
	f := must.Get(os.Open(archive))(t)
	defer f.Close()
	small := must.Get(gzip.NewReader(f))(t)
	for files := tar.NewReader(small); ; {
		header, err := files.Next()
		if err == io.EOF {
			return
		}
		must.OK(t, err)
		if header.FileInfo().IsDir() {
			continue
		}
		path := filepath.Join(dir, header.Name)
		must.OK(t, os.MkdirAll(filepath.Dir(path), 0o700))
		text := must.Get(io.ReadAll(files))(t)
		must.OK(t, os.WriteFile(path, text, 0o600))
	}
}
