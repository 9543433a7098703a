package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/serving/auth"
	"github.com/smartfeed/smartfeed/serving/feature"
	"github.com/smartfeed/smartfeed/topics"
)

const save = `{"stream":"actions","id":"e-81","time":"2026-11-20T10:00:00.123Z","actor":"user:7","verb":"save","object":"pin:42"}`

// asking is one request and the expected answer.
type asking struct {
	name         string
	route        string // of the document; "": none
	method, path string
	header       []string
	body         string
	fakes        fakesMaker
	change       func(*Config, *Deps)
	prepare      func(*Server)
	slow, gone   bool // the end of the body never arrives; its sender has disconnected
	plain        bool // over a connection without deadlines
	code         int
	says         string // contained in the answer
}

// classes are all classes of requests.
var classes = append(auth.Scopes(), access{}.class(), peerClass)

// fill takes every place of the server.
func fill(s *Server) {
	for _, class := range classes {
		for s.gates.Enter(class) {
		}
	}
	s.streams.TryAcquire(int64(s.cfg.MaxStreams))
	s.trials.TryAcquire(maxTrials)
}

type fakesMaker func() *fakes

func broken(err error) fakesMaker { return func() *fakes { return &fakes{fail: err} } }

func lacking() *fakes { return &fakes{missing: []string{"pools is waiting"}} }

var askings = slices.Concat(plainAskings, guarded(plainAskings), unchanged(plainAskings))

// plainAskings are the requests without authentication.
var plainAskings = slices.Concat(readings(), featureAskings(), attributeAskings(), tryAskings(), insightAskings(), eventAskings(), letterAskings(), interestAskings(), operations(), strays())

// readings are the calls that read by an id.
func readings() []asking {
	var all []asking
	for _, c := range []struct{ route, path, query string }{
		{"/v1/users/{user}/feed", "/v1/users/%s/feed", ""},
		{"/v1/users/{user}/feed/new", "/v1/users/%s/feed/new", ""},
		{"/v1/users/{user}/feed/events", "/v1/users/%s/feed/events", ""},
		{"/v1/users/{user}/feed/why", "/v1/users/%s/feed/why", "?pin=pin:1"},
		{"/v1/users/{user}/feed/state", "/v1/users/%s/feed/state", ""},
		{"/v1/users/{user}/pools", "/v1/users/%s/pools", "?source=interest"},
		{"/v1/users/{user}/pins", "/v1/users/%s/pins", ""},
		{"/v1/boards/{board}/pins", "/v1/boards/%s/pins", ""},
		{"/v1/interests/{interest}/pins", "/v1/interests/%s/pins", ""},
		{"/v1/pins/{pin}/related", "/v1/pins/%s/related", ""},
		{"/v1/interests/{interest}/related", "/v1/interests/%s/related", ""},
	} {
		kind := strings.TrimSuffix(strings.Split(c.path, "/")[2], "s")
		get := func(name, id, query string, code int, says string) asking {
			return asking{name: name, route: c.route, method: "GET", path: fmt.Sprintf(c.path, id) + query, code: code, says: says}
		}
		unknown := "?verbose=1"
		if c.query != "" {
			unknown = c.query + "&verbose=1"
		}
		all = append(all,
			get("good", kind+":a", c.query, 200, ""),
			get("percent-encoded slash", kind+":a%2Fb%3Fc", c.query, 200, ""),
			get("percent-encoded colon and letters", kind+"%3A%C3%A4", c.query, 200, ""),
			get("longest id", kind+":"+strings.Repeat("x", 256-len(kind)-1), c.query, 200, ""),
			get("id too long", kind+":"+strings.Repeat("x", 256-len(kind)), c.query, 400, "at most 256"),
			get("zero byte", kind+":a%00", c.query, 400, "control character"),
			get("no UTF-8", kind+":%ff", c.query, 400, "UTF-8"),
			get("no kind", "a", c.query, 400, "kind:name"),
			get("no name", kind+":", c.query, 400, "no name"),
			get("another kind", another(kind), c.query, 400, "want "+kind),
			get("unknown parameter", kind+":a", unknown, 400, `no parameter \"verbose\"`),
			get("malformed query", kind+":a", "?limit=%zz", 400, "malformed"),
		)
		failing := get("broken", kind+":a", c.query, 500, "its id is in the log")
		failing.fakes = broken(errBroken)
		late := get("late", kind+":a", c.query, 503, "")
		late.fakes = broken(fmt.Errorf("read: %w", context.DeadlineExceeded))
		full := get("no place", kind+":a", c.query, 503, "which is the most")
		full.prepare = fill
		switch {
		case strings.HasSuffix(c.path, "/events"): // a stream continues without counts
			failing.fakes, failing.plain = nil, true
			all = append(all, failing, full)
		case strings.HasSuffix(c.path, "/new"), strings.HasSuffix(c.path, "/pools"), strings.HasSuffix(c.path, "/why"), strings.HasSuffix(c.path, "/state"):
			failing.change, failing.fakes = func(_ *Config, d *Deps) { d.Feed = struct{ Feed }{} }, nil
			late.says = "cannot be read"
			all = append(all, failing, late, full)
		default:
			all = append(all, failing, late, full)
		}
	}
	return append(all, limits()...)
}

// another returns an id of another kind.
func another(kind string) string {
	if kind == schemas.KindPin {
		return "user:1"
	}
	return "pin:1"
}

// limits are requests with the parameters of a page.
func limits() []asking {
	get := func(name, route, path string, code int, says string) asking {
		return asking{name: name, route: route, method: "GET", path: path, code: code, says: says}
	}
	const (
		home, homePath   = "/v1/users/{user}/feed", "/v1/users/user:a/feed"
		pool, poolPath   = "/v1/users/{user}/pools", "/v1/users/user:a/pools"
		why, whyPath     = "/v1/users/{user}/feed/why", "/v1/users/user:a/feed/why"
		state, statePath = "/v1/users/{user}/feed/state", "/v1/users/user:a/feed/state"
		pins, pinsPath   = "/v1/boards/{board}/pins", "/v1/boards/board:a/pins"
	)
	all := []asking{
		get("pool of 1000", pool, poolPath+"?source=x&limit=1000", 200, `"total":7`),
		get("pool of 1001", pool, poolPath+"?source=x&limit=1001", 400, "1 to 1000"),
		get("pool without source", pool, poolPath, 400, "source is missing"),
		get("source with a zero byte", pool, poolPath+"?source=a%00", 400, "no name of a source"),
		get("source too long", pool, poolPath+"?source="+strings.Repeat("x", 65), 400, "no name of a source"),
		get("times beyond RFC 3339", pool, poolPath+"?source=x", 200, `"time":"9999-12-31T23:59:59.999999Z"`),
		get("why without a pin", why, whyPath, 400, "pin is missing"),
		get("why of no pin", why, whyPath+"?pin=user:1", 400, "want pin:"),
		get("why two pins", why, whyPath+"?pin=pin:1&pin=pin:2", 400, "pin is given 2 times"),
		get("why in another feed", why, whyPath+"?pin=pin:1&feed=plain", 200, `"feed":"plain"`),
		get("why in an unknown feed", why, whyPath+"?pin=pin:1&feed=other", 400, "unknown feed"),
		get("why a pin that was shown", why, whyPath+"?pin=pin:shown", 200, `"fate":"shown","reason":"block"`),
		get("state", state, statePath, 200, `"held":[{"pin":"pin:1","reason":"deferred","since":"2026-11-20T12:00:00Z"},{"pin":"pin:2","reason":"weak"}]`),
		get("state of nothing", state, statePath+"?feed=plain", 200, `"sources":[],"held":[],"affinities":[],"degraded":[]`),
		get("state of an unknown feed", state, statePath+"?feed=other", 400, "unknown feed"),
		get("named feed", home, homePath+"?feed=plain", 200, ""),
		get("unknown feed", home, homePath+"?feed=other", 400, "unknown feed"),
		get("next page", home, homePath+"?cursor=good&limit=3", 200, `"next":null`),
		get("forged cursor", home, homePath+"?cursor=forged", 400, "bad cursor"),
		get("next page of a list", pins, pinsPath+"?cursor=good&limit=3", 200, `"next":null`),
		get("next page of a user's", "/v1/users/{user}/pins", "/v1/users/user:a/pins?cursor=good&limit=3&viewer=user:b", 200, ""),
		get("next page of an interest's", "/v1/interests/{interest}/pins", "/v1/interests/interest:a/pins?cursor=good&limit=3&viewer=user:b", 200, ""),
		get("next page of a board's", "/v1/boards/{board}/pins", "/v1/boards/board:a/pins?cursor=good&limit=3&viewer=user:b", 200, ""),
		get("so many related pins", "/v1/pins/{pin}/related", "/v1/pins/pin:a/related?limit=3&viewer=user:b", 200, ""),
		get("so many related interests", "/v1/interests/{interest}/related", "/v1/interests/interest:a/related?limit=3", 200, ""),
		get("forged cursor of a list", pins, pinsPath+"?cursor=forged", 400, "bad cursor"),
		get("every problem", home, "/v1/users/pin:1/feed?limit=0&x=1", 400, `"errors":["id \"pin:1\": want user:…","limit \"0\"`),
	}
	for _, at := range []struct{ route, path string }{{home, homePath}, {pins, pinsPath}} {
		all = append(all,
			get("limit 1", at.route, at.path+"?limit=1", 200, ""),
			get("limit 100", at.route, at.path+"?limit=100", 200, ""),
			get("limit 0", at.route, at.path+"?limit=0", 400, "1 to 100"),
			get("limit 101", at.route, at.path+"?limit=101", 400, "1 to 100"),
			get("limit -1", at.route, at.path+"?limit=-1", 400, "1 to 100"),
			get("limit abc", at.route, at.path+"?limit=abc", 400, `limit \"abc\" is no number`),
			get("limit beyond an int", at.route, at.path+"?limit=99999999999999999999", 400, "is no number"),
			get("limit twice", at.route, at.path+"?limit=1&limit=2", 400, "limit is given 2 times"),
		)
	}
	return all
}

func featureAskings() []asking {
	const good = `{"features":["interests"],"users":["user:a"],"pins":["pin:1"],"pairs":[["user:a","pin:1"]],"at":"2026-11-20T10:00:00Z"}`
	post := func(name, body string, code int, says string) asking {
		return asking{name: name, route: "/v1/features", method: "POST", path: "/v1/features", body: body, code: code, says: says}
	}
	get := func(name, query string, code int, says string) asking {
		return asking{name: name, route: "/v1/features", method: "GET", path: "/v1/features" + query, code: code, says: says}
	}
	with := func(a asking, change func(*asking)) asking {
		change(&a)
		return a
	}
	return []asking{
		get("definitions", "", 200, `"name":"interests"`),
		get("definitions with a parameter", "?x", 400, "no parameter"),
		with(get("definitions broken", "", 500, ""), func(a *asking) { a.fakes = broken(errBroken) }),
		with(get("definitions, no place", "", 503, ""), func(a *asking) { a.prepare = fill }),
		post("good", good, 200, `"number":1.25`),
		post("unknown field", `{"features":["a"],"people":[]}`, 400, `unknown field \"people\"`),
		post("no JSON", `features`, 400, "not the JSON object"),
		post("cut", good[:20], 400, "not the JSON object"),
		post("empty", ``, 400, "not the JSON object"),
		post("two objects", good+good, 400, "not the JSON object"),
		post("a list", `[]`, 400, "not the JSON object"),
		post("another type", `{"features":[1]}`, 400, "not the JSON object"),
		post("a pair of three", `{"pairs":[["a","b","c"]]}`, 400, "want [user, pin]"),
		post("a time that is none", `{"at":"yesterday"}`, 400, "not the JSON object"),
		post("deep", strings.Repeat(`{"features":`, 80_000), 400, "not the JSON object"),
		post("what the service refuses", `{}`, 400, `"errors":["features: want at least one name","no users, pins or pairs"]`),
		post("largest body", good+strings.Repeat(" ", 1<<20-len(good)), 200, ""),
		post("body too large", good+strings.Repeat(" ", 1<<20-len(good)+1), 413, "1048576 bytes"),
		with(post("another content type", good, 415, ""), func(a *asking) { a.header = []string{"Content-Type", "text/plain"} }),
		with(post("malformed content type", good, 415, ""), func(a *asking) { a.header = []string{"Content-Type", ";;"} }),
		with(post("packed", good, 415, "packed"), func(a *asking) { a.header = []string{"Content-Encoding", "gzip"} }),
		with(post("content type with a charset", good, 200, ""), func(a *asking) {
			a.header = []string{"Content-Type", "application/json; charset=utf-8"}
		}),
		with(post("from another site", good, 403, "other sites"), func(a *asking) { a.header = []string{"Sec-Fetch-Site", "cross-site"} }),
		with(post("broken", good, 500, ""), func(a *asking) { a.fakes = broken(errBroken) }),
		with(post("slow", good[:20], 408, "in time"), func(a *asking) { a.slow = true }),
		with(post("gone", good[:20], 400, "whole"), func(a *asking) { a.gone = true }),
		with(post("no place", good, 503, ""), func(a *asking) { a.prepare = fill }),
		with(post("parameter", good, 400, "no parameter"), func(a *asking) { a.path += "?users=user:a" }),
	}
}

func attributeAskings() []asking {
	const path, good = "/v1/features/attributes", `{"pins":["pin:1","pin:2"],"embeddings":true}`
	post := func(name, body string, code int, says string, change func(*asking)) asking {
		a := asking{name: name, route: path, method: "POST", path: path, body: body, code: code, says: says}
		if change != nil {
			change(&a)
		}
		return a
	}
	return []asking{
		post("good", good, 200, `"embedding":[0.5,1]`, nil),
		post("unknown field", `{"pin":"pin:1"}`, 400, `unknown field \"pin\"`, nil),
		post("what the service refuses", `{}`, 400, `no pins`, nil),
		post("body too large", good+strings.Repeat(" ", 1<<20), 413, "1048576 bytes", nil),
		post("another content type", good, 415, "", func(a *asking) { a.header = []string{"Content-Type", "text/plain"} }),
		post("from another site", good, 403, "", func(a *asking) { a.header = []string{"Sec-Fetch-Site", "cross-site"} }),
		post("broken", good, 500, "", func(a *asking) { a.fakes = broken(errBroken) }),
		post("slow", good[:20], 408, "in time", func(a *asking) { a.slow = true }),
		post("no place", good, 503, "", func(a *asking) { a.prepare = fill }),
	}
}

func tryAskings() []asking {
	const path, good = "/v1/features/try", `{"definition":"{name: a, entity: user, aggregate: count}","users":["user:a"]}`
	post := func(name, body string, code int, says string, change func(*asking)) asking {
		a := asking{name: name, route: path, method: "POST", path: path, body: body, code: code, says: says}
		if change != nil {
			change(&a)
		}
		return a
	}
	return []asking{
		post("good", good, 200, `"values":{"user:a":{"interests":{"interest:tea":2}}}`, nil),
		post("of everything", strings.TrimSuffix(good, "}")+`,"pins":["pin:1"],"pairs":[["user:a","pin:1"]],"at":"2026-11-20T10:00:00Z"}`, 200, "", nil),
		post("unknown field", `{"definitions":""}`, 400, `unknown field \"definitions\"`, nil),
		post("what the service refuses", `{}`, 400, `"errors":["definition:1: no features`, nil),
		post("body too large", good+strings.Repeat(" ", 1<<20), 413, "1048576 bytes", nil),
		post("another content type", good, 415, "", func(a *asking) { a.header = []string{"Content-Type", "text/plain"} }),
		post("from another site", good, 403, "", func(a *asking) { a.header = []string{"Sec-Fetch-Site", "cross-site"} }),
		post("broken", good, 500, "", func(a *asking) { a.fakes = broken(errBroken) }),
		post("slow", good[:20], 408, "in time", func(a *asking) { a.slow = true }),
		post("no place", good, 503, "", func(a *asking) { a.prepare = fill }),
	}
}

func insightAskings() []asking {
	var all []asking
	for _, c := range []struct{ name, query, says string }{
		{"growth", "days=7", `"new":1`}, {"xd28s", "", `"users":7`}, {"retention", "weeks=2", `"active":[4,2]`},
		{"funnel", "steps=view,save&within=2h&days=3", `"verb":"view"`}, {"popularity", "limit=5", `"interest:tea"`},
	} {
		route := "/v1/insights/" + c.name
		get := func(name, query string, code int, says string, change func(*asking)) {
			a := asking{name: name, route: route, method: "GET", path: route + "?" + query, code: code, says: says}
			if change != nil {
				change(&a)
			}
			all = append(all, a)
		}
		get("good", c.query, 200, c.says, nil)
		get("unknown parameter", c.query+"&x=1", 400, "no parameter", nil)
		get("broken", c.query, 500, "", func(a *asking) { a.fakes = broken(errBroken) })
		get("no place", c.query, 503, "", func(a *asking) { a.prepare = fill })
		switch c.name {
		case "growth":
			get("no number", "days=week", 400, "no whole number", nil)
			get("too many", "days=91", 400, "want 1 to 90", nil)
		case "funnel":
			get("unknown verb", "steps=view,nod", 400, `unknown verb \"nod\"`, nil)
			get("no steps", "", 400, "unknown verb", nil)
			get("no duration", "steps=view&within=day", 400, "no duration", nil)
		}
	}
	return all
}

func eventAskings() []asking {
	post := func(name, body string, code int, says string) asking {
		return asking{name: name, route: "/v1/events", method: "POST", path: "/v1/events", body: body, code: code, says: says}
	}
	with := func(a asking, change func(*asking)) asking {
		change(&a)
		return a
	}
	line := func(old, new string) string { return strings.Replace(save, old, new, 1) }
	uncertain := &topics.PublishError{Certain: 1, Events: 2, Err: context.DeadlineExceeded}
	return []asking{
		post("one line", save, 202, `{"accepted":1}`),
		post("blank lines and carriage returns", "\r\n\n \t\n"+save+"\r\n\n", 202, `{"accepted":1}`),
		post("empty", "", 400, "holds no event"),
		post("blank", "\n\n", 400, "holds no event"),
		post("bad lines", save+"\nnonsense\n"+save+"\n"+line("save", "dance")+"\n", 400, `"errors":["line 2: not JSON`),
		post("one bad line", save+"\n\n{}", 400, `"detail":"line 3: stream: missing`),
		post("unknown verb", line("save", "dance"), 400, "unknown verb"),
		post("future", line("10:00:00.123", "12:05:01"), 400, "5m1s ahead"),
		post("not quite the future", line("10:00:00.123", "12:05:00"), 202, ""),
		post("malformed id", line("pin:42", "pin"), 400, "kind:name"),
		post("unknown stream", line("actions", "acts"), 400, "unknown stream"),
		post("no UTF-8", line("e-81", "\xff"), 400, "UTF-8"),
		post("line too long, and one after it", line("e-81", strings.Repeat("x", 1<<20))+"\n"+line("save", "dance"), 400,
			`"errors":["line 1: longer than 1048576 bytes","line 2: verb`),
		post("20,000 lines", strings.Repeat(save+"\n", 20_000), 202, `{"accepted":20000}`),
		post("20,001 lines", strings.Repeat(save+"\n", 20_001), 413, "more than 20000 events"),
		post("20,001 lines, all bad", strings.Repeat("x\n", 20_001), 413, "more than 20000 events"),
		post("10,000 lines of 4 MiB", strings.Repeat(line("e-81", strings.Repeat("x", 128))+strings.Repeat(" ", 200)+"\n", 10_000), 202, ""),
		post("10 MB", strings.Repeat(save+strings.Repeat(" ", 1<<20-200)+"\n", 10), 413, "larger than 8388608 bytes"),
		with(post("10 MB of unknown length", strings.Repeat(save+strings.Repeat(" ", 1<<20-200)+"\n", 10), 413, "larger"),
			func(a *asking) { a.header = []string{"Transfer-Encoding", "chunked"} }),
		with(post("another content type", save, 415, "application/x-ndjson"), func(a *asking) {
			a.header = []string{"Content-Type", "application/json"}
		}),
		with(post("right content type", save, 202, ""), func(a *asking) { a.header = []string{"Content-Type", "application/x-ndjson"} }),
		with(post("packed", save, 415, "packed"), func(a *asking) { a.header = []string{"Content-Encoding", "gzip"} }),
		with(post("from another site", save, 403, ""), func(a *asking) { a.header = []string{"Origin", "https://evil.example"} }),
		with(post("from the console", save, 202, ""), func(a *asking) {
			a.header = []string{"Sec-Fetch-Site", "same-origin", "Origin", "http://127.0.0.1:8080"}
		}),
		with(post("broker away", save, 503, "send them again"), func(a *asking) { a.fakes = broken(fmt.Errorf("x: %w", uncertain)) }),
		with(post("cannot be encoded", save, 500, ""), func(a *asking) { a.fakes = broken(errBroken) }),
		with(post("slow", save, 408, "in time"), func(a *asking) { a.slow = true }),
		with(post("gone", save, 400, "whole"), func(a *asking) { a.gone = true }),
		with(post("no place", save, 503, ""), func(a *asking) { a.prepare = fill }),
		with(post("no room for the body", strings.Repeat(" ", 1<<20)+save, 503, "bytes of bodies"), func(a *asking) {
			a.change = func(c *Config, _ *Deps) { c.MaxEventsBytes, c.MaxBodiesBytes = 2<<20, 2<<20 }
			a.prepare = func(s *Server) { _ = s.lines.Share("").Grow(1 << 20) }
		}),
		with(post("parameter", save, 400, "no parameter"), func(a *asking) { a.path += "?sync=1" }),
	}
}

func letterAskings() []asking {
	const list, retry = "/v1/deadletters", "/v1/deadletters/retry"
	const kinds, retries, limits = list + "/kinds", list + "/retries", list + "/limits"
	body := func(text string) func(*asking) { return func(a *asking) { a.body = text } }
	ask := func(method, route, name, query string, code int, says string, change func(*asking)) asking {
		a := asking{name: name, route: route, method: method, path: route + query, code: code, says: says}
		if change != nil {
			change(&a)
		}
		return a
	}
	fail := func(a *asking) { a.fakes = broken(errBroken) }
	none := func(a *asking) { a.change = func(_ *Config, d *Deps) { d.DeadLetters = struct{ DeadLetters }{} } }
	foreign := func(a *asking) { a.header = []string{"Sec-Fetch-Site", "cross-site"} }
	full := func(a *asking) { a.prepare = fill }
	return []asking{
		ask("GET", list, "good", "", 200, `"key":"cGluOjE=","value":"AP8="`, nil),
		ask("GET", list, "the newest", "?limit=1", 200, `{"letters":[{"letter_partition":3,"letter_offset":4,"retried":true,"attempts":2,"first_partition":5,"first_offset":3,"topic":"actions"`, nil),
		ask("GET", list, "unreadable", "?limit=1000", 200, "the letter cannot be read: no record", nil),
		ask("GET", list, "too many", "?limit=1001", 400, "1 to 1000", nil),
		ask("GET", list, "broker away", "", 503, "cannot be read", fail),
		ask("GET", list, "broken", "", 500, "", none),
		ask("GET", list, "no place", "", 503, "", full),
		ask("GET", kinds, "good", "", 200, `"rate":2.5,"priority":0,"states":{"done":1,"parked":0,"sent":0,"waiting":3},"next":"2026-11-20T12:00:00Z"}`, nil),
		ask("GET", kinds, "of nothing that waits", "", 200, `"operator":"ann","states":{"done":1,"parked":0,"sent":0,"waiting":3},"next":null}`, nil),
		ask("GET", kinds, "parameter", "?x=1", 400, "no parameter", nil),
		ask("GET", kinds, "away", "", 503, "cannot be read", fail),
		ask("GET", kinds, "broken", "", 500, "", none),
		ask("GET", kinds, "no place", "", 503, "", full),
		ask("GET", retries, "good", "?kind=actions/objects/a&state=waiting&limit=7", 200, `{"letters":[{"kind":"actions/objects/a","topic":"actions","partition":0,"offset":7,"group":"objects","reason":"odd","state":"waiting","attempts":7,"since":"2026-11-20T12:00:00Z","due":"2026-11-20T12:00:00Z"}`, nil),
		ask("GET", retries, "parked", "", 200, `"why":"because","since":"2026-11-20T12:00:00Z","due":null}`, nil),
		ask("GET", retries, "all wrong", "?kind=a&state=b&limit=1001", 400, "no topic/group/words", nil),
		ask("GET", retries, "no state", "?state=gone", 400, "waiting, sent, done and parked", nil),
		ask("GET", retries, "away", "", 503, "cannot be read", fail),
		ask("GET", retries, "broken", "", 500, "", none),
		ask("GET", retries, "no place", "", 503, "", full),
		ask("POST", limits, "good", "", 200, `{"kind":"actions","rate":0,"priority":2}`, body(`{"kind":"actions","rate":0,"priority":2,"operator":"ann"}`)),
		ask("POST", limits, "as configured", "", 200, `"rate":null`, body(`{"kind":"actions"}`)),
		ask("POST", limits, "no topic", "", 400, "there is no topic", body(`{"kind":"nothing","rate":1}`)),
		ask("POST", limits, "all wrong", "", 400, "no number from 0 to 10000", body(`{"rate":-1}`)),
		ask("POST", limits, "no kind", "", 400, "kind is missing", body(`{}`)),
		ask("POST", limits, "unknown field", "", 400, "", body(`{"kind":"actions","speed":1}`)),
		ask("POST", limits, "from another site", "", 403, "", func(a *asking) { body(`{"kind":"actions"}`)(a); foreign(a) }),
		ask("POST", limits, "too large", "", 413, "", body(`{"kind":"`+strings.Repeat("x", 2<<20)+`"}`)),
		ask("POST", limits, "of a wrong type", "", 415, "", func(a *asking) { body(`a`)(a); a.header = []string{"Content-Type", "text/plain"} }),
		ask("POST", limits, "slow", "", 408, "", func(a *asking) { body(`{`)(a); a.slow = true }),
		ask("POST", limits, "away", "", 503, "set it again", func(a *asking) { body(`{"kind":"actions"}`)(a); fail(a) }),
		ask("POST", limits, "broken", "", 500, "", func(a *asking) { body(`{"kind":"actions"}`)(a); none(a) }),
		ask("POST", limits, "no place", "", 503, "", full),
		ask("POST", retry, "good", "", 200, `{"published":2,"topics":{"actions":2},"skipped":1}`, nil),
		ask("POST", retry, "parameter", "?limit=1", 400, "no parameter", nil),
		ask("POST", retry, "from another site", "", 403, "", foreign),
		ask("POST", retry, "broker away", "", 503, "retry again", fail),
		ask("POST", retry, "of a topic that this process may not write", "", 500, "Write on topic deliveries", func(a *asking) {
			a.fakes = broken(fmt.Errorf("retry dead letters: %w", &TooLongError{errors.New("allow it Write on topic deliveries")}))
		}),
		ask("POST", retry, "broken", "", 500, "", none),
		ask("POST", retry, "no place", "", 503, "", full),
	}
}

func operations() []asking {
	get := func(route, name string, code int, says string, change func(*asking)) asking {
		a := asking{name: name, route: route, method: "GET", path: route, code: code, says: says}
		if change != nil {
			change(&a)
		}
		return a
	}
	fail := func(a *asking) { a.fakes = broken(errBroken) }
	full := func(a *asking) { a.prepare = fill }
	parameter := func(a *asking) { a.path += "?x=1" }
	return []asking{
		get("/v1/status", "good", 200, `"version":"v1"`, nil),
		get("/v1/status", "parameter", 400, "", parameter),
		get("/v1/status", "without JSON", 500, "", fail),
		get("/v1/status", "no place", 503, "", full),
		get("/v1/openapi.json", "good", 200, `"openapi": "3.1.0"`, nil),
		get("/v1/openapi.json", "parameter", 400, "", parameter),
		get("/v1/openapi.json", "no place", 503, "", full),
		get("/healthz", "good", 200, `{"status":"alive"}`, nil),
		get("/healthz", "no place", 200, "", full),
		get("/readyz", "good", 200, `{"ready":true,"missing":[],"parts":[]}`, nil),
		get("/readyz", "no place", 200, "", full),
		get("/readyz", "not ready", 503, `{"ready":false,"missing":["pools is waiting"],"parts":[{"part":"pools","state":"recovering","percent":40}]}`, func(a *asking) { a.fakes = lacking }),
		get("/readyz", "broken", 500, "", fail),
		get("/metrics", "good", 200, "", nil),
		get("/metrics", "no place", 200, "", full),
		get("/metrics", "too many scrapes", 503, "", func(a *asking) {
			a.prepare = func(s *Server) { s.scrapes.TryAcquire(maxScrapes) }
		}),
		get("/metrics", "broken", 500, "secret inside", fail),
	}
}

// strays are requests without a route.
func strays() []asking {
	return []asking{
		{name: "console", method: "GET", path: "/", code: 200, says: "the console"},
		{name: "no console", method: "GET", path: "/", code: 404, change: func(_ *Config, d *Deps) { d.Console = nil }},
		{name: "console by POST", method: "POST", path: "/", code: 405},
		{name: "no such call", method: "GET", path: "/v1/nothing", code: 404, says: "/v1/openapi.json"},
		{name: "deeper than a call", method: "GET", path: "/v1/users/user:a/feed/new/x", code: 404},
		{name: "wrong method", method: "DELETE", path: "/v1/users/user:a/feed", code: 405},
		{name: "wrong method of two", method: "PUT", path: "/v1/features", code: 405},
		{name: "GET where there is POST only", method: "GET", path: "/v1/events", code: 405},
		{name: "POST to the metrics", method: "POST", path: "/metrics", code: 405},
		{name: "OPTIONS", method: "OPTIONS", path: "/v1/status", code: 405},
		{name: "invented method", method: "BREW", path: "/v1/status", code: 405},
	}
}

// answered sends the request of a, and returns the answer and its body.
func answered(t *testing.T, a asking) (*http.Response, []byte) {
	t.Helper()
	f := &fakes{}
	if a.fakes != nil {
		f = a.fakes()
	}
	s := listen(t, f, a.change)
	if a.prepare != nil {
		a.prepare(s)
	}
	handler := s.handler()
	if a.plain {
		handler = withoutDeadlines(handler)
	}
	sent := io.Reader(strings.NewReader(a.body))
	switch {
	case a.slow:
		sent = io.MultiReader(sent, iotest.ErrReader(os.ErrDeadlineExceeded))
	case a.gone:
		sent = io.MultiReader(sent, iotest.ErrReader(io.ErrUnexpectedEOF))
	}
	res := askHandler(handler, a.method, a.path, sent, a.header...)
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	if a.code >= 400 && len(f.published) > 0 {
		t.Errorf("%d events were published", len(f.published[0]))
	}
	return res, body
}

func TestAnswers(t *testing.T) {
	for _, a := range askings {
		t.Run(a.method+" "+a.route+" "+a.name, func(t *testing.T) {
			res, body := answered(t, a)
			if res.StatusCode != a.code {
				t.Fatalf("got %d %.300s, want %d", res.StatusCode, body, a.code)
			}
			if !strings.Contains(string(body), a.says) {
				t.Errorf("got %.500s, want %s in it", body, a.says)
			}
			if strings.Contains(string(body), "secret") && a.route != "/metrics" {
				t.Errorf("the answer names insides: %s", body)
			}
			checkHeader(t, a, res)
			if kind := res.Header.Get("Content-Type"); kind == "application/problem+json" {
				checkProblem(t, a.code, body)
			} else if a.code >= 400 && a.code != 503 && a.route != "/metrics" {
				t.Errorf("got a %d of type %q, want a problem document", a.code, kind)
			}
		})
	}
}

// checkHeader checks the headers that every answer has.
func checkHeader(t *testing.T, a asking, res *http.Response) {
	t.Helper()
	if res.Header.Get("X-Request-Id") == "" {
		t.Error("no request id")
	}
	if got := res.Header.Get("Cache-Control"); got != cacheControl(a) && a.path != "/" {
		t.Errorf("Cache-Control: got %q, want %q", got, cacheControl(a))
	}
	if got := res.Header.Get("Retry-After"); (got != "") != (a.code == 503 || a.code == 429) {
		t.Errorf("Retry-After of a %d: got %q", a.code, got)
	}
	if got := res.Header.Get("WWW-Authenticate"); (got != "") != (a.code == 401 || a.code == 403 && a.change != nil) {
		t.Errorf("WWW-Authenticate of a %d: got %q", a.code, got)
	}
	if got := res.Header.Get("Allow"); (got != "") != (a.code == 405) {
		t.Errorf("Allow of a %d: got %q", a.code, got)
	}
}

func checkProblem(t *testing.T, code int, body []byte) {
	t.Helper()
	var p Problem
	if err := json.Unmarshal(body, &p); err != nil {
		t.Fatal(err)
	}
	if p.Status != code || p.Title != http.StatusText(code) || p.Type != "about:blank" || p.Detail == "" {
		t.Errorf("got %+v, want a whole problem of a %d", p, code)
	}
}

func TestAllowNamesMethods(t *testing.T) {
	s := listen(t, &fakes{}, nil)
	for path, want := range map[string]string{
		"/v1/features": "GET, POST, HEAD", "/v1/events": "POST", "/v1/status": "GET, HEAD", "/": "GET, HEAD",
	} {
		if got := ask(s, "PATCH", path, "").Header.Get("Allow"); got != want {
			t.Errorf("%s: got %q, want %q", path, got, want)
		}
	}
}

func TestVisitGetsWhatWasAsked(t *testing.T) {
	f := &fakes{}
	s := listen(t, f, nil)
	ask(s, "GET", "/v1/users/user:a%2Fb/feed", "")
	ask(s, "GET", "/v1/users/user:%C3%A4/feed?limit=7&feed=plain", "")
	ask(s, "GET", "/v1/users/user:a/feed?limit=7&feed=other&cursor=good", "")
	want := []visit{{"user:a/b", "home", 25}, {"user:ä", "plain", 7}}
	if !slices.Equal(f.visits, want) {
		t.Errorf("got %v, want %v", f.visits, want)
	}
}

// A HEAD request shows no pins, so none may count as shown.
func TestHeadIsNoVisit(t *testing.T) {
	f := &fakes{}
	s := listen(t, f, nil)
	res := ask(s, "HEAD", "/v1/users/user:a/feed?feed=plain", "")
	if allow := res.Header.Get("Allow"); res.StatusCode != 405 || allow != "GET" || len(f.visits) > 0 {
		t.Errorf("got %d, Allow %q and the visits %v, want 405, GET and none", res.StatusCode, allow, f.visits)
	}
	if res := ask(s, "HEAD", "/v1/users/user:a/feed?cursor=good", ""); res.StatusCode != 200 {
		t.Errorf("an older page: got %d, want 200", res.StatusCode)
	}
}

func TestPublishesWhatWasSent(t *testing.T) {
	f := &fakes{}
	s := listen(t, f, nil)
	ask(s, "POST", "/v1/events", save+"\n\n"+strings.Replace(save, "e-81", "e-82", 1))
	if len(f.published) != 1 || len(f.published[0]) != 2 {
		t.Fatalf("got %v, want one publication of two", f.published)
	}
	for i, want := range []string{"e-81", "e-82"} {
		if got := f.published[0][i].Event.(*schemas.ActionEvent).ID; got != want {
			t.Errorf("event %d: got %s, want %s", i, got, want)
		}
	}
}

func TestFeaturesRequestArrives(t *testing.T) {
	f := &fakes{}
	s := listen(t, f, nil)
	ask(s, "POST", "/v1/features", `{"features":["interests"],"pairs":[["user:a","pin:1"]],"at":"2026-11-20T10:00:00Z"}`)
	at := now.Add(-2 * time.Hour)
	if len(f.asked) != 1 {
		t.Fatalf("got %v, want one request", f.asked)
	}
	got, want := f.asked[0], feature.Request{Features: []string{"interests"}, Pairs: []feature.UserPin{{User: "user:a", Pin: "pin:1"}}, At: &at}
	if !slices.Equal(got.Features, want.Features) || !slices.Equal(got.Pairs, want.Pairs) || got.At == nil || !got.At.Equal(at) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// Every bad line is listed by number. The total length of the listed problems is limited.
func TestEveryBadLineIsNamed(t *testing.T) {
	s := listen(t, &fakes{}, nil)
	unknown := `{"stream":"pins"` + strings.Repeat(`,"`+strings.Repeat("x", 60)+`%d":1`, 6) + "}\n"
	var body strings.Builder
	for range 15_000 {
		fmt.Fprintf(&body, unknown, 1, 2, 3, 4, 5, 6)
	}
	res := ask(s, "POST", "/v1/events", body.String())
	var p Problem
	if err := json.NewDecoder(res.Body).Decode(&p); err != nil {
		t.Fatal(err)
	}
	total := 0
	for i, e := range p.Errors {
		if !strings.HasPrefix(e, fmt.Sprintf("line %d", i+1)) {
			t.Fatalf("problem %d: got %s", i, e)
		}
		total += len(e)
	}
	if len(p.Errors) != 15_000 || total < maxTold/2 || total > maxTold+15_000*len("line 15000") {
		t.Errorf("got %d problems of %d bytes, want 15000 of about %d", len(p.Errors), total, maxTold)
	}
	if got, want := p.Errors[14_999], "line 15000"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestRequestIDs(t *testing.T) {
	s := listen(t, &fakes{}, nil)
	for name, c := range map[string]struct {
		given string
		kept  bool
	}{
		"own":        {"trace-1/a", true},
		"longest":    {strings.Repeat("x", 64), true},
		"too long":   {strings.Repeat("x", 65), false},
		"with space": {"a b", false},
		"not ASCII":  {"ä", false},
		"none":       {"", false},
	} {
		t.Run(name, func(t *testing.T) {
			got := ask(s, "GET", "/healthz", "", "X-Request-Id", c.given).Header.Get("X-Request-Id")
			if (got == c.given) != c.kept || got == "" {
				t.Errorf("got %q of %q, want it kept: %v", got, c.given, c.kept)
			}
		})
	}
}

func TestPanicIsAProblemOfItsRequest(t *testing.T) {
	var log logged
	broken := true
	s := listen(t, &fakes{}, func(_ *Config, d *Deps) {
		d.Log = log.logger(slog.LevelInfo)
		d.Ready = func() []Lack {
			if broken {
				panic("no such part")
			}
			return nil
		}
	})
	res := ask(s, "GET", "/readyz", "", "X-Request-Id", "mine")
	if res.StatusCode != 500 {
		t.Errorf("got %d, want 500", res.StatusCode)
	}
	for _, want := range []string{"no such part", "request=mine", "answers_test.go"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("got log %s, want %s in it", &log, want)
		}
	}
	broken = false
	if res := ask(s, "GET", "/readyz", ""); res.StatusCode != 200 {
		t.Errorf("next request: got %d, want 200", res.StatusCode)
	}
}

// A rejection under load is not logged, and neither is a caller that has disconnected.
func TestLogHasCausesOnly(t *testing.T) {
	var log logged
	f := &fakes{fail: errBroken}
	s := listen(t, f, func(_ *Config, d *Deps) { d.Log = log.logger(slog.LevelInfo) })
	for range s.cfg.MaxRequests {
		s.gates.Enter(auth.Feed)
	}
	if res := ask(s, "GET", "/v1/users/user:a/feed", ""); res.StatusCode != 503 || strings.Contains(log.String(), "request failed") {
		t.Errorf("no place: got %d and log %s", res.StatusCode, &log)
	}
	for range s.cfg.MaxRequests {
		s.gates.Leave(auth.Feed)
	}
	if res := ask(s, "GET", "/v1/users/user:a/feed", ""); res.StatusCode != 500 || !strings.Contains(log.String(), errBroken.Error()) {
		t.Errorf("broken: got %d and log %s, want the cause in it", res.StatusCode, &log)
	}
}

func TestAccessLogAndMetricsHaveOneShape(t *testing.T) {
	var log logged
	s := listen(t, &fakes{}, func(_ *Config, d *Deps) { d.Log = log.logger(slog.LevelDebug) })
	ask(s, "GET", "/v1/users/user:a/feed?limit=0", "", "X-Request-Id", "mine")
	ask(s, "BREW", "/v1/users/user:a/feed", "")
	for _, want := range []string{
		"msg=request method=GET route=/v1/users/{user}/feed path=/v1/users/user:a/feed code=400 bytes=", "request=mine",
		"method=BREW route=/v1/users/{user}/feed path=/v1/users/user:a/feed code=405",
	} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("got log %s, want %s in it", &log, want)
		}
	}
	metrics, err := io.ReadAll(ask(s, "GET", "/metrics", "").Body)
	if err != nil {
		t.Fatal(err)
	}
	for _, labels := range []string{
		`{code="400",method="GET",route="/v1/users/{user}/feed"}`, `{code="405",method="other",route="/v1/users/{user}/feed"}`,
	} {
		if want := "smartfeed_http_request_seconds_count" + labels + " 1"; !strings.Contains(string(metrics), want) {
			t.Errorf("got %s, want %s in it", metrics, want)
		}
	}
}

func interestAskings() []asking {
	const dictionary, decisions = "/v1/dictionary", "/v1/dictionary/decisions"
	const interests, engagement = "/v1/users/{user}/interests", "/v1/interests/{interest}/engagement"
	ask := func(method, route, name, query string, code int, says string, change func(*asking)) asking {
		path := strings.NewReplacer("{user}", "user:7", "{interest}", "interest:tea").Replace(route)
		a := asking{name: name, route: route, method: method, path: path + query, code: code, says: says}
		if change != nil {
			change(&a)
		}
		return a
	}
	body := func(text string) func(*asking) { return func(a *asking) { a.body = text } }
	fail := func(a *asking) { a.fakes = broken(errBroken) }
	none := func(a *asking) { a.change = func(_ *Config, d *Deps) { d.Dictionary = struct{ Dictionary }{} } }
	full := func(a *asking) { a.prepare = fill }
	reject := `{"term":"Oolong","state":"rejected","reason":"a brand","operator":"ann"}`
	all := []asking{
		ask("GET", dictionary, "good", "?limit=7", 200, `{"terms":[{"term":"oolong tea","state":"candidate","score":1.5,"pins":7,"people":3,"recent":0.5,"decided":null}]}`, nil),
		ask("GET", dictionary, "rejected", "?state=rejected", 200, `"reason":"a brand","operator":"ann","decided":"2026-11-20T12:00:00Z"`, nil),
		ask("GET", dictionary, "no state", "?state=lost", 400, "none of candidate", nil),
		ask("GET", interests, "good", "?limit=5", 200, `{"interests":[{"interest":"interest:tea","strength":2,"share":1,"evidence":[{"pin":"pin:1","verb":"save","weight":5,"time":"2026-11-20T12:00:00Z"}]},{"interest":"interest:none","strength":0,"share":0,"evidence":[]}]}`, nil),
		ask("GET", interests, "too many", "?limit=1001", 400, "1 to 1000", nil),
		ask("GET", engagement, "good", "?days=9", 200, `{"source":"following","counts":{"impression":120,"save":9}}]}`, nil),
		ask("GET", engagement, "no days", "?days=0", 400, "1 to 400", nil),
		ask("POST", decisions, "reject", "", 200, `{"term":"oolong","state":"rejected","score":0,"pins":0,"people":0,"recent":0,"reason":"a brand","operator":"ann","decided":"2026-11-20T12:00:00Z"}`, body(reject)),
		ask("POST", decisions, "accept", "", 200, `"interest":"interest:oolong"`, body(`{"term":"oolong","state":"accepted"}`)),
		ask("POST", decisions, "accept as", "", 200, `"interest":"interest:tea"`, body(`{"term":"oolong","state":"accepted","interest":"interest:tea"}`)),
		ask("POST", decisions, "merge", "", 200, `"into":"tea"`, body(`{"term":"oolong","state":"merged","into":"Tea"}`)),
		ask("POST", decisions, "open", "", 200, `"state":"candidate"`, body(`{"term":"oolong","state":"candidate"}`)),
		ask("POST", decisions, "of before", "", 200, `"decided":"2026-11-20T10:59:59Z"`, body(`{"term":"oolong","state":"candidate","time":"2026-11-20T10:59:59Z"}`)),
		ask("POST", decisions, "of before the last", "", 409, "reopened\\\" is candidate since 2026-11-20T11:00:00Z", body(`{"term":"reopened","state":"accepted","time":"2026-11-20T10:59:59Z"}`)),
		ask("POST", decisions, "after the last", "", 200, `"decided":"2026-11-20T11:00:00Z"`, body(`{"term":"reopened","state":"accepted","time":"2026-11-20T11:00:00Z"}`)),
		ask("POST", decisions, "not quite the future", "", 200, "", body(`{"term":"oolong","state":"candidate","time":"2026-11-20T12:05:00Z"}`)),
		ask("POST", decisions, "future", "", 400, "5m0s ahead", body(`{"term":"oolong","state":"candidate","time":"2026-11-20T12:05:01Z"}`)),
		ask("POST", decisions, "without a reason", "", 400, "reason is missing", body(`{"term":"oolong","state":"rejected"}`)),
		ask("POST", decisions, "into itself", "", 400, "no other term", body(`{"term":"oolong","state":"merged","into":"oolong"}`)),
		ask("POST", decisions, "of a blocked term", "", 400, `term \"sale\" is blocked by the configuration (interests.block, interests.stop): advertising`,
			body(`{"term":"Sale","state":"accepted"}`)),
		ask("POST", decisions, "another of a blocked term", "", 400, `term \"sale\" is blocked`, body(`{"term":"sale","state":"merged","into":"tea"}`)),
		ask("POST", decisions, "into a blocked term", "", 400, `into \"sale\" is blocked`, body(`{"term":"tea","state":"merged","into":"Sale"}`)),
		ask("POST", decisions, "that a blocked term is none", "", 200, `"state":"rejected"`, body(`{"term":"sale","state":"rejected","reason":"advertising"}`)),
		ask("POST", decisions, "that a blocked term is open", "", 200, `"state":"candidate"`, body(`{"term":"sale","state":"candidate"}`)),
		ask("POST", decisions, "all wrong", "", 400, "is none of accepted", body(`{"state":"blocked"}`)),
		ask("POST", decisions, "no interest", "", 400, "interest:", body(`{"term":"a","state":"accepted","interest":"tea"}`)),
		ask("POST", decisions, "too large", "", 413, "", body(`{"term":"`+strings.Repeat("x", 2<<20)+`"}`)),
		ask("POST", decisions, "of a wrong type", "", 415, "", func(a *asking) { body(`a`)(a); a.header = []string{"Content-Type", "text/plain"} }),
		ask("POST", decisions, "slow", "", 408, "", func(a *asking) { body(`{`)(a); a.slow = true }),
		ask("POST", decisions, "from another site", "", 403, "", func(a *asking) { body(reject)(a); a.header = []string{"Sec-Fetch-Site", "cross-site"} }),
		ask("POST", decisions, "away", "", 503, "send it again", func(a *asking) { body(reject)(a); fail(a) }),
		ask("POST", decisions, "broken", "", 500, "", func(a *asking) { body(reject)(a); none(a) }),
		ask("POST", decisions, "no place", "", 503, "", full),
	}
	for _, route := range []string{dictionary, interests, engagement} {
		all = append(all,
			ask("GET", route, "parameter", "?x=1", 400, "no parameter", nil),
			ask("GET", route, "away", "", 503, "at the moment", fail),
			ask("GET", route, "broken", "", 500, "", none),
			ask("GET", route, "no place", "", 503, "", full))
	}
	return all
}
