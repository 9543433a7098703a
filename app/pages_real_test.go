package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/smartfeed/smartfeed/internal/convert"
	"github.com/smartfeed/smartfeed/internal/measure"
	"github.com/smartfeed/smartfeed/internal/testkit/cassandratest"
	testchild "github.com/smartfeed/smartfeed/internal/testkit/child"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/serving/feed"
	"github.com/smartfeed/smartfeed/serving/feedstore/cassandra"
)

const (
	// realPages is the environment variable with the addresses of Kafka, registry, Cassandra primary and standby, in this
	// order. They must be servers of .ci/services. The test fills, kills and restarts them.
	realPages = "SMARTFEED_TEST_PAGES"
	// pagesVariable is the environment variable with the number of pages to request in each state, default 2,000.
	pagesVariable = "PAGES_TEST_COUNT"

	pageRate    = 200 // per second
	visitRate   = 4   // per second: visits add items to materialized feeds while a store is unavailable
	bareRate    = 20  // per second, of requests to an empty handler, which measure the latency of the machine
	pageItems   = 25
	pageReaders = 100 // users who request pages; as many others visit
	pageAuthors = 12
	pagePins    = 40 // of each author; all of them fit into a pool
	mending     = 5 * time.Minute

	// The objectives: the latency of pages with both stores up, the hedge delay, and the share of incomplete pages while
	// one store is healthy. The test asserts five times these values, and only if the bare requests took at most
	// machineP99. Otherwise at least half of the pages must be complete.
	pageP99      = 60 * time.Millisecond
	pageHedge    = 60 * time.Millisecond
	pageLack     = 0.05
	pageRoom     = 5
	machineP99   = 10 * time.Millisecond
	pageLackBusy = 0.5

	// Maximum extra reads per read, even on a busy machine. The configuration allows half of it. Each time that the stores swap places,
	// the reads in flight are added: many, if the machine is so busy that reads take long. The hedge budget may have accumulated some more.
	pageExtra = 0.2
	pageSaved = 100

	enoughAfter = 500 // minimum pages after a fault: on a busy machine, killing a store and changing roles take seconds
)

// pageStores are the two feed stores, by their names in .ci/services.
var pageStores = [2]string{"cassandra-primary", "cassandra-standby"}

// pageState is a fault of the stores.
type pageState struct {
	name   string
	strike func() error
	heal   func() error
	away   []string // servers that must not respond after the fault
	late   []int    // stores whose proxies must have delayed responses
	first  string   // store that must be first at the end; "": depends on the timing
	other  bool     // the standby must have responded
	none   bool     // no store can respond in time
	cold   bool     // the store that responds next has been restarted
}

// The test requests pages of materialized feeds at 200 per second over HTTP, and some visits, with each role in its own
// process, on Kafka, a registry and two Cassandra clusters. The stores are healthy, slow, hanging, killed or overloaded,
// each fault after a quarter of the requests.
//
// Every page has the same items as before, or fewer of them and a degraded reason. If the primary fails, reads use the
// standby, and an unavailable store stays second. No pin is new twice. At the end, both stores have the same contents,
// including all seen pins. The test prints the latencies of pages, visits, and bare requests.
func TestRealPages_SurviveFaults(t *testing.T) {
	at := strings.Split(os.Getenv(realPages), ",")
	if len(at) != 4 {
		t.Skipf("set %s to the addresses of Kafka, registry and two Cassandras of .ci/services", realPages)
	}
	p := startPages(t, at)
	p.fill()
	count := cassandratest.Count(t, pagesVariable)
	p.warm(count)
	report := &strings.Builder{}
	table := tabwriter.NewWriter(report, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "state\tpages\tdegraded\tp50\tp99\tmax\tvisits\tdegraded\tp50\tp99\textra reads\tplaces changed\tbare p99")
	usual := pageP99 // then the latency with both stores up, measured in the first state
	for i, s := range p.states() {
		t.Run(s.name, func(t *testing.T) {
			r := p.through(t, s, count)
			r.print(table, s.name)
			r.check(t, s)
			r.checkTimely(t, s, usual)
			if i == 0 {
				usual = max(usual, r.pages.Latency.Quantile(0.99))
			}
		})
		if p.awaitHealthy(); s.cold {
			p.warm(count)
		}
	}
	_ = table.Flush() // writes to memory
	t.Logf("\n%s", report)
	p.compareStores(at[2:])
}

// warm requests pages until the responses are in time, for at most count pages or six thousand. Freshly started stores
// still compile their code. It also lets the hedged store measure the usual latency of each store.
func (p *pagesProduct) warm(count int) {
	p.t.Helper()
	const round = 1000
	late := pageP99
	for n := 0; late >= pageP99 && n < max(6, count/round); n++ {
		r := p.request(round, func() {})
		late = r.pages.Latency.Quantile(0.99)
		p.t.Logf("warm-up: p99 of pages %s, of bare requests %s", late, r.bare.Latency.Quantile(0.99))
	}
	p.awaitHealthy()
}

// pagesProduct is a process on real servers, and the expected pages of its readers.
type pagesProduct struct {
	t       *testing.T
	front   *child
	config  string
	client  *http.Client
	bare    *httptest.Server // responds at once
	proxies [2]*cassandratest.Proxy
	older   []string          // the path of each reader's older page
	items   [][]schemas.PinID // the items on that page

	mu    sync.Mutex
	shown map[schemas.UserID][]schemas.PinID // new pins of a visitor's visits
}

// startPages starts the roles. The serving process reads the stores through proxies. The processes that fill the stores
// use no proxies.
func startPages(t *testing.T, at []string) *pagesProduct {
	t.Helper()
	p := &pagesProduct{
		t: t, shown: map[schemas.UserID][]schemas.PinID{},
		client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 256}},
		bare:   httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })),
	}
	t.Cleanup(p.bare.Close)
	for i := range p.proxies {
		p.proxies[i] = cassandratest.StartProxy(t, at[2+i])
	}
	p.config = p.configure(at[0], at[1], at[2], at[3])
	for _, args := range [][]string{{"topics", "apply"}, {"feed-store", "apply"}} {
		configured(t, p.config, args...)
	}
	proxied := p.configure(at[0], at[1], p.proxies[0].Address(), p.proxies[1].Address())
	var roles []*child
	for role, file := range map[string]string{"process": p.config, "materialize": p.config, "serve": proxied} {
		web := testchild.FreeAddress(t)
		c := &child{t: t, http: "http://" + web, args: []string{role, "--config", file, "--dir", t.TempDir(), "--http", web}}
		t.Cleanup(c.kill)
		c.launch()
		roles = append(roles, c)
		if role == "serve" {
			p.front = c
		}
	}
	for _, c := range roles {
		c.until("ready", c.ready)
	}
	return p
}

// configure writes a configuration. The hedging of reads has its defaults, except for the time until the primary becomes
// first again. Other timeouts are longer than the defaults, for busy machines.
func (p *pagesProduct) configure(kafka, registry, primary, standby string) string {
	p.t.Helper()
	file := filepath.Join(p.t.TempDir(), "smartfeed.yaml")
	text := fmt.Sprintf(`
kafka: [%q]
registry: http://%s/apis/ccompat/v7
partitions: 4
feed_store:
  cassandra:
    primary: {hosts: [%q], replicas: 1}
    standby: {hosts: [%q], replicas: 1}
  hedge: {failback_reads: 5}
feed: {generator_timeout: 2s, read_timeout: 1s}
api: {limits: {min_concurrency: 1000}}
`, kafka, registry, primary, standby)
	must.OK(p.t, os.WriteFile(file, []byte(text), 0o600))
	return file
}

func pageReader(i int) schemas.UserID {
	return schemas.UserID(fmt.Sprint("user:pages-reader-", i%pageReaders))
}
func pageVisitor(i int) schemas.UserID {
	return schemas.UserID(fmt.Sprint("user:pages-visitor-", i%pageReaders))
}

func feedPath(user schemas.UserID, limit int) string {
	return fmt.Sprintf("/v1/users/%s/feed?limit=%d", user, limit)
}

// fill makes every user follow every author, and reads the readers' pages before any fault.
func (p *pagesProduct) fill() {
	p.t.Helper()
	history := story{prefix: "pages-", now: time.Now()}
	for a := range pageAuthors {
		author := fmt.Sprint("user:pages-author-", a)
		for i := range pageReaders {
			history.addAt(history.now, "follows", string(pageReader(i)), "follow", author, nil)
			history.addAt(history.now, "follows", string(pageVisitor(i)), "follow", author, nil)
		}
		for i := range pagePins {
			history.addAt(history.now, "pins", author, "create", fmt.Sprintf("pin:pages-%d-%d", a, i),
				map[string]any{"title": "a title of some length", "link": "https://pins.example/1"})
		}
	}
	p.front.post(history.events...)
	configured(p.t, p.config, "wait", "--timeout", "120s")
	for i := range pageReaders {
		p.open(pageReader(i))
	}
}

// open makes a reader visit until the materialized feed has a full page below the new items, and records the page.
func (p *pagesProduct) open(user schemas.UserID) {
	p.t.Helper()
	for deadline := time.Now().Add(mending); ; {
		first := must.Get(p.get(p.t.Context(), feedPath(user, pageItems)))(p.t)
		if first.Next != nil {
			path := feedPath(user, pageItems) + "&cursor=" + url.QueryEscape(*first.Next)
			if page, err := p.get(p.t.Context(), path); err == nil && len(page.Degraded) == 0 && len(page.Items) == pageItems {
				p.older, p.items = append(p.older, path), append(p.items, pinsOf(page))
				return
			}
		}
		if time.Now().After(deadline) {
			p.t.Fatalf("%s has no older page: %+v", user, first)
		}
	}
}

func pinsOf(page feed.Page) []schemas.PinID {
	return convert.All(page.Items, func(item feed.Item) schemas.PinID { return item.ID })
}

func (p *pagesProduct) get(ctx context.Context, path string) (page feed.Page, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.front.http+path, nil)
	if err != nil {
		return page, err
	}
	res, err := p.client.Do(req)
	if err != nil {
		return page, err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return page, err
	}
	if res.StatusCode != http.StatusOK {
		return page, fmt.Errorf("get %s: %s: %s", path, res.Status, body)
	}
	if err := json.Unmarshal(body, &page); err != nil {
		return page, fmt.Errorf("get %s: %w", path, err)
	}
	return page, nil
}

// page requests a reader's page and checks its items: all of them, or the first ones and a degraded reason.
func (p *pagesProduct) page(ctx context.Context, n int) error {
	reader := n % pageReaders
	page, err := p.get(ctx, p.older[reader])
	if err != nil {
		return err
	}
	pins, want := pinsOf(page), p.items[reader]
	if len(page.Degraded) == 0 {
		if !slices.Equal(pins, want) {
			return fmt.Errorf("page of %s: %v, want %v, or a degraded reason", pageReader(n), pins, want)
		}
		return nil
	}
	for _, why := range page.Degraded {
		if why != "store" && why != "stale" {
			return fmt.Errorf("page of %s: degraded by %q, want only the store", pageReader(n), page.Degraded)
		}
	}
	if len(pins) > len(want) || !slices.Equal(pins, want[:len(pins)]) {
		return fmt.Errorf("page of %s: %v, want a prefix of %v", pageReader(n), pins, want)
	}
	return measure.ErrDegraded
}

// visit makes a user visit, and checks that no pin is new twice.
func (p *pagesProduct) visit(ctx context.Context, n int) error {
	user := pageVisitor(n)
	page, err := p.get(ctx, feedPath(user, 10))
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, item := range page.Items {
		if !item.New {
			continue
		}
		if slices.Contains(p.shown[user], item.ID) {
			return fmt.Errorf("visit of %s: %s is new twice", user, item.ID)
		}
		p.shown[user] = append(p.shown[user], item.ID)
	}
	if len(page.Degraded) > 0 {
		return measure.ErrDegraded
	}
	return nil
}

// nothing sends a request to an empty handler.
func (p *pagesProduct) nothing(ctx context.Context, _ int) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.bare.URL, nil)
	if err != nil {
		return err
	}
	res, err := p.client.Do(req)
	if err != nil {
		return err
	}
	return res.Body.Close()
}

// request requests n pages at pageRate, and calls strike after a quarter of the responses.
func (p *pagesProduct) request(n int, strike func()) (r passed) {
	var answered, struck atomic.Int64
	var striking sync.WaitGroup
	cfg := measure.Config{Lasting: time.Duration(n) * time.Second / pageRate, Timeout: 10 * time.Second, InFlight: 4096}
	results := measure.Run(p.t.Context(), cfg,
		measure.Load{Name: "pages", Rate: pageRate, Do: func(ctx context.Context, i int) error {
			err := p.page(ctx, i)
			if answered.Add(1) == int64(n/4) {
				striking.Go(func() {
					strike()
					struck.Store(answered.Load())
				})
			}
			return err
		}},
		measure.Load{Name: "visits", Rate: visitRate, Do: p.visit},
		measure.Load{Name: "bare requests", Rate: bareRate, Do: p.nothing})
	striking.Wait()
	return passed{pages: results[0], visits: results[1], bare: results[2], after: answered.Load() - struck.Load()}
}

// awaitHealthy waits until the stores are healthy: almost all of a hundred sequential pages are complete, and the primary
// is first.
func (p *pagesProduct) awaitHealthy() {
	p.t.Helper()
	for deadline := time.Now().Add(mending); ; {
		lack := 0
		for n := range pageReaders {
			err := p.page(p.t.Context(), n)
			if errors.Is(err, measure.ErrDegraded) {
				lack++
			} else if err != nil {
				p.t.Fatal(err)
			}
		}
		if lack <= 5 && p.first() == "primary" {
			return
		}
		if time.Now().After(deadline) {
			p.t.Fatalf("%s after a fault, %d of %d pages are incomplete, or the primary is not first", mending, lack, pageReaders)
		}
	}
}

// metric returns the sum of a metric's values whose labels contain a text.
func (p *pagesProduct) metric(name, labels string) (sum float64) {
	p.t.Helper()
	res := must.Get(p.client.Get(p.front.http + "/metrics"))(p.t)
	defer res.Body.Close()
	text := must.Get(io.ReadAll(res.Body))(p.t)
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, name+"{") && !strings.HasPrefix(line, name+" ") || !strings.Contains(line, labels) {
			continue
		}
		value, err := strconv.ParseFloat(strings.TrimSpace(line[strings.LastIndex(line, " "):]), 64)
		if err != nil {
			p.t.Fatalf("%s: %v", line, err)
		}
		sum += value
	}
	return sum
}

// services runs a command of .ci/services on servers.
func services(command string, names ...string) error {
	out, err := exec.Command("../.ci/services", append([]string{command}, names...)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("services %s %v: %w: %s", command, names, err, out)
	}
	return nil
}

// states returns the faults of the stores in sequence. The first is no fault. The last restarts the stores, which then
// use CPU time to compile their code.
func (p *pagesProduct) states() []pageState {
	nothing := func() error { return nil }
	does := func(command string, names ...string) func() error {
		return func() error { return services(command, names...) }
	}
	slow := func(i int, slow bool) func() error {
		return func() error { p.proxies[i].Slow(slow); return nil }
	}
	// A page needs three or four responses: this rate suffices for only a few pages.
	overload := func(perSecond int) func() error {
		return func() error {
			for _, proxy := range p.proxies {
				proxy.Overload(perSecond)
			}
			return nil
		}
	}
	primary, standby := pageStores[:1], pageStores[1:]
	return []pageState{
		{name: "both up", strike: nothing, heal: nothing},
		{name: "primary slow", strike: slow(0, true), heal: slow(0, false), late: []int{0}, other: true},
		{name: "primary hangs", strike: does("pause", primary...), heal: does("resume", primary...), away: primary, first: "standby", other: true},
		{name: "standby slow", strike: slow(1, true), heal: slow(1, false), late: []int{1}},
		{name: "standby hangs", strike: does("pause", standby...), heal: does("resume", standby...), away: standby, first: "primary"},
		{name: "both overloaded", strike: overload(40), heal: overload(0), late: []int{0, 1}, none: true},
		{name: "primary killed", strike: does("kill", primary...), heal: does("start", primary...), away: primary, first: "standby", other: true, cold: true},
		{name: "standby killed", strike: does("kill", standby...), heal: does("start", standby...), away: standby, first: "primary"},
		{name: "both killed", strike: does("kill", pageStores[:]...), heal: does("start", pageStores[:]...), away: pageStores[:], none: true},
	}
}

// passed is the result of the requests in a state.
type passed struct {
	pages, visits, bare measure.Result
	counted
	first string // of the stores, at the end
	after int64  // responses after the stores had reached the state
}

// counted holds the process's metrics of its reads.
type counted struct {
	reads   float64 // of the pair of stores
	extra   float64 // extra reads, except after a failed one
	standby float64 // won by the standby
	changes float64 // of roles
}

func (p *pagesProduct) counters() counted {
	p.t.Helper()
	failed := p.metric("smartfeed_feedstore_extra_reads_total", `reason="failed"`)
	return counted{
		reads:   p.metric("smartfeed_feedstore_read_duration_seconds_count", ""),
		extra:   p.metric("smartfeed_feedstore_extra_reads_total", "") - failed,
		standby: p.metric("smartfeed_feedstore_answered_reads_total", `store="standby"`),
		changes: p.metric("smartfeed_feedstore_failovers_total", ""),
	}
}

func (c counted) since(before counted) counted {
	return counted{c.reads - before.reads, c.extra - before.extra, c.standby - before.standby, c.changes - before.changes}
}

func (p *pagesProduct) first() string {
	p.t.Helper()
	if p.metric("smartfeed_feedstore_preferred", `store="primary"`) == 1 {
		return "primary"
	}
	return "standby"
}

// through requests pages while the stores enter a state, and then ends the state.
func (p *pagesProduct) through(t *testing.T, s pageState, n int) passed {
	t.Helper()
	for _, proxy := range p.proxies {
		proxy.Held()
	}
	before := p.counters()
	var err error
	r := p.request(n, func() { err = s.strike() })
	expect.Error(t, err, "", "strike")
	r.counted, r.first = p.counters().since(before), p.first()
	for _, name := range s.away {
		expect.Fails(t, services("ready", name), "readiness of %s, which the fault stopped", name)
	}
	for _, i := range s.late {
		expect.AtLeast(t, p.proxies[i].Held(), 1, "responses of %s that the fault delayed", pageStores[i])
	}
	expect.Error(t, s.heal(), "", "heal")
	return r
}

func (r passed) print(w io.Writer, state string) {
	ms := func(r measure.Result, q float64) string {
		return fmt.Sprintf("%.1f", float64(r.Latency.Quantile(q).Microseconds())/1e3)
	}
	fmt.Fprintf(w, "%s\t%d\t%d\t%s\t%s\t%s\t%d\t%d\t%s\t%s\t%.1f %%\t%.0f\t%s\n", state,
		r.pages.Answered, r.pages.Degraded, ms(r.pages, 0.5), ms(r.pages, 0.99), ms(r.pages, 1),
		r.visits.Answered, r.visits.Degraded, ms(r.visits, 0.5), ms(r.visits, 0.99), 100*r.extra/max(r.reads, 1), r.changes, ms(r.bare, 0.99))
}

// check checks the guarantees that hold even on a busy machine.
func (r passed) check(t *testing.T, s pageState) {
	t.Helper()
	for _, load := range []measure.Result{r.pages, r.visits} {
		expect.Equal(t, load.Failed+load.Missed, 0, "%s: failed requests, and requests that were not sent: %v", load.Name, load.Failure)
	}
	if lack := r.incomplete(); s.none && lack < 0.25 {
		t.Errorf("%.3f of the pages are incomplete: the fault had no effect", lack)
	}
	expect.AtMost(t, r.extra, pageExtra*r.reads+pageSaved, "extra reads of %.0f", r.reads)
	if lack := r.incomplete(); !s.none && lack > pageLackBusy {
		t.Errorf("%.3f of the pages are incomplete although a store is healthy, want at most %.2f even on a busy machine", lack, pageLackBusy)
	}
	if r.after < enoughAfter {
		t.Logf("only %d responses with the stores in this state: skipping the assertions on roles", r.after)
		return
	}
	if s.other && len(s.away) > 0 {
		r.checkStandby(t)
	}
	expect.True(t, s.first == "" || r.first == s.first, "at the end, the %s is first, want the %s", r.first, s.first)
}

// checkStandby checks that the standby has responded instead of the primary.
func (r passed) checkStandby(t *testing.T) {
	t.Helper()
	expect.AtLeast(t, r.standby, float64(r.after)/4, "reads of later pages that the standby has won")
}

func (r passed) incomplete() float64 { return float64(r.pages.Degraded) / float64(r.pages.Answered) }

// checkTimely runs only if a store is healthy and the machine was not busy. It checks that almost all pages were complete,
// and that the standby responded instead of a bad primary. Pages must take the usual time, plus the hedge delay if the
// primary is bad.
func (r passed) checkTimely(t *testing.T, s pageState, usual time.Duration) {
	t.Helper()
	if s.none {
		return
	}
	if late := r.bare.Latency.Quantile(0.99); late > machineP99 {
		t.Logf("%s: p99 of bare requests %s: the machine is too busy for the assertions on latency", s.name, late)
		return
	}
	want := usual
	if s.other {
		want += pageHedge
		r.checkStandby(t)
	}
	expect.AtMost(t, r.incomplete(), pageRoom*pageLack, "share of incomplete pages although a store is healthy")
	expect.AtMost(t, r.pages.Latency.Quantile(0.99), pageRoom*want, "p99 of pages")
}

// compareStores waits until both stores have the same contents, including all seen pins.
func (p *pagesProduct) compareStores(at []string) {
	p.t.Helper()
	var stores [2]*cassandra.Store
	cfg, cluster := cassandra.DefaultConfig(), cassandra.DefaultCluster()
	cfg.Timeout, cluster.Replicas = patience, 1
	for i, host := range at {
		cluster.Hosts = []string{host}
		stores[i] = openStore(p.t, pageStores[i], cfg, cluster)
	}
	entries := 0
	for i := range pageReaders {
		for _, user := range []schemas.UserID{pageReader(i), pageVisitor(i)} {
			entries += p.compareFeed(stores, user)
		}
	}
	p.t.Logf("both stores have the same %d entries", entries)
}

// compareFeed compares a user's feed in both stores, and returns the number of entries.
func (p *pagesProduct) compareFeed(stores [2]*cassandra.Store, user schemas.UserID) int {
	p.t.Helper()
	for deadline := time.Now().Add(mending); ; time.Sleep(100 * time.Millisecond) {
		var rows [2][]schemas.FeedEntry
		var errs [2]error
		for i, s := range stores {
			rows[i], _, errs[i] = s.Page(p.t.Context(), user, math.MaxInt64, 10_000)
		}
		err := errors.Join(errs[:]...)
		diff := cmp.Diff(rows[0], rows[1])
		if err == nil && diff == "" {
			if err = checkMaterialized(rows[0], p.shown[user]); err == nil {
				return len(rows[0])
			}
		}
		if time.Now().After(deadline) {
			p.t.Errorf("feed of %s: %v; primary -, standby +:\n%s", user, err, diff)
			return 0
		}
	}
}

// checkMaterialized returns an error unless a feed has every pin once, includes all seen ones, and has positions without
// gaps.
func checkMaterialized(rows []schemas.FeedEntry, shown []schemas.PinID) error {
	at := map[schemas.PinID]int64{}
	for i, e := range rows {
		if other, twice := at[e.Pin]; twice {
			return fmt.Errorf("%s is at %d and %d", e.Pin, e.Position, other)
		}
		if i > 0 && e.Position != rows[i-1].Position-1 {
			return fmt.Errorf("position %d is below %d", e.Position, rows[i-1].Position)
		}
		at[e.Pin] = e.Position
	}
	for _, pin := range shown {
		if _, is := at[pin]; !is {
			return fmt.Errorf("%s was new in a visit, but is not in the feed", pin)
		}
	}
	return nil
}
