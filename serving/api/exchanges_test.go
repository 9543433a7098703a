package api

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"

	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/serving/auth"
	"github.com/smartfeed/smartfeed/topics"
)

const save = `{"stream":"actions","id":"e-81","time":"2026-11-20T10:00:00.123Z","actor":"user:7","verb":"save","object":"pin:42"}`

// exchange is one request and its expected answer.
type exchange struct {
	name         string
	route        string // of the document; "": none
	method, path string
	header       []string
	body         string
	fail         error    // of every call of a dependency
	missing      []string // why the process is not ready
	change       func(*Config, *Deps)
	prepare      func(*Server)
	slow, cut    bool // the end of the body never arrives; its sender has disconnected
	plain        bool // over a connection without deadlines
	code         int
	says         string // text in the answer
}

// exchanges are all requests of the tests: those in the tables, and the variants of the first successful one of each call.
var exchanges = func() []exchange {
	all := slices.Clone(plainExchanges)
	for _, r := range table() {
		all = append(all, guarded(first(r.method, r.path), r)...)
	}
	return append(all, openExchanges()...)
}()

// plainExchanges are the requests without authentication.
var plainExchanges = func() []exchange {
	all := slices.Concat(feedRows, listRows, featureRows, insightRows, eventRows(), deadLetterRows, interestRows, operationRows, strayRows, specialExchanges())
	for _, r := range table() {
		all = append(all, variants(first(r.method, r.path), r)...)
	}
	return all
}()

// table returns the table of routes.
func table() []route { return (&Server{deps: (&fakes{}).deps()}).routes() }

// first returns the first successful request of a call in the tables.
func first(method, path string) exchange {
	for _, a := range slices.Concat(feedRows, listRows, featureRows, insightRows, eventRows(), deadLetterRows, interestRows, operationRows) {
		if a.method == method && a.route == path && a.code < 300 {
			return a
		}
	}
	panic("no request of " + method + " " + path)
}

// mux returns the route of a request.
var mux = func() *http.ServeMux {
	mux := http.NewServeMux()
	for _, r := range table() {
		mux.HandleFunc(r.method+" "+r.path, func(http.ResponseWriter, *http.Request) {})
	}
	return mux
}()

// row returns a request, given as its method and path, with the expected answer.
func row(request, body string, code int, says string) exchange {
	method, path, _ := strings.Cut(request, " ")
	_, pattern := mux.Handler(httptest.NewRequest(method, path, nil))
	_, route, _ := strings.Cut(pattern, " ")
	return exchange{name: fmt.Sprintf("%.80s %.80s", path, body), route: route, method: method, path: path, body: body, code: code, says: says}
}

// but returns a with changes.
func (a exchange) but(name string, code int, says string, change func(*exchange)) exchange {
	a.name, a.code, a.says = name, code, says
	change(&a)
	return a
}

// headed returns a with a header.
func (a exchange) headed(code int, says string, header ...string) exchange {
	return a.but(strings.Join(header, " "), code, says, func(a *exchange) { a.header = header })
}

// with adds a parameter to a path.
func with(path, parameter string) string {
	if strings.Contains(path, "?") {
		return path + "&" + parameter
	}
	return path + "?" + parameter
}

// classes are the classes of requests whose slots fill takes.
var classes = append(auth.Scopes(), access{}.class(), string(stream), string(trial), peerClass)

// fill takes every slot of the server, except those of scrapes.
func fill(s *Server) {
	for _, class := range classes {
		for s.gates.Enter(class) {
		}
	}
}

// variants returns the requests that follow from a successful one: with unknown parameters and invalid ids, at
// capacity, with failing dependencies, and with invalid bodies.
func variants(good exchange, r route) []exchange {
	full, failed := 503, 500
	if r.kind == probe || r.kind == scraping {
		full = good.code
	}
	if r.data != "" || slices.Contains([]string{"/v1/dead-letters/retry", "/v1/dead-letters/limits", "/v1/dictionary/decisions"}, r.path) {
		failed = 503
	}
	all := append(bodies(good, r), ids(good)...)
	all = append(all, good.but("at capacity", full, "", func(a *exchange) { a.prepare = fill }))
	if r.kind != probe && r.kind != scraping {
		all = append(all, good.but("unknown parameter", 400, `unknown parameter \"verbose\"`, func(a *exchange) { a.path = with(a.path, "verbose=1") }))
	}
	switch {
	case r.kind == stream: // it continues without counts
		all = append(all, good.but("without deadlines", 500, "", func(a *exchange) { a.plain = true }))
	case r.path == "/metrics":
		all = append(all, good.but("failing", 500, "secret inside", func(a *exchange) { a.fail = errBroken }))
	case r.path == "/readyz", r.path == "/v1/status":
		all = append(all, good.but("failing", 500, "", func(a *exchange) { a.fail = errBroken }))
	case r.access != access{}:
		late := 503
		if call := r.method + r.path; call == "GET/v1/features" { // the definitions are in memory
			late = 500
		}
		all = append(all, good.but("failing", failed, "", func(a *exchange) { a.fail = errBroken }),
			good.but("late", late, "", func(a *exchange) { a.fail = fmt.Errorf("read: %w", context.DeadlineExceeded) }),
			good.but("panicking", 500, "the log has the cause", func(a *exchange) { a.change = noDependencies }))
	}
	return all
}

// noDependencies makes every call of a dependency panic.
func noDependencies(_ *Config, d *Deps) {
	d.Feed, d.Features, d.Insights = struct{ Feed }{}, struct{ Features }{}, struct{ Insights }{}
	d.Publisher, d.DeadLetters, d.Dictionary = struct{ Publisher }{}, struct{ DeadLetters }{}, struct{ Dictionary }{}
	d.Directory, d.Config = struct{ Directory }{}, func(bool) (any, error) { panic("no configuration") }
}

// bodies returns the variants of a POST.
func bodies(good exchange, r route) []exchange {
	if r.method != "POST" {
		return nil
	}
	all := []exchange{good.headed(403, "cross-site", "Sec-Fetch-Site", "cross-site")}
	if good.body == "" {
		return all
	}
	kind, most := "application/json", 1<<20
	if r.path == "/v1/events" {
		kind, most = "application/x-ndjson", 8<<20
	}
	pad := func(n int) string { return good.body + strings.Repeat(" ", n-len(good.body)) }
	return append(all,
		good.headed(403, "cross-site", "Origin", "https://evil.example"),
		good.headed(good.code, "", "Sec-Fetch-Site", "same-origin", "Origin", "http://127.0.0.1:8080"),
		good.headed(good.code, "", "Content-Type", kind+"; charset=utf-8"),
		good.headed(415, "want "+kind, "Content-Type", "text/plain"),
		good.headed(415, "want "+kind, "Content-Type", ";;"),
		good.headed(415, "send the body uncompressed", "Content-Encoding", "gzip"),
		good.but("slow", 408, "in time", func(a *exchange) { a.body, a.slow = a.body[:len(a.body)/2], true }),
		good.but("disconnected", 400, "completely", func(a *exchange) { a.body, a.cut = a.body[:len(a.body)/2], true }),
		good.but("too large", 413, fmt.Sprint(most, " bytes"), func(a *exchange) { a.body = pad(most + 1) }),
		good.but("too large, of unknown length", 413, "", func(a *exchange) { a.body, a.header = pad(most+1), []string{"Transfer-Encoding", "chunked"} }),
	)
}

// ids returns the variants of a request with an id in its path.
func ids(good exchange) []exchange {
	at := slices.IndexFunc(strings.Split(good.route, "/"), func(segment string) bool { return strings.HasPrefix(segment, "{") })
	if at < 0 {
		return nil
	}
	kind := strings.Trim(strings.Split(good.route, "/")[at], "{}")
	other := "pin:1"
	if kind == schemas.KindPin {
		other = "user:1"
	}
	path, query, _ := strings.Cut(good.path, "?")
	segments := strings.Split(path, "/")
	var all []exchange
	for _, c := range []struct {
		id   string
		code int
		says string
	}{
		{kind + ":a%2Fb%3Fc", 200, ""},
		{kind + "%3A%C3%A4", 200, ""},
		{kind + ":" + strings.Repeat("x", 256-len(kind)-1), 200, ""},
		{kind + ":" + strings.Repeat("x", 256-len(kind)), 400, "at most 256"},
		{kind + ":a%00", 400, "control character"},
		{kind + ":%ff", 400, "UTF-8"},
		{"a", 400, "kind:name"},
		{kind + ":", 400, "no name"},
		{other, 400, "want " + kind},
	} {
		all = append(all, good.but(fmt.Sprintf("id %.40s", c.id), c.code, c.says, func(a *exchange) {
			changed := slices.Clone(segments)
			changed[at] = c.id
			if a.path = strings.Join(changed, "/"); query != "" {
				a.path += "?" + query
			}
		}))
	}
	return append(all, good.but("malformed query", 400, "malformed", func(a *exchange) { a.path = with(a.path, "limit=%zz") }))
}

var feedRows = slices.Concat([]exchange{
	row("GET /v1/users/user:a/feed", "", 200, `"score":1.5`),
	row("GET /v1/users/user:a/feed?feed=plain", "", 200, ""),
	row("GET /v1/users/user:a/feed?feed=other", "", 400, "unknown feed"),
	row("GET /v1/users/user:a/feed?cursor=good&limit=3", "", 200, `"next":null`),
	row("GET /v1/users/user:a/feed?cursor=forged", "", 400, "bad cursor"),
	row("GET /v1/users/pin:1/feed?limit=0&x=1", "", 400, `"errors":["id \"pin:1\": want user:…","limit \"0\"`),
	row("GET /v1/users/user:a/feed?peek=true", "", 200, `"score":1.5`),
	row("GET /v1/users/user:a/feed?peek=maybe", "", 400, `peek \"maybe\": want one of true, false`),
	row("GET /v1/users/user:a/feed?peek=true&feed=other", "", 400, "unknown feed"),
	row("POST /v1/users/user:a/visits?feed=plain&limit=3", "", 200, `"score":1.5`),
	row("POST /v1/users/user:a/visits?feed=other", "", 400, "unknown feed"),
	row("POST /v1/users/user:a/visits?cursor=good", "", 400, `unknown parameter \"cursor\"`),
	row("POST /v1/users/user:a/visits", "", 200, "").headed(200, `"score":1.5`, "Idempotency-Key", strings.Repeat("k", 256)),
	row("POST /v1/users/user:a/visits", "", 200, "").headed(400, "want at most 256 bytes", "Idempotency-Key", strings.Repeat("k", 257)),
	row("GET /v1/users/user:a/feed/new", "", 200, `{"count":0}`),
	row("GET /v1/users/user:a/feed/events", "", 200, ""),
	row("GET /v1/users/user:a/feed/why?pin=pin:1", "", 200, `"fate":"next"`),
	row("GET /v1/users/user:a/feed/why", "", 400, "pin is missing"),
	row("GET /v1/users/user:a/feed/why?pin=user:1", "", 400, "want pin:"),
	row("GET /v1/users/user:a/feed/why?pin=pin:1&pin=pin:2", "", 400, "pin is given 2 times"),
	row("GET /v1/users/user:a/feed/why?pin=pin:1&feed=plain", "", 200, `"feed":"plain"`),
	row("GET /v1/users/user:a/feed/why?pin=pin:1&feed=other", "", 400, "unknown feed"),
	row("GET /v1/users/user:a/feed/why?pin=pin:shown", "", 200, `"fate":"shown","reason":"block"`),
	row("GET /v1/users/user:a/feed/state", "", 200, `"deferred":[{"pin":"pin:1","reason":"deferred_earlier","since":"2026-11-20T12:00:00Z"},{"pin":"pin:2","reason":"weak"}]`),
	row("GET /v1/users/user:a/feed/state?feed=plain", "", 200, `"sources":[],"deferred":[],"affinities":[],"degraded":[]`),
	row("GET /v1/users/user:a/feed/state?feed=other", "", 400, "unknown feed"),
	row("GET /v1/users?prefix=user:a&limit=2", "", 200, `{"users":["user:a","user:ab"]}`),
	row("GET /v1/users?prefix=ada", "", 400, `prefix \"ada\": want user:…`),
	row("GET /v1/users?prefix=user:a", "", 200, `{"users":["user:a","user:ab","user:abc"]}`),
	row("GET /v1/users", "", 200, `{"users":[]}`),
	row("GET /v1/users?limit=1001", "", 400, "1 to 1000"),
	row("GET /v1/users/user:a/graph?limit=7", "", 200, `{"user":"user:a","follows":[{"id":"interest:tea","weight":1.5}],"following":7,"blocks":[],"blocking":0,"followers":3}`),
	row("GET /v1/users/user:a/pools?source=x", "", 200, `"time":"9999-12-31T23:59:59.999999Z"`),
	row("GET /v1/users/user:a/pools?source=x&limit=1000", "", 200, `{"source":"x","total":7,"items":[{"pin":"pin:1","score":2,`),
	row("GET /v1/users/user:a/pools?source=x&limit=1", "", 200, `"board":"board:b","interests":[]}]}`),
	row("GET /v1/users/user:a/pools?source=x&limit=1001", "", 400, "1 to 1000"),
	row("GET /v1/users/user:a/pools", "", 400, "source is missing"),
	row("GET /v1/users/user:a/pools?source=a%00", "", 400, "want the name of a source"),
	row("GET /v1/users/user:a/pools?source="+strings.Repeat("x", 65), "", 400, "want the name of a source"),
}, limits("/v1/users/user:a/feed"))

var listRows = slices.Concat([]exchange{
	row("GET /v1/users/user:a/pins", "", 200, ""),
	row("GET /v1/users/user:a/pins?cursor=good&limit=3&viewer=user:b", "", 200, ""),
	row("GET /v1/boards/board:a/pins", "", 200, ""),
	row("GET /v1/boards/board:a/pins?cursor=good&limit=3&viewer=user:b", "", 200, `"next":null`),
	row("GET /v1/boards/board:a/pins?cursor=forged", "", 400, "bad cursor"),
	row("GET /v1/interests/interest:a/pins", "", 200, ""),
	row("GET /v1/interests/interest:a/pins?cursor=good&limit=3&viewer=user:b", "", 200, ""),
	row("GET /v1/pins/pin:a/related?limit=3&viewer=user:b", "", 200, ""),
	row("GET /v1/interests/interest:a/related?limit=3", "", 200, ""),
}, limits("/v1/boards/board:a/pins"))

// limits are requests for pages of several sizes.
func limits(path string) []exchange {
	get := func(limit string, code int, says string) exchange {
		return row("GET "+path+"?limit="+limit, "", code, says)
	}
	return []exchange{
		get("1", 200, ""), get("100", 200, ""), get("0", 400, "1 to 100"), get("101", 400, "1 to 100"), get("-1", 400, "1 to 100"),
		get("abc", 400, `limit \"abc\": want a number`), get("99999999999999999999", 400, "want a number"), get("1&limit=2", 400, "limit is given 2 times"),
	}
}

const (
	goodFeatures = `{"features":["interests"],"users":["user:a"],"pins":["pin:1"],"pairs":[["user:a","pin:1"]],"at":"2026-11-20T10:00:00Z"}`
	goodTrial    = `{"definition":"{name: a, entity: user, aggregate: count}","users":["user:a"]`
)

var featureRows = []exchange{
	row("GET /v1/features", "", 200, `"name":"interests"`),
	row("GET /v1/features", "", 200, `"feature_sets":{"ranking":["interests"]}`),
	row("POST /v1/features", goodFeatures, 200, `"number":1.25`),
	row("POST /v1/features", `{"feature_sets":["ranking"],"pins":["pin:1"]}`, 200, `"number":1.25`),
	row("POST /v1/features", goodFeatures+strings.Repeat(" ", 1<<20-len(goodFeatures)), 200, ""),
	row("POST /v1/features", `{"features":["a"],"people":[]}`, 400, `unknown field \"people\"`),
	row("POST /v1/features", `features`, 400, "not a JSON object"),
	row("POST /v1/features", goodFeatures[:20], 400, "not a JSON object"),
	row("POST /v1/features", ``, 400, "not a JSON object"),
	row("POST /v1/features", goodFeatures+goodFeatures, 400, "not a JSON object"),
	row("POST /v1/features", `[]`, 400, "not a JSON object"),
	row("POST /v1/features", `{"features":[1]}`, 400, "not a JSON object"),
	row("POST /v1/features", `{"pairs":[["a","b","c"]]}`, 400, "want [user, pin]"),
	row("POST /v1/features", `{"at":"yesterday"}`, 400, "not a JSON object"),
	row("POST /v1/features", strings.Repeat(`{"features":`, 80_000), 400, "not a JSON object"),
	row("POST /v1/features", `{}`, 400, `"errors":["features: want at least one name","no users, pins or pairs"]`),
	row("POST /v1/features/attributes", `{"pins":["pin:1","pin:2"],"embeddings":true}`, 200, `"embedding":[0.5,1]`),
	row("POST /v1/features/attributes", `{"pin":"pin:1"}`, 400, `unknown field \"pin\"`),
	row("POST /v1/features/attributes", `{}`, 400, `no pins`),
	row("POST /v1/features/try", goodTrial+`}`, 200, `"values":{"user:a":{"interests":{"interest:tea":2}}}`),
	row("POST /v1/features/try", goodTrial+`,"pins":["pin:1"],"pairs":[["user:a","pin:1"]],"at":"2026-11-20T10:00:00Z"}`, 200, ""),
	row("POST /v1/features/try", `{"definitions":""}`, 400, `unknown field \"definitions\"`),
	row("POST /v1/features/try", `{}`, 400, `"errors":["definition:1: no features`),
}

var insightRows = []exchange{
	row("GET /v1/insights/growth?days=7", "", 200, `{"days":[{"day":"2026-11-20","new":1`),
	row("GET /v1/insights/growth?days=week", "", 400, "want a whole number"),
	row("GET /v1/insights/growth?days=91", "", 400, "want 1 to 90"),
	row("GET /v1/insights/xd28s", "", 200, `"users":7`),
	row("GET /v1/insights/xd28s", "", 200, "").but("without a part", 503, "the insights cannot be read at the moment", func(a *exchange) { a.fail = schemas.ErrNotOwner }),
	row("GET /v1/insights/retention?weeks=2", "", 200, `"active":[4,2]`),
	row("GET /v1/insights/funnel?steps=view,save&within=2h&days=3", "", 200, `"verb":"view"`),
	row("GET /v1/insights/funnel?steps=view,nod", "", 400, `unknown verb \"nod\"`),
	row("GET /v1/insights/funnel", "", 400, "unknown verb"),
	row("GET /v1/insights/funnel?steps=view&within=day", "", 400, "want a duration"),
	row("GET /v1/insights/experiments", "", 200, `"verb":"click","count":0,"per_item":{"value":0.3`),
	row("GET /v1/insights/experiments?days=3&actions=save,hide", "", 200, `"verb":"save"`),
	row("GET /v1/insights/experiments?days=36", "", 400, "want 1 to 35"),
	row("GET /v1/insights/experiments?actions=nod", "", 400, `actions: unknown verb \"nod\"`),
	row("GET /v1/insights/popularity?limit=5", "", 200, `"interest:tea"`),
}

func eventRows() []exchange {
	post := func(body string, code int, says string) exchange { return row("POST /v1/events", body, code, says) }
	line := func(old, new string) string { return strings.Replace(save, old, new, 1) }
	return []exchange{
		post(save, 202, `{"accepted":1}`),
		post("\r\n\n \t\n"+save+"\r\n\n", 202, `{"accepted":1}`),
		post("", 400, "has no event"),
		post("\n\n", 400, "has no event"),
		post(save+"\nnonsense\n"+save+"\n"+line("save", "dance")+"\n", 400, `"errors":["line 2: not JSON`),
		post(save+"\n\n{}", 400, `"detail":"line 3: stream: missing`),
		post(line("save", "dance"), 400, "unknown verb"),
		post(line("10:00:00.123", "12:05:01"), 400, "5m1s ahead"),
		post(line("10:00:00.123", "12:05:00"), 202, ""),
		post(line("pin:42", "pin"), 400, "kind:name"),
		post(line("actions", "acts"), 400, "unknown stream"),
		post(line("e-81", "\xff"), 400, "UTF-8"),
		post(line("pin:42", `pin:\u0000`), 400, "line 1: object"),
		post(strings.Repeat("[", 100_000), 400, "line 1: "),
		post(line("e-81", strings.Repeat("x", 1<<20))+"\n"+line("save", "dance"), 400, `"errors":["line 1: longer than 1048576 bytes","line 2: verb`),
		post(strings.Repeat(save+"\n", 20_000), 202, `{"accepted":20000}`),
		post(strings.Repeat(save+"\n", 20_001), 413, "more than 20000 events"),
		post(strings.Repeat("x\n", 20_001), 413, "more than 20000 events"),
		post(strings.Repeat(line("e-81", strings.Repeat("x", 128))+strings.Repeat(" ", 200)+"\n", 10_000), 202, ""), // 4 MiB
	}
}

var deadLetterRows = []exchange{
	row("GET /v1/dead-letters", "", 200, `"key":"cGluOjE=","value":"AP8="`),
	row("GET /v1/dead-letters?limit=1", "", 200, `{"dead_letters":[{"dead_letter_partition":3,"dead_letter_offset":4,"retried":true,"attempts":2,"first_partition":5,"first_offset":3,"topic":"actions"`),
	row("GET /v1/dead-letters?limit=1000", "", 200, "the dead letter cannot be decoded: no record"),
	row("GET /v1/dead-letters?limit=1001", "", 400, "1 to 1000"),
	row("GET /v1/dead-letters/kinds", "", 200, `"rate":2.5,"priority":0,"states":{"done":1,"parked":0,"sent":0,"waiting":3},"next":"2026-11-20T12:00:00Z"}`),
	row("GET /v1/dead-letters/kinds", "", 200, `"operator":"ann","states":{"done":1,"parked":0,"sent":0,"waiting":3},"next":null}`),
	row("GET /v1/dead-letters/retries?kind=actions/objects/a&state=waiting&limit=7", "", 200, `{"dead_letters":[{"kind":"actions/objects/a","topic":"actions","partition":0,"offset":7,"group":"objects","reason":"odd","state":"waiting","attempts":7,"since":"2026-11-20T12:00:00Z","due":"2026-11-20T12:00:00Z"}`),
	row("GET /v1/dead-letters/retries", "", 200, `"why":"because","since":"2026-11-20T12:00:00Z","due":null}`),
	row("GET /v1/dead-letters/retries?kind=a&state=b&limit=1001", "", 400, "want topic/group/words"),
	row("GET /v1/dead-letters/retries?state=other", "", 400, "want one of waiting, sent, done, parked"),
	row("POST /v1/dead-letters/limits", `{"kind":"actions","rate":0,"priority":2,"operator":"ann"}`, 200, `{"kind":"actions","rate":0,"priority":2}`),
	row("POST /v1/dead-letters/limits", `{"kind":"actions"}`, 200, `"rate":null`),
	row("POST /v1/dead-letters/limits", `{"kind":"nothing","rate":1}`, 400, "there is no topic"),
	row("POST /v1/dead-letters/limits", `{"rate":-1}`, 400, "want a number from 0 to 10000"),
	row("POST /v1/dead-letters/limits", `{}`, 400, "want a kind"),
	row("POST /v1/dead-letters/limits", `{"kind":"actions","speed":1}`, 400, ""),
	row("POST /v1/dead-letters/retry", "", 200, `{"published":2,"topics":{"actions":2},"skipped":1}`),
}

const (
	decisions = "POST /v1/dictionary/decisions"
	rejection = `{"term":"Oolong","state":"rejected","reason":"a brand","operator":"ann"}`
)

var interestRows = []exchange{
	row("GET /v1/dictionary?limit=7", "", 200, `{"terms":[{"term":"oolong tea","state":"candidate","score":1.5,"pins":7,"people":3,"recent":0.5,"decided":null}]}`),
	row("GET /v1/dictionary?state=rejected", "", 200, `"reason":"a brand","operator":"ann","decided":"2026-11-20T12:00:00Z"`),
	row("GET /v1/dictionary?state=other", "", 400, "want one of candidate"),
	row("GET /v1/users/user:7/interests?limit=5", "", 200, `{"interests":[{"interest":"interest:tea","strength":2,"share":1,"evidence":[{"pin":"pin:1","verb":"save","weight":5,"time":"2026-11-20T12:00:00Z"}]},{"interest":"interest:none","strength":0,"share":0,"evidence":[]}]}`),
	row("GET /v1/users/user:7/interests?limit=1001", "", 400, "1 to 1000"),
	row("GET /v1/interests/interest:tea/engagement?days=9", "", 200, `{"source":"following","counts":{"impression":120,"save":9}}]}`),
	row("GET /v1/interests/interest:tea/engagement?days=0", "", 400, "1 to 400"),
	row(decisions, rejection, 200, `{"term":"oolong","state":"rejected","score":0,"pins":0,"people":0,"recent":0,"reason":"a brand","operator":"ann","decided":"2026-11-20T12:00:00Z"}`),
	row(decisions, `{"term":"oolong","state":"accepted"}`, 200, `"interest":"interest:oolong"`),
	row(decisions, `{"term":"oolong","state":"accepted","interest":"interest:tea"}`, 200, `"interest":"interest:tea"`),
	row(decisions, `{"term":"oolong","state":"merged","into":"Tea"}`, 200, `"into":"tea"`),
	row(decisions, `{"term":"oolong","state":"candidate"}`, 200, `"state":"candidate"`),
	row(decisions, `{"term":"oolong","state":"candidate","time":"2026-11-20T10:59:59Z"}`, 200, `"decided":"2026-11-20T10:59:59Z"`),
	row(decisions, `{"term":"reopened","state":"accepted","time":"2026-11-20T10:59:59Z"}`, 409, "reopened\\\" is candidate since 2026-11-20T11:00:00Z"),
	row(decisions, `{"term":"reopened","state":"accepted","time":"2026-11-20T11:00:00Z"}`, 200, `"decided":"2026-11-20T11:00:00Z"`),
	row(decisions, `{"term":"oolong","state":"candidate","time":"2026-11-20T12:05:00Z"}`, 200, ""),
	row(decisions, `{"term":"oolong","state":"candidate","time":"2026-11-20T12:05:01Z"}`, 400, "5m0s ahead"),
	row(decisions, `{"term":"oolong","state":"rejected"}`, 400, "reason is missing"),
	row(decisions, `{"term":"oolong","state":"merged","into":"oolong"}`, 400, "want another term"),
	row(decisions, `{"term":"Sale","state":"accepted"}`, 400, `term \"sale\" is blocked by the configuration (interests.blocked_terms, interests.stop_words): advertising`),
	row(decisions, `{"term":"sale","state":"merged","into":"tea"}`, 400, `term \"sale\" is blocked`),
	row(decisions, `{"term":"tea","state":"merged","into":"Sale"}`, 400, `into \"sale\" is blocked`),
	row(decisions, `{"term":"sale","state":"rejected","reason":"advertising"}`, 200, `"state":"rejected"`),
	row(decisions, `{"term":"sale","state":"candidate"}`, 200, `"state":"candidate"`),
	row(decisions, `{"state":"blocked"}`, 400, "want one of accepted"),
	row(decisions, `{"term":"a","state":"accepted","interest":"tea"}`, 400, "interest:"),
}

var operationRows = []exchange{
	row("GET /v1/config?changed=true", "", 200, `{}`),
	row("GET /v1/config?changed=1", "", 400, "true, false"),
	row("GET /v1/config", "", 200, `{"pools":{"max_candidates":600}}`),
	row("GET /v1/status", "", 200, `"version":"v1"`),
	row("GET /v1/caller", "", 200, `"authentication":false`),
	row("GET /v1/openapi.json", "", 200, `"openapi": "3.1.0"`),
	row("GET /docs", "", 200, "the console"),
	row("GET /healthz", "", 200, `{"status":"alive"}`),
	row("GET /readyz", "", 200, `{"ready":true,"missing":[]}`),
	row("GET /metrics", "", 200, ""),
}

// strayRows are requests without a route.
var strayRows = []exchange{
	row("GET /", "", 200, "the console"),
	row("POST /", "", 405, ""),
	row("GET /v1/nothing", "", 404, "/v1/openapi.json"),
	row("GET /v1/users/user:a/feed/new/x", "", 404, ""),
	row("DELETE /v1/users/user:a/feed", "", 405, ""),
	row("PUT /v1/features", "", 405, ""),
	row("GET /v1/events", "", 405, ""),
	row("POST /metrics", "", 405, ""),
	row("OPTIONS /v1/status", "", 405, ""),
	row("BREW /v1/status", "", 405, ""),
}

// specialExchanges are requests in special circumstances.
func specialExchanges() []exchange {
	uncertain := &topics.PublishError{Acknowledged: 1, Events: 2, Err: context.DeadlineExceeded}
	events := row("POST /v1/events", save, 0, "")
	return []exchange{
		row("GET /", "", 0, "").but("no console", 404, "", func(a *exchange) { a.change = func(_ *Config, d *Deps) { d.Console = nil } }),
		row("GET /docs", "", 0, "").but("no console", 404, "", func(a *exchange) {
			a.route, a.change = "", func(_ *Config, d *Deps) { d.Console = nil }
		}),
		row("GET /readyz", "", 0, "").but("not ready", 503, `{"ready":false,"missing":["pools is waiting"]}`,
			func(a *exchange) { a.missing = []string{"pools is waiting"} }),
		row("GET /metrics", "", 0, "").but("too many scrapes", 503, "", func(a *exchange) {
			a.prepare = func(s *Server) {
				for s.gates.Enter(string(scraping)) {
				}
			}
		}),
		row("POST /v1/dead-letters/retry", "", 0, "").but("no permission to write the topic", 500, "Write on topic deliveries", func(a *exchange) {
			a.fail = fmt.Errorf("retry dead letters: %w", &TooLongError{"deliveries"})
		}),
		events.but("broker unavailable", 503, "send them again", func(a *exchange) { a.fail = fmt.Errorf("x: %w", uncertain) }),
		events.but("too many bytes of bodies", 503, "bytes of request bodies", func(a *exchange) {
			a.body = strings.Repeat(" ", 1<<20) + save
			a.change = func(c *Config, _ *Deps) { c.MaxEventsBytes, c.MaxInflightBytes = 2<<20, 2<<20 }
			a.prepare = func(s *Server) { _ = s.lines.Share("").Grow(1 << 20) }
		}),
	}
}

// guarded returns a request with other tokens.
func guarded(good exchange, r route) []exchange {
	if r.access == (access{}) {
		return nil
	}
	return []exchange{
		withToken(good, "", 401, "requires"), withToken(good, "forged", 401, "it is unknown"), withToken(good, "unavailable", 503, "the key set has not been read"),
		withToken(good, "neither", 403, "identifies no caller: its subject"), withToken(good, "none", 403, "requires"),
		withToken(good, "all", good.code, ""), withToken(good, "again", 429, "above its request rate"),
	}
}

// openExchanges are requests with tokens for the calls that need none.
func openExchanges() []exchange {
	var all []exchange
	for _, open := range []exchange{first("GET", "/v1/openapi.json"), first("GET", "/docs"), first("GET", "/v1/caller")} {
		for _, token := range []string{"forged", "unavailable", "neither"} {
			all = append(all, withToken(open, token, 200, strings.ReplaceAll(open.says, "false", "true")))
		}
		all = append(all, open.but("too many requests of one address", 429, "", func(a *exchange) {
			a.change = func(c *Config, d *Deps) { authenticated(c, d); c.Limits.UserRate, c.Limits.UserBurst = 0.5, 1 }
			a.prepare = func(s *Server) { s.callers.Address("192.0.2.1:1234") } // the address of httptest
		}))
	}
	return all
}

// withToken returns a with a token: "none" has no scopes, "all" has every scope, "again" exceeds its rate.
func withToken(a exchange, token string, code int, says string) exchange {
	return a.but(fmt.Sprintf("token %q", token), code, says, func(a *exchange) {
		if token != "" {
			a.header = append(slices.Clone(a.header), "Authorization", "Bearer "+token)
		}
		a.change = func(c *Config, d *Deps) {
			k := someTokens()
			k["none"], k["all"] = auth.Caller{Subject: "none"}, auth.Caller{Subject: "all", Scopes: auth.Scopes()}
			k["again"] = k["all"]
			d.Auth = k
			if token == "again" {
				c.Limits.ServiceRate, c.Limits.ServiceBurst = 0.5, 1
			}
		}
		if token == "again" {
			a.prepare = func(s *Server) { s.callers.Service("all") }
		}
	})
}
