package test

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/chromedp/kb"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/serving/web"
)

// hostile is text that any user can put into a title, an id or an attribute.
const hostile = `"><img src=x onerror="window.broken=1"><script>window.broken=2</script>{{7*7}}${7*7}`

// desk is a fake API for the console. Tests can change its responses by path.
type desk struct {
	mu     sync.Mutex
	said   map[string]answer   // responses by method and path
	heard  map[string][]string // request bodies by method and path
	asked  map[string][]string // request queries by method and path
	keys   []string            // idempotency keys of visits
	counts chan int            // numbers of new items, for the stream
	count  int                 // the last of them, the first event of a stream
}

type answer struct {
	code int
	body any // the body, or a func(request []byte) any that returns it; without a body, request is the query
}

func newDesk() *desk {
	hostileItem := item(1, hostile)
	maps.Copy(hostileItem, map[string]any{
		"author": "user:" + hostile, "board": "board:b", "interests": []string{"interest:" + hostile}, "link": "javascript:window.broken=3", "source": hostile[:60],
	})
	two := item(2, "two")
	two["link"] = hostileItem["link"]
	degraded := []string{}
	state := map[string]any{
		"feed": "home", "sources": []any{map[string]any{"source": "following", "waiting": 2, "target": 1, "shown": 3}}, "degraded": degraded,
		"deferred": []any{map[string]any{"pin": "pin:" + hostile, "reason": "deferred_earlier", "since": "2026-11-20T10:00:00Z"}}, "affinities": []any{map[string]any{"facet": "user:" + hostile, "value": 2}},
	}
	candidate := map[string]any{"pin": "pin:" + hostile, "score": 2, "time": "2026-11-20T10:00:00Z", "author": "user:a", "board": nil, "interests": []string{}}
	return &desk{heard: map[string][]string{}, asked: map[string][]string{}, counts: make(chan int, 9), said: map[string]answer{
		"GET /feed":                 {200, map[string]any{"items": []any{hostileItem, two}, "next": nil, "degraded": []string{"store"}}},
		"GET /feed/state":           {200, state},
		"GET /feed/why":             {200, map[string]any{"user": "user:a", "pin": "pin:1", "feed": "home", "fate": hostile, "reason": hostile, "by": []string{"user:" + hostile}, "shown": nil, "candidates": []any{}, "degraded": degraded}},
		"GET /pools":                {200, map[string]any{"source": "following", "total": 2, "items": []any{candidate, map[string]any{"pin": "pin:3", "score": 1, "time": "2026-11-20T10:00:00Z", "author": "user:a", "board": nil, "interests": []string{}}}}},
		"GET /features":             {200, map[string]any{"features": []any{map[string]any{"name": "likes", "description": hostile, "entity": "user", "window": "24h", "aggregate": "count"}}}},
		"POST /features":            {200, map[string]any{"values": map[string]any{"user:a": map[string]any{"likes": map[string]any{hostile: 3}}}, "missing": []any{}, "degraded": degraded, "as_of": "2026-11-20T10:00:00Z"}},
		"POST /features/try":        {404, map[string]any{"detail": "no such call"}},
		"POST /events":              {202, map[string]any{"accepted": 1}},
		"GET /dead-letters":         {200, map[string]any{"dead_letters": []any{deadLetter("actions", 1, 0, "2026-11-20T10:00:00Z")}}},
		"GET /dead-letters/kinds":   {200, map[string]any{"kinds": []any{retryKind("actions/objects/"+hostile[:60], 10, "user:"+hostile)}}},
		"GET /dead-letters/retries": {200, map[string]any{"dead_letters": []any{retried("waiting", 1, 0)}}},
		"GET /status":               {200, status()},
		"GET /dictionary": {200, map[string]any{"terms": []any{
			term(hostile[:60]), term("oolong"),
		}}},
		"GET /interests": {200, map[string]any{"interests": []any{map[string]any{
			"interest": "interest:" + hostile[:60], "strength": 2, "share": 1, "evidence": []any{evidence("save", "pin:"+hostile[:60]), evidence("click", "pin:2"), evidence("view", "pin:3")},
		}}}},
		"GET /caller":               {200, map[string]any{"authentication": true, "subject": "user:a", "user": "user:a", "scopes": []string{}}},
		"GET /users":                {200, map[string]any{"users": []string{"user:" + hostile, "user:ada"}}},
		"GET /graph":                {200, map[string]any{"user": "user:a", "follows": []any{map[string]any{"id": "user:kaya", "weight": 1.5}, map[string]any{"id": "board:" + hostile, "weight": 1}}, "following": 9, "blocks": []string{"user:" + hostile}, "blocking": 1, "followers": 1234}},
		"GET /config":               {200, map[string]any{"fanout": map[string]any{"score_half_life": "16h38m8s"}, "odd": map[string]any{"key": hostile, "list": []int{1, 2}}}},
		"GET /insights/experiments": {200, map[string]any{"feeds": []any{experimentOf("home")}}},
		"GET /insights/xd28s":       {200, map[string]any{"xd28s": []any{map[string]any{"days": 1, "users": 2}}}},
	}}
}

// experimentOf returns an experiment with a mismatch, and an arm without estimates.
func experimentOf(feed string) map[string]any {
	estimate := map[string]any{"value": 0.25, "low": 0.2, "high": 0.3, "std_err": 0.025}
	arm := func(name string, perItem, needed any) map[string]any {
		return map[string]any{"arm": name, "share": 0.5, "users": 1200, "visits": 1300, "items": 9000, "actions": []any{map[string]any{
			"verb": "save", "count": 12, "per_item": perItem, "per_visit": nil, "difference": nil, "days_needed": needed,
		}}}
	}
	return map[string]any{
		"feed": feed, "sample_ratio": map[string]any{"p_value": 0.0001, "mismatch": true},
		"arms": []any{arm("", estimate, nil), arm(hostile[:60], nil, 12.34)},
	}
}

// item returns an item of a feed. Item 1 is new.
func item(n int, title string) map[string]any {
	return map[string]any{
		"pin": fmt.Sprint("pin:", n), "time": "2026-11-20T10:00:00Z", "author": "user:b", "board": nil, "interests": []string{}, "title": title,
		"link": "https://pins.example/1", "new": n == 1, "source": "following", "score": 1.5,
	}
}

// definition returns a definition of a feature.
func definition(name, entity string) map[string]any {
	return map[string]any{"name": name, "entity": entity, "window": "24h", "aggregate": "count"}
}

// term returns a candidate of the dictionary.
func term(name string) map[string]any {
	return map[string]any{"term": name, "state": "candidate", "score": 2, "pins": 9, "people": 3, "recent": 0.5, "decided": nil}
}

func evidence(verb, pin string) map[string]any {
	return map[string]any{"pin": pin, "verb": verb, "weight": 1, "time": time.Now().Add(-2 * time.Hour)}
}

// deadLetter returns a dead letter whose record has offset 1, or of a retry of that record.
func deadLetter(topic string, offset, attempts int, time string) map[string]any {
	return map[string]any{
		"dead_letter_partition": 0, "dead_letter_offset": offset, "retried": false, "attempts": attempts, "first_partition": 0, "first_offset": 1,
		"topic": topic, "partition": 0, "offset": offset, "group": "objects", "reason": hostile, "time": time, "key": "cGluOjE=", "value": "PHNjcmlwdD4A",
	}
}

// retried returns the state of the retries of a record.
func retried(state string, offset, attempts int) map[string]any {
	r := map[string]any{
		"kind": "actions/objects/" + hostile[:60], "topic": "actions", "partition": 0, "offset": offset, "group": "objects", "reason": hostile,
		"state": state, "attempts": attempts, "since": "2026-11-20T11:00:00Z", "due": nil,
	}
	switch state {
	case "waiting":
		r["due"] = "2126-11-20T12:00:00Z"
	case "parked":
		r["why"] = hostile
	}
	return r
}

func retryKind(kind string, rate float64, operator string) map[string]any {
	return map[string]any{
		"kind": kind, "topic": "actions", "group": "objects", "reason": hostile, "rate": rate, "priority": 0, "operator": operator,
		"states": map[string]any{"waiting": 2, "sent": 1, "done": 1234, "parked": 3}, "next": "2026-11-20T12:00:00Z",
	}
}

func status() map[string]any {
	flow := func(topic, from, to string) map[string]any {
		return map[string]any{"topic": topic, "key": "user", "writers": []string{from}, "readers": []any{map[string]any{"group": to, "topic": topic, "records": 5000}}, "records": 9}
	}
	return map[string]any{
		"version": "v1", "ready": false, "missing": []string{hostile}, "components": []any{map[string]any{"name": "pools", "condition": "waiting", "since": "2026-11-20T10:00:00Z", "restarts": 2, "last_error": hostile}},
		"groups": []any{map[string]any{"group": "pools", "partitions": nil, "counters": map[string]any{"dead_letters": 1}, "records_per_second": 1}},
		"flows":  []any{flow("served", "serving", "pools"), flow("gossip", "strangers", hostile[:40]), flow("dead-letters", "pools", "unknown")},
	}
}

// answers changes the response of a route.
func (d *desk) answers(call string, code int, body any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.said[call] = answer{code, body}
}

func (d *desk) bodies(call string) []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.heard[call])
}

// queries returns the values of a parameter in the requests to a route, in order.
func (d *desk) queries(call, parameter string) []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	var list []string
	for _, text := range d.asked[call] {
		values, _ := url.ParseQuery(text) // an invalid query has no values
		list = append(list, values.Get(parameter))
	}
	return list
}

func (d *desk) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := strings.TrimPrefix(r.URL.Path, "/v1")
	if rest, ok := strings.CutPrefix(path, "/users/"); ok {
		_, rest, _ = strings.Cut(rest, "/")
		path = "/" + rest
	}
	if path == "/feed/events" {
		d.stream(w, r)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the page has disconnected
	}
	call := r.Method + " " + path
	d.mu.Lock()
	if call == "POST /visits" { // its page is the same as that of a peek
		d.keys = append(d.keys, r.Header.Get("Idempotency-Key"))
		call = "GET /feed"
	}
	d.heard[call] = append(d.heard[call], string(body))
	d.asked[call] = append(d.asked[call], r.URL.RawQuery)
	a, known := d.said[call]
	d.mu.Unlock()
	if !known {
		a = answer{503, map[string]any{"detail": "no response " + call}}
	}
	if of, ok := a.body.(func([]byte) any); ok {
		if len(body) == 0 {
			body = []byte(r.URL.RawQuery)
		}
		a.body = of(body)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(a.code)
	_ = json.NewEncoder(w).Encode(a.body) // the page may have disconnected
}

func (d *desk) stream(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	d.mu.Lock()
	fmt.Fprintf(w, ": begun\n\nevent: new\ndata: {\"count\":%d}\n\n", d.count)
	d.mu.Unlock()
	for {
		if err := http.NewResponseController(w).Flush(); err != nil {
			return
		}
		select {
		case n := <-d.counts:
			d.mu.Lock()
			d.count = n
			d.mu.Unlock()
			fmt.Fprintf(w, "event: new\ndata: {\"count\":%d}\n\n", n)
		case <-r.Context().Done():
			return
		}
	}
}

// open opens the console on the desk. At its end, the test fails for each problem of the page, except those that contain one
// of the excused texts. Responses with 503 are excused, because the desk returns them for unknown requests.
func (d *desk) open(t *testing.T, b *Browser, v View, address string, excused ...string) *Page {
	t.Helper()
	mux := http.NewServeMux()
	mux.Handle("/v1/", d)
	mux.Handle("/", web.Handler())
	p := b.Page(t, v)
	p.Excuse(append(excused, "503")...)
	site := serveSite(t, mux)
	t.Cleanup(p.Check) // before the site closes
	p.Go(site + address)
	return p
}

// serveSite serves until the test ends, and returns the address.
func serveSite(t *testing.T, h http.Handler) string {
	site := httptest.NewServer(h)
	t.Cleanup(func() {
		site.CloseClientConnections() // otherwise Close waits for streams
		site.Close()
	})
	return site.URL
}

var wide = View{Width: 1280, Height: 900}

// Each subtest opens the console on a new desk, in the same browser.
func TestBrowser_Console(t *testing.T) {
	b := openBrowser(t)
	for _, c := range []struct {
		name string
		test func(*testing.T, *Browser)
	}{
		{"shows hostile text as text", showsHostileTextAsText},
		{"shows errors", showsErrors},
		{"visits only by its button", visitsOnlyByItsButton},
		{"searches users", searchesUsers},
		{"shows scores relative to now", showsRelativeScores},
		{"compares two feeds", comparesFeeds},
		{"shows the graph of a user", showsGraph},
		{"shows the configuration", showsConfiguration},
		{"distinguishes unknown features from missing ones", distinguishesUnknownFeatures},
		{"requests all features", requestsAllFeatures},
		{"shows features of pins and pairs", showsFeaturesOfPinsAndPairs},
		{"tries features of pins and pairs", triesFeaturesOfPinsAndPairs},
		{"shows degraded reasons of pools", showsDegradedPools},
		{"distinguishes an empty feed from an unreadable one", distinguishesEmptyFeedFromUnreadable},
		{"shows unknown values of the pipeline", showsUnknownPipelineValues},
		{"announces new items", announcesNewItems},
		{"leaves no gap in a feed", leavesNoGapInAFeed},
		{"shows experiments", showsExperiments},
		{"labels a funnel with its request", labelsFunnelWithItsRequest},
		{"shows no targets of sources without a share", showsNoTargetsWithoutShare},
		{"recovers from an unknown view", recoversFromUnknownView},
		{"sends a token", sendsToken},
		{"disables changes without permission", disablesChangesWithoutPermission},
		{"decides on terms", decidesOnTerms},
		{"shows more terms", showsMoreTerms},
		{"sends clicks", sendsClicks},
		{"counts an action once", countsAnActionOnce},
		{"shows retries of dead letters", showsRetries},
		{"sets retry rates", setsRetryRates},
		{"shows lag, rates and restarts", showsLagRatesAndRestarts},
		{"marks only errors as errors", marksOnlyErrors},
		{"shows every process", showsEveryProcess},
		{"works with only a keyboard", worksWithKeyboard},
		{"keeps the selection", keepsSelection},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, b) })
	}
}

// Every view shows titles, ids, reasons and errors as text.
func showsHostileTextAsText(t *testing.T, b *Browser) {
	p := newDesk().open(t, b, wide, "/?user=user:a")
	p.Wait("the feed", "document.querySelectorAll('.card').length === 2")
	expect.Equal(t, p.Texts(".card h2")[0], hostile, "title")
	expect.Equal(t, Eval[int](p, "document.querySelectorAll('.card h2 a').length"), 0, "links to addresses that are no web addresses")
	p.Click(".card .why-button")
	p.Wait("the explanation", "document.querySelector('.card .why .fate')")
	p.Wait("affinities", "document.querySelector('#rail-affinities li')")
	p.Wait("share and target of a source", says("#rail-pools .note", "shown 100 %, target 100 %"))
	if Eval[bool](p, "[...document.querySelectorAll('.card')].some((c) => c.scrollWidth > c.clientWidth)") {
		t.Error("a card is wider than what is seen of it")
	}
	p.Shot("feed-rail-wide")
	for view, there := range map[string]string{
		"compare": "#compare-b-items li", "graph": "#graph-panels li", "config": "#config-values td", "pools": "#pools li", "features": "#features .feature li", "interests": "#terms li + li", "pipeline": "#dead-letters li", "insights": "#plot-habit figure", "experiments": "#experiments td",
	} {
		Eval[string](p, "location.hash = '"+view+"'")
		p.Wait(view+" is shown", "document.querySelector('"+there+"')")
	}
	p.Wait("the missing parts", "document.querySelector('#state-text').textContent.includes('onerror')")
	if Eval[bool](p, "'broken' in window || document.querySelectorAll('main img, main script, header script').length > 0") {
		t.Error("text has become markup")
	}
	p.Excuse("503")
	p.Excuse("404")
	p.Check()
}

// The view Experiments has a row for each arm, warns of a mismatch, and requests the chosen days. An error is next to the title.
func showsExperiments(t *testing.T, b *Browser) {
	d := newDesk()
	p := d.open(t, b, wide, "/#experiments", "503")
	p.Wait("the mismatch", "document.querySelector('#experiments .notice')?.textContent.startsWith('Sample ratio mismatch (p = 0.00010)')")
	if got, want := p.Texts("#experiments table:last-of-type tbody tr"), []string{
		"–50 %1,2001,3009,000", hostile[:60] + "50 %1,2001,3009,000", "save–120.2500 [0.2000, 0.3000]–––", "save" + hostile[:60] + "12–––12.3",
	}; !slices.Equal(got, want) {
		t.Errorf("got the rows %q, want %q", got, want)
	}
	p.CheckAccessible("experiments")
	d.answers("GET /insights/experiments", 503, map[string]any{"detail": "no owner"})
	Eval[string](p, "document.querySelector('#experiment-days').value = '28'; document.querySelector('#experiment-days').dispatchEvent(new Event('change')); ''")
	p.Wait("the error", says("#experiments", "Cannot read the experiments: no owner."))
	if asked := d.queries("GET /insights/experiments", "days"); asked[0] != "7" || asked[len(asked)-1] != "28" {
		t.Errorf("requests: %q, want 7 days, then 28", asked)
	}
}

// Errors appear next to their control, and the previous contents stay.
func showsErrors(t *testing.T, b *Browser) {
	d := newDesk()
	p := d.open(t, b, wide, "/?user=user:a#features", "400", "403", "404", "500")
	p.Wait("features", "document.querySelector('#features .feature li')")
	p.Click("#try button")
	p.Wait("trials are not supported", "document.querySelector('#try-problems').textContent.includes('does not support trials')")
	d.answers("POST /features/try", 400, map[string]any{"detail": "two", "errors": []string{"line 2: window: want at most 96h", "line 3: no"}})
	p.Click("#try button")
	p.Wait("both problems", "document.querySelectorAll('#try-problems li').length === 2")
	p.Wait("the invalid definition", "document.querySelector('#try-definition').getAttribute('aria-invalid') === 'true'")
	d.answers("GET /status", 500, map[string]any{"detail": "it broke"})
	p.Wait("the error of the status", "document.querySelector('#state-text').textContent === 'it broke' && document.querySelector('.dot.bad')")
	d.answers("GET /status", 200, status())

	Eval[string](p, "location.hash = 'feed'")
	p.Wait("the degraded reasons of the feed", "document.querySelector('#degraded').textContent.includes('store')")
	d.answers("POST /events", 503, map[string]any{"detail": "the broker is unavailable"})
	p.Click(".card [data-verb=save]")
	p.Wait("the save may have failed", "document.querySelector('#notice').textContent.includes('the broker is unavailable')")
	d.answers("GET /feed/why", 503, map[string]any{"detail": "the pools are unavailable"})
	p.Click(".card .why-button")
	p.Wait("the error of the explanation", "document.querySelector('.why .bad').textContent.includes('the pools are unavailable')")
	d.answers("POST /features", 403, map[string]any{"detail": "not for you"})
	d.answers("GET /feed/state", 200, map[string]any{"feed": "home", "sources": []any{}, "deferred": []any{}, "degraded": []any{}, "affinities": []any{map[string]any{"facet": "user:kept", "value": 1}}})
	p.Wait("permitted data next to the error", "document.querySelector('#rail-affinities').textContent.includes('kept') && document.querySelector('#state-text').textContent === 'not for you'")
	d.answers("GET /feed", 503, map[string]any{"detail": "too full"})
	p.Click("#feed-form button")
	p.Wait("the error of the feed", "document.querySelector('#notice').textContent.includes('too full')")
}

// The page announces new items when they arrive, and removes the announcement when there are none. It announces items that
// a visit did not return again.
func announcesNewItems(t *testing.T, b *Browser) {
	d := newDesk()
	p := d.open(t, b, wide, "/?user=user:a")
	p.Wait("the feed", "document.querySelectorAll('.card').length === 2")
	pill := func(want string) {
		t.Helper()
		if want != "" {
			want = "Visit: " + want
		}
		p.Wait("the pill shows "+want, "(document.querySelector('#fresh').hidden ? '' : document.querySelector('#fresh').textContent) === '"+want+"'")
	}
	for _, c := range []struct {
		count int
		want  string
	}{{1, "1 new item"}, {7, "7 new items"}, {100, "100 or more new items"}, {0, ""}} {
		d.counts <- c.count
		pill(c.want)
	}
	d.counts <- 3
	pill("3 new items")
	p.Click("#fresh")
	p.Wait("the feed is reloaded, and its heading has the focus", "document.activeElement.id === 'feed-title'")
	expect.Equal(t, len(d.bodies("GET /feed")), 2, "requests of the feed")
	pill("3 new items") // the visit did not show all, and the count is unchanged
	d.answers("GET /feed", 503, map[string]any{"detail": "not now"})
	p.Click("#fresh")
	p.Wait("the visit has failed", "document.querySelector('#notice').textContent.includes('not now')")
	pill("3 new items")
}

// If the API requires authentication, every request has the token that the user enters.
func sendsToken(t *testing.T, b *Browser) {
	d := newDesk()
	d.answers("GET /insights/growth", 200, map[string]any{"days": []any{}})
	var without atomic.Int64
	mux := http.NewServeMux()
	mux.HandleFunc("/v1/", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer open sesame" {
			without.Add(1)
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprint(w, `{"type":"about:blank","title":"Unauthorized","status":401,"detail":"a token is wanted"}`)
			return
		}
		d.ServeHTTP(w, r)
	})
	mux.Handle("/", web.Handler())
	site := serveSite(t, mux)
	p := b.Page(t, wide)
	p.Go(site + "/?user=user:a")
	p.Wait("the token dialog", "document.querySelector('#token-dialog').open && document.activeElement.id === 'token'")
	p.Wait("the reason of the dialog", "document.querySelector('#token-reason').textContent === 'a token is wanted'")
	p.CheckAccessible("the token dialog")
	p.Press(kb.Escape)
	p.Wait("the notice without a token", "document.querySelector('#notice').textContent.includes('a token is wanted')")
	p.Wait("the dialog does not reopen", "new Promise((r) => setTimeout(() => r(!document.querySelector('#token-dialog').open), 2500))")
	p.Click("#feed-form button")
	p.Wait("the dialog reopens for another visit", "document.querySelector('#token-dialog').open")
	p.Fill("#token", "open sesame")
	p.Press(kb.Enter)
	p.Wait("the feed", "document.querySelectorAll('.card').length === 2")
	d.counts <- 4
	p.Wait("the stream has the token, too", "document.querySelector('#fresh').textContent === 'Visit: 4 new items'")
	asked := without.Load()
	p.Go(site + "/?user=user:a#pools")
	p.Wait("the token is kept for the tab", "document.querySelector('#pools li')")
	expect.Equal(t, without.Load(), asked, "requests without the token")
	p.Excuse("401", "503")
	p.Check()
}

// The page sends a decision immediately. A rejected decision shows the error at its term; after an accepted one, the term
// disappears from the list.
func decidesOnTerms(t *testing.T, b *Browser) {
	d := newDesk()
	p := d.open(t, b, wide, "/?user=user:a#interests", "400")
	p.Wait("terms", "document.querySelectorAll('#terms li').length === 2")
	p.Wait("the user's interests", says("#user-interests-list .value", "100 %")+" && "+says("#user-interests-list .note", "save of "+hostile[:60]+", 2 hr. ago"))
	p.Wait("more evidence is available", says("#user-interests-list summary", "2 more actions for "+hostile[:60])+" && document.querySelectorAll('#user-interests-list [title]:not(.label)').length === 0")
	p.Click("#user-interests-list summary")
	p.Wait("the evidence", says("#user-interests-list ul", "click of 2, 2 hr. agoview of 3, 2 hr. ago"))
	p.CheckAccessible("interests with their evidence")
	p.Shot("interests-evidence-wide")
	d.answers("POST /dictionary/decisions", 400, map[string]any{"detail": "it is not taken", "errors": []string{"into is no other term"}})
	p.Click("#terms li:last-child summary")
	choose := func(state, text string) {
		p.Choose("#terms li:last-child select", state)
		p.Fill("#terms li:last-child input", text)
		p.Click("#terms li:last-child button")
	}
	choose("merged", "tea")
	p.Wait("the error of the decision", "document.querySelector('#terms li:last-child .notice').textContent.includes('into is no other term')")
	d.answers("POST /dictionary/decisions", 200, map[string]any{"term": "oolong", "state": "rejected", "reason": "a brand"})
	d.answers("GET /dictionary", 200, map[string]any{"terms": []any{}})
	choose("rejected", "a brand")
	p.Wait("the term is removed, and the heading has the focus", "document.querySelectorAll('#terms li').length === 0 && document.activeElement.id === 'interests-title'")
	p.Wait("the announcement", "document.querySelector('#announcer').textContent === 'oolong is rejected'")
	want := []string{`{"term":"oolong","state":"merged","into":"tea"}`, `{"term":"oolong","state":"rejected","reason":"a brand"}`}
	expect.NoDiff(t, d.bodies("POST /dictionary/decisions"), want, "sent")
	d.answers("GET /dictionary", 503, map[string]any{"detail": "the rows are unavailable"})
	Eval[bool](p, "document.querySelector('#terms-state').dispatchEvent(new Event('change'))")
	p.Wait("the error", "document.querySelector('#terms-status').textContent.includes('the rows are unavailable')")
}

// For a long dictionary, the page shows the first terms, then more, up to the maximum of the API. It says how to reach the
// others.
func showsMoreTerms(t *testing.T, b *Browser) {
	const others = "there may be more. To decide about other terms, use POST /v1/dictionary/decisions."
	d := newDesk()
	terms := func(n int) {
		list := []any{}
		for i := range n {
			list = append(list, term(fmt.Sprint("term ", i)))
		}
		d.answers("GET /dictionary", 200, map[string]any{"terms": list})
	}
	terms(50)
	p := d.open(t, b, wide, "/#interests")
	said := func(n, text string) {
		t.Helper()
		p.Wait("the status of "+n, says("#terms-status", text)+" && document.querySelectorAll('#terms > li').length === "+n)
	}
	said("50", "The first 50 terms, by score; "+others)
	p.Click("#live") // an automatic update would receive the terms for the next request
	for _, n := range []int{250, 450, 650, 850, 1000} {
		terms(n)
		before := Eval[int](p, "document.querySelectorAll('#terms > li').length")
		p.Click("#terms-more")
		p.Wait("the first new term has the focus", fmt.Sprintf("document.activeElement === document.querySelectorAll('#terms > li')[%d].querySelector('summary')", before))
	}
	said("1000", "The first 1,000 terms, by score; "+others)
	p.Wait("the maximum of terms", "document.querySelector('#terms-more').hidden")
	limits := slices.Compact(d.queries("GET /dictionary", "limit"))
	expect.NoDiff(t, limits, []string{"50", "250", "450", "650", "850", "1000"}, "requested numbers of terms")
	terms(3)
	p.Choose("#terms-state", "merged")
	said("3", "3 terms.")
	p.Wait("all terms", "document.querySelector('#terms-more').hidden")
	terms(50)
	p.Choose("#terms-state", "rejected")
	said("50", "The first 50 terms, by name; "+others)
	p.CheckAccessible("many terms")
}

// Clicks on the button of a card, and on the link of its title, are actions of the user.
func sendsClicks(t *testing.T, b *Browser) {
	d := newDesk()
	d.answers("GET /feed", 200, map[string]any{"items": []any{item(1, "one")}, "next": nil, "degraded": []any{}})
	p := d.open(t, b, wide, "/?user=user:a")
	p.Wait("the feed", "document.querySelectorAll('.card').length === 1")
	stay := "document.addEventListener('click', (e) => { if (e.target.closest('a[target=_blank]')) e.preventDefault(); })" // pins.example does not exist
	Eval[bool](p, "("+stay+", true)")
	for i, at := range []string{".card [data-verb=click]", ".card h2 a"} {
		p.Click(at)
		p.Wait("the button is pressed", "document.querySelector('.card [data-verb=click]').getAttribute('aria-pressed') === 'true'")
		p.Wait("the announcement", "document.querySelector('#announcer').textContent === 'click sent'")
		Eval[bool](p, "(document.querySelector('#announcer').textContent = '', document.querySelector('.card [data-verb=click]').setAttribute('aria-pressed', 'false'), true)")
		sent := d.bodies("POST /events")
		var event struct{ Stream, Verb, Actor, Object, Surface string }
		if len(sent) != i+1 || json.Unmarshal([]byte(sent[i]), &event) != nil || event != struct{ Stream, Verb, Actor, Object, Surface string }{"actions", "click", "user:a", "pin:1", "console"} {
			t.Errorf("%s: sent %q, want one click more", at, sent)
		}
	}
	link := Eval[string](p, "((a) => [a.href, a.rel, a.target].join(' '))(document.querySelector('.card h2 a'))")
	expect.Equal(t, link, "https://pins.example/1 noopener noreferrer _blank", "link")
}

// Each failed record has one line for all its dead letters, with the state of its retries.
func showsRetries(t *testing.T, b *Browser) {
	d := newDesk()
	d.answers("GET /dead-letters", 200, map[string]any{"dead_letters": []any{
		deadLetter("actions", 1, 0, "2026-11-20T10:00:00Z"), deadLetter("actions", 5, 1, "2026-11-20T10:10:00Z"), deadLetter("", 6, 0, "2026-11-20T10:20:00Z"),
	}})
	d.answers("GET /dead-letters/retries", 200, map[string]any{"dead_letters": []any{retried("waiting", 1, 3), retried("done", 7, 1), retried("parked", 8, 8)}})
	p := d.open(t, b, View{Width: 1280, Height: 900, Dark: true}, "/#pipeline")
	p.Wait("the records", "document.querySelectorAll('#dead-letters li').length === 4")
	fates := p.Texts("#dead-letters .fate")
	expect.NoDiff(t, slices.Sorted(slices.Values(fates)), []string{"done", "parked", "unknown", "waiting"}, "fates of the records")
	p.Wait("open records are marked", "document.querySelectorAll('#dead-letters li.open').length === 3 && !document.querySelector('#dead-letters-retry').disabled")
	expect.Equal(t, p.Texts("#dead-letters-status")[0], "4 records: 1 waiting, 1 done, 1 parked.", "status")
	line := "[...document.querySelectorAll('#dead-letters li')].find((e) => e.textContent.includes('actions/0 at 1'))"
	p.Wait("the number of retries and the next one", line+".querySelector('.next').textContent.startsWith('3 retries · next ')")
	Eval[bool](p, "("+line+".querySelector('summary').click(), true)")
	p.Wait("its bytes", line+".querySelector('pre').textContent.includes('<script>')")
	p.CheckAccessible("dead letters with their states")
	p.Shot("dead-letters-wide-dark")
	p.Wait("the reason of a parked record", "[...document.querySelectorAll('#dead-letters dd')].some((e) => e.textContent.startsWith('parked since 2026-11-20T11:00:00.000Z: '))")

	d.answers("GET /dead-letters/retries", 200, map[string]any{"dead_letters": []any{retried("parked", 8, 8)}})
	p.Choose("#dead-letters-state", "parked")
	p.Wait("only records in the state", "document.querySelectorAll('#dead-letters li').length === 1 && document.querySelector('#dead-letters .fate').textContent === 'parked'")
	d.answers("POST /dead-letters/retry", 200, map[string]any{"published": 2, "topics": map[string]any{}, "skipped": 1})
	p.Click("#dead-letters-retry")
	p.Wait("the result of the retry", "document.querySelector('#dead-letters-result').textContent === '2 dead letters are retried, 1 skipped.'")
	d.answers("GET /dead-letters/retries", 503, map[string]any{"detail": "the rows are unavailable"})
	p.Choose("#dead-letters-state", "")
	p.Wait("dead letters with unknown states", "document.querySelectorAll('#dead-letters li').length === 2 && document.querySelector('#dead-letters-status').textContent.includes('the rows are unavailable')")
}

// The line of a kind has inputs for its rate and priority. Typed text stays while numbers change.
func setsRetryRates(t *testing.T, b *Browser) {
	const kind = "actions/objects/verb"
	d := newDesk()
	kinds := func(waiting int, rate float64, operator string) {
		k := retryKind(kind, rate, operator)
		k["states"].(map[string]any)["waiting"] = waiting
		d.answers("GET /dead-letters/kinds", 200, map[string]any{"kinds": []any{k}})
	}
	kinds(2, 10, "")
	p := d.open(t, b, View{Width: 390, Height: 844, Phone: true}, "/#pipeline", "400")
	cell := func(name, want string) {
		t.Helper()
		p.Wait(name+" is "+want, "document.querySelector('#kinds [data-of="+name+"]')?.textContent === '"+want+"'")
	}
	for name, want := range map[string]string{"waiting": "2", "sent": "1", "done": "1,234", "parked": "3", "rate": "10/s", "priority": "0"} {
		cell(name, want)
	}
	p.CheckAccessible("kinds")
	expect.AtMost(t, Eval[float64](p, "document.documentElement.scrollWidth"), 390, "width of the page on a phone of 390 pixels")
	p.Shot("kinds-phone")
	p.Fill("#kinds input[name=rate]", "0")
	p.Fill("#kinds input[name=priority]", "-3")
	Eval[bool](p, "(document.activeElement.blur(), true)")
	kinds(7, 10, "")
	cell("waiting", "7")
	expect.Equal(t, Eval[string](p, "document.querySelector('#kinds input[name=rate]').value"), "0", "the typed text")
	d.answers("POST /dead-letters/limits", 400, map[string]any{"detail": "it is not taken", "errors": []string{"there is no topic"}})
	p.Click("#kinds button[type=submit]")
	p.Wait("the error of the decision", "document.querySelector('#kinds-result').textContent.includes('it is not taken · there is no topic')")
	d.answers("POST /dead-letters/limits", 200, map[string]any{"kind": kind, "rate": 0, "priority": -3})
	kinds(7, 0, "ann")
	p.Wait("the field has the focus", "(document.querySelector('#kinds input[name=rate]').focus(), true)")
	p.Press(kb.Enter)
	p.Wait("the new limit", "document.querySelector('#kinds-result').textContent === '"+kind+": no retries, priority -3.'")
	cell("rate", "stopped by ann")
	kinds(7, 10, "ann")
	p.Click("#kinds button[type=button]")
	p.Wait("the new limit", "document.querySelector('#kinds-result').textContent.startsWith('"+kind+": the configured rate')")
	cell("rate", "10/s by ann")
	const zero = `{"kind":"` + kind + `","priority":-3,"rate":0}`
	limits := []string{zero, zero, `{"kind":"` + kind + `","priority":-3}`}
	expect.NoDiff(t, d.bodies("POST /dead-letters/limits"), limits, "sent")
	d.answers("GET /dead-letters/kinds", 503, map[string]any{"detail": "the rows are unavailable"})
	p.Wait("the error", "document.querySelector('#kinds-status').textContent.includes('the rows are unavailable')")
}

// row returns the expression for the row of a table with a given head, as a list of texts.
func row(table, head string) string {
	return "[...document.querySelectorAll('" + table + " tbody tr')].filter((r) => r.children[0].textContent === '" + head + "').map((r) => [...r.children].map((c) => c.textContent).join('|'))[0]"
}

// The diagram and its tables show the lag of readers, the throughput, and the restarts of parts.
func showsLagRatesAndRestarts(t *testing.T, b *Browser) {
	d := newDesk()
	p := d.open(t, b, wide, "/#pipeline")
	node := "[...document.querySelectorAll('.node')].find((n) => n.querySelector('.node-name').textContent === 'pools')"
	line := "[...document.querySelectorAll('.flow')].find((f) => f.textContent.startsWith('serving → pools: served;'))"
	p.Wait("lag, condition and restarts",
		node+".querySelector('.node-lag').textContent === 'lag 5,000' && "+node+".querySelector('.node-health').textContent === 'waiting · 2 restarts'")
	p.Wait("both marks", node+".classList.contains('late') && "+node+".classList.contains('unhealthy') && "+line+".classList.contains('late')")
	p.Wait("no throughput", node+".querySelector('.node-rate').textContent === '0.0/s' && "+line+".textContent.endsWith('0.0/s, lag 5,000')")
	p.Wait("the label for screen readers", "document.querySelector('.pipeline').getAttribute('aria-label').includes('pools, lag 5000 records, waiting, 2 restarts')")
	p.CheckAccessible("a waiting component")
	p.Shot("pipeline-waiting-wide")
	p.Wait("the table", row("#groups", "pools")+" === 'pools|1|5,000|–|2|1|waiting'")
	width := Eval[float64](p, "Number("+line+".getAttribute('stroke-width'))")

	s := status()
	served := s["flows"].([]any)[0].(map[string]any)
	served["records"] = 100_009
	served["readers"].([]any)[0].(map[string]any)["records"] = 0
	part := s["components"].([]any)[0].(map[string]any)
	part["condition"], part["since"] = "running", time.Now().Add(-2*time.Minute)
	d.answers("GET /status", 200, s)
	rate := node + ".querySelector('.node-rate').textContent"
	p.Wait("the throughput", "parseFloat("+rate+".replace(',', '')) > 1000")
	p.Wait("no lag, and no mark for old restarts",
		node+".querySelector('.node-lag').textContent === 'no lag' && !"+node+".matches('.late, .unhealthy') && "+
			node+".querySelector('.node-health').textContent === '2 restarts'")
	if now := Eval[float64](p, "Number("+line+".getAttribute('stroke-width'))"); now <= width {
		t.Errorf("a line with records is %v wide, one without %v", now, width)
	}
	p.Wait("the throughput decreases gradually", "parseFloat("+rate+".replace(',', '')) < 1000")
	s = status()
	part = s["components"].([]any)[0].(map[string]any)
	part["condition"], part["since"] = "running", time.Now().Add(time.Hour) // so that its age does not change while the test runs
	d.answers("GET /status", 200, s)
	p.Wait("the recent restart is no error", "!"+node+".classList.contains('unhealthy') && "+node+".querySelector('.node-health').textContent === 'restarted · 2 restarts'")
}

// Boxes are in the color of errors only for components that failed, partitions without an owner, and dead letters.
func marksOnlyErrors(t *testing.T, b *Browser) {
	d := newDesk()
	component := map[string]any{"name": "pools", "condition": "idle", "since": "2026-11-20T10:00:00Z", "restarts": 0}
	group := map[string]any{"group": "pools", "joined": false, "restarts": 0, "partitions": nil, "counters": map[string]any{"dead_letters": 7}, "records_per_second": 0}
	show := func() {
		s := status()
		s["components"], s["groups"] = []any{component}, []any{group, map[string]any{
			"group": "objects", "joined": true, "restarts": 0, "partitions": []any{partitionOf(0), partitionOf(1)}, "counters": map[string]any{"dead_letters": 0}, "records_per_second": 0,
		}}
		d.answers("GET /status", 200, s)
	}
	d.answers("GET /dead-letters/kinds", 200, map[string]any{"kinds": []any{}})
	show()
	p := d.open(t, b, wide, "/#pipeline")
	node := func(name string) string {
		return "[...document.querySelectorAll('.node')].find((n) => n.querySelector('.node-name').textContent === '" + name + "')"
	}
	says := func(what, part, text string, isError bool) {
		t.Helper()
		p.Wait(what, fmt.Sprintf("(%[1]s.querySelector('.node-%[2]s')?.textContent || '') === '%[3]s' && %[1]s.classList.contains('unhealthy') === %[4]t", node("pools"), part, text, isError))
	}
	says("a starting group is no error", "health", "starting", false)
	p.Wait("no box is in the color of errors", "document.querySelectorAll('.node.unhealthy').length === 0")
	component["condition"] = "running"
	show()
	says("a group that joins is no error", "health", "", false)
	group["joined"], group["partitions"] = true, []any{partitionOf(1)}
	show()
	says("a partition without an owner is an error", "health", "1 unowned", true)
	group["partitions"] = []any{partitionOf(0), partitionOf(1)}
	show()
	says("all partitions have owners", "health", "", false)
	component["condition"] = "failed"
	show()
	says("a failed component is an error", "health", "failed", true)
	component["condition"] = "running"
	show()
	says("the component runs again", "health", "", false)
	kind := retryKind("actions/pools/verb", 10, "")
	kind["group"] = "pools"
	d.answers("GET /dead-letters/kinds", 200, map[string]any{"kinds": []any{kind}})
	says("waiting and parked dead letters are errors", "dead", "5 dead letters", true)
	color := func(of string) string { return "getComputedStyle(" + of + ").stroke" }
	if Eval[bool](p, color(node("pools")+".querySelector('rect')")+" === "+color("document.querySelector('.flow.late')")) {
		t.Error("errors and lag have the same color")
	}
	p.CheckAccessible("a pipeline with dead letters")
	p.Shot("pipeline-errors-wide")
}

// partitionOf returns a running partition.
func partitionOf(n int) map[string]any {
	return map[string]any{"partition": n, "stage": "running", "table_offset": 1}
}

// The page shows all processes: their parts, the merged groups, and processes that did not respond.
func showsEveryProcess(t *testing.T, b *Browser) {
	part := func(name, condition string, restarts int) map[string]any {
		return map[string]any{"name": name, "condition": condition, "since": "2026-11-20T10:00:00Z", "restarts": restarts}
	}
	partition := func(n int, stage, process string) map[string]any {
		return map[string]any{"partition": n, "stage": stage, "process": process, "table_offset": 1}
	}
	s := status()
	s["missing"], s["components"] = []string{}, []any{part("http", "running", 0)}
	s["groups"] = []any{map[string]any{
		"group": "pools", "restarts": 3, "counters": map[string]any{"dead_letters": 7}, "records_per_second": 12,
		"partitions": []any{
			partition(0, "running", "a:1"), partition(0, "standby", "b:1"), partition(1, "running", "b:1"), partition(2, "recovering", "b:1"),
		},
	}}
	s["processes"] = []any{
		map[string]any{"address": "self:1", "version": "v1", "ready": true, "missing": []any{}, "components": s["components"]},
		map[string]any{"address": "a:1", "version": "v1", "ready": true, "missing": []any{}, "components": []any{part("pools", "running", 1)}},
		map[string]any{"address": "b:1", "version": "v0", "ready": false, "missing": []string{"pools is waiting"}, "components": []any{part("pools", "waiting", 2)}},
	}
	s["unavailable"] = []any{map[string]any{"source": "gone:1", "reason": "no response"}}
	s["shares"] = []any{map[string]any{"feed": "home", "source": "following", "target": 1, "items": 1200}}
	d := newDesk()
	d.answers("GET /status", 200, s)
	p := d.open(t, b, wide, "/#pipeline")
	p.Wait("the merged group", row("#groups", "pools")+" === 'pools|12|5,000|3, 1 recovering|3|7|running in 1, waiting in 1'")
	p.Wait("the restarts in the diagram", "[...document.querySelectorAll('.node-health')].some((e) => e.textContent === 'waiting · 3 restarts')")
	p.Wait("the processes", row("#processes", "b:1")+" === 'b:1|v0|pools is waiting' && "+row("#processes", "a:1")+" === 'a:1|v1|ready'")
	p.Wait("the process that did not respond", row("#processes", "gone:1")+" === 'gone:1|–|unavailable: no response' && document.querySelector('#missing').textContent.includes('Missing: gone:1: no response')")
	expect.NoDiff(t, p.Texts("#components tbody td:nth-child(2)"), []string{"self:1", "a:1", "b:1"}, "processes of the components")
	p.CheckAccessible("several processes")
	p.Shot("processes-wide")
	Eval[string](p, "location.hash = 'insights'")
	p.Wait("the shares of all processes", "document.querySelector('#plot-shares figure')?.textContent.includes('1,200 items')")
}

// The console is usable without a pointer: from the skip link through every control to every view.
func worksWithKeyboard(t *testing.T, b *Browser) {
	d := newDesk()
	p := d.open(t, b, wide, "/", "404")
	p.Wait("the form for a user", "!document.querySelector('#suggest').hidden")
	focused := func() string {
		return Eval[string](p, "document.activeElement.id || document.activeElement.textContent")
	}
	p.Press(kb.Tab)
	expect.Equal(t, focused(), "Skip to the content", "focus after the first tab")
	expect.True(t, Eval[bool](p, "document.activeElement.getBoundingClientRect().top >= 0"), "the focused skip link is visible")
	p.Press(kb.Enter)
	p.Wait("the main content has the focus", "document.activeElement.id === 'main'")
	p.Go(Eval[string](p, "location.origin"))
	order := tabs(p, "user", 10)
	expect.NoDiff(t, order, []string{"Skip to the content", "user"}, "tab order")
	p.Press("a")
	p.Press(kb.Enter)
	p.Wait("the feed of user:a, with the focus on its heading", "document.querySelectorAll('.card').length === 2 && document.activeElement.id === 'feed-title'")
	expect.Equal(t, Eval[string](p, "new URLSearchParams(location.search).get('user')"), "user:a", "the user in the address")
	for range 5 { // visit; save, click, hide, why of the first card
		p.Press(kb.Tab)
	}
	p.Wait("the focus is visible", "getComputedStyle(document.activeElement).outlineStyle === 'solid' && parseFloat(getComputedStyle(document.activeElement).outlineWidth) >= 2")
	p.Press(kb.Enter)
	p.Wait("the explanation is open", "document.activeElement.getAttribute('aria-expanded') === 'true' && document.querySelector('.card .why .fate')")
	tabs(p, "live", 100)
	p.Press(" ")
	p.Wait("automatic updates are stopped", "document.querySelector('#live').getAttribute('aria-pressed') === 'false'")
	for _, at := range []struct{ view, title, there string }{
		{"compare", "Compare", "#compare-b-items li"}, {"graph", "Graph", "#graph-panels li"}, {"config", "Configuration", "#config-values td"},
		{"pools", "Pools", "#deferred li"}, {"features", "Features", "#features .feature li"}, {"interests", "Interests", "body:has(#terms li) #user-interests-list li"},
		{"pipeline", "Pipeline", "#dead-letters li"}, {"insights", "Insights", "#plot-habit figure"}, {"experiments", "Experiments", "#experiments td"}, {"feed", "Feed", "#rail-pools li"},
	} {
		tabs(p, at.title, 300)
		p.Press(kb.Enter)
		p.Wait("the heading of "+at.view+" has the focus", "document.activeElement.id === '"+at.view+"-title'")
		p.Wait(at.view+" is filled", "document.querySelector('"+at.there+"')")
		walk(t, p, at.view)
		tabs(p, "Skip to the content", 300)
		p.Press(kb.Enter)
		p.Wait("the skip link leads into "+at.view, "document.activeElement.id === 'main' && !document.querySelector('#view-"+at.view+"').hidden")
	}
}

// walk tabs around the page and opens what can be opened on the way. It fails the test for every visible control that did not
// get the focus. Contents that arrive during a walk change the order of the controls, so a few walks are tried.
func walk(t *testing.T, p *Page, view string) {
	t.Helper()
	var missed []string
	for range 5 {
		if missed = walkOnce(t, p, view); len(missed) == 0 {
			return
		}
	}
	t.Errorf("%s: %q cannot be reached by tabs", view, missed)
}

// walkOnce tabs once around the page, and returns the visible controls that did not get the focus.
func walkOnce(t *testing.T, p *Page, view string) (missed []string) {
	t.Helper()
	const step = `((e) => {
		if (window.reached.has(e)) return 'again';
		window.reached.add(e);
		return e.matches('summary') && !e.parentElement.open ? 'closed' : 'next';
	})(document.activeElement)`
	Eval[bool](p, "(window.reached = new Set(), true)")
	at := ""
	for range 300 {
		p.Press(kb.Tab)
		if at = Eval[string](p, step); at == "again" {
			break
		} else if at == "closed" {
			p.Press(kb.Enter)
			p.Wait("the element is open", "document.activeElement.parentElement.open")
		}
	}
	controls := Eval[[]struct {
		Name    string
		Reached bool
	}](p, `[...document.querySelectorAll('a[href], button, input, select, textarea, summary, [tabindex="0"]')]
		.filter((e) => !e.disabled && e.checkVisibility({ visibilityProperty: true }))
		.map((e) => ({ name: e.id || e.getAttribute('aria-label') || e.textContent, reached: window.reached.has(e) }))`)
	if at != "again" || len(controls) < 16 { // the header and the footer have that many
		t.Fatalf("%s: %d controls, and the tabs end at %q; want to come round", view, len(controls), at)
	}
	for _, c := range controls {
		if !c.Reached {
			missed = append(missed, c.Name)
		}
	}
	return missed
}

// tabs presses tab until an element has the focus, and returns the elements that had it on the way.
func tabs(p *Page, until string, most int) []string {
	var order []string
	for range most {
		p.Press(kb.Tab)
		at := Eval[string](p, "document.activeElement.id || document.activeElement.textContent")
		if order = append(order, at); at == until {
			break
		}
	}
	return order
}

// Colors follow the system until a person chooses others, which are kept. Updates can be stopped.
func keepsSelection(t *testing.T, b *Browser) {
	d := newDesk()
	p := d.open(t, b, View{Width: 1280, Height: 900, Dark: true}, "/?user=user:a")
	ground := "getComputedStyle(document.documentElement).backgroundColor"
	dark := Eval[string](p, ground)
	p.Choose("#theme", "light")
	expect.True(t, Eval[string](p, ground) != dark, "light and dark are both %s", dark)
	p.Go(Eval[string](p, "location.href"))
	p.Wait("light mode is kept", "document.documentElement.dataset.theme === 'light'")
	p.Choose("#theme", "auto")
	p.Wait("auto follows the system", ground+" === '"+dark+"'")
	p.Wait("the feed", "document.querySelectorAll('.card').length === 2")

	p.Click("#live")
	p.Wait("no request in flight", "document.querySelector('#live').getAttribute('aria-pressed') === 'false'")
	before := len(d.bodies("GET /status"))
	p.Wait("two seconds have passed", "new Promise((r) => setTimeout(() => r(true), 2000))")
	expect.AtMost(t, len(d.bodies("GET /status")), before+1, "requests for the status although updates are stopped")
	p.Click("#live")
	p.Wait("the status is requested again", "document.querySelector('#live').getAttribute('aria-pressed') === 'true'")
}
