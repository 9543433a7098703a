package api

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/serving/auth"
	"github.com/smartfeed/smartfeed/serving/feature"
)

// answered sends the request of a, and returns the answer and its body.
func answered(t *testing.T, a exchange) (*http.Response, []byte) {
	t.Helper()
	f := &fakes{fail: a.fail, missing: a.missing}
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
	case a.cut:
		sent = io.MultiReader(sent, iotest.ErrReader(io.ErrUnexpectedEOF))
	}
	res := roundTripTo(handler, a.method, a.path, sent, a.header...)
	body := must.Get(io.ReadAll(res.Body))(t)
	expect.False(t, a.code >= 400 && len(f.published) > 0, "the rejected request published %d times", len(f.published))
	return res, body
}

func TestAnswers(t *testing.T) {
	for _, a := range exchanges {
		t.Run(a.method+" "+a.route+" "+a.name, func(t *testing.T) {
			res, body := answered(t, a)
			must.Equal(t, res.StatusCode, a.code, "status of %.300s", body)
			expect.Contains(t, string(body), a.says, "body")
			expect.False(t, strings.Contains(string(body), "secret") && a.route != "/metrics", "the answer names internals: %s", body)
			checkHeader(t, a, res)
			if kind := res.Header.Get("Content-Type"); kind == "application/problem+json" {
				checkProblem(t, a.code, body)
			} else if a.code >= 400 && a.code != 503 && a.route != "/metrics" {
				t.Errorf("got a %d of type %q, want a problem document", a.code, kind)
			}
		})
	}
}

// cacheControl returns the expected Cache-Control of an answer.
func cacheControl(a exchange) string {
	if a.route == "/v1/openapi.json" && a.method == "GET" && a.code == 200 {
		return "max-age=300"
	}
	return "no-store"
}

// checkHeader checks the headers that every answer has.
func checkHeader(t *testing.T, a exchange, res *http.Response) {
	t.Helper()
	expect.True(t, res.Header.Get("X-Request-Id") != "", "the answer has a request id")
	ofConsole := a.path == "/" || a.path == "/docs" && a.code < 400 // its own handler sets the header
	if got := res.Header.Get("Cache-Control"); got != cacheControl(a) && !ofConsole {
		t.Errorf("Cache-Control: got %q, want %q", got, cacheControl(a))
	}
	expect.Equal(t, res.Header.Get("Retry-After") != "", a.code == 503 || a.code == 429, "a %d has Retry-After", a.code)
	expect.Equal(t, res.Header.Get("WWW-Authenticate") != "", a.code == 401 || a.code == 403 && a.change != nil, "challenge of a %d", a.code)
	expect.Equal(t, res.Header.Get("Allow") != "", a.code == 405, "a %d has Allow", a.code)
}

func checkProblem(t *testing.T, code int, body []byte) {
	t.Helper()
	var p Problem
	must.OK(t, json.Unmarshal(body, &p))
	if p.Status != code || p.Title != http.StatusText(code) || p.Type != "about:blank" || p.Detail == "" {
		t.Errorf("got %+v, want a complete problem of a %d", p, code)
	}
}

func TestAllow_ListsMethods(t *testing.T) {
	s := listen(t, &fakes{}, nil)
	for path, want := range map[string]string{
		"/v1/features": "GET, POST, HEAD", "/v1/events": "POST", "/v1/status": "GET, HEAD", "/": "GET, HEAD",
	} {
		expect.Equal(t, roundTrip(s, "PATCH", path, "").Header.Get("Allow"), want, "%s", path)
	}
}

func TestVisit_PassesParameters(t *testing.T) {
	f := &fakes{}
	s := listen(t, f, nil)
	roundTrip(s, "GET", "/v1/users/user:a%2Fb/feed", "")
	roundTrip(s, "GET", "/v1/users/user:%C3%A4/feed?limit=7&feed=plain", "")
	roundTrip(s, "GET", "/v1/users/user:a/feed?limit=7&feed=other&cursor=good", "")
	roundTrip(s, "GET", "/v1/users/user:a/feed?limit=8&peek=true", "")
	roundTrip(s, "GET", "/v1/users/user:a/feed?peek=true&cursor=good", "")
	roundTrip(s, "POST", "/v1/users/user:a/visits", "")
	roundTrip(s, "POST", "/v1/users/user:a/visits?limit=9&feed=plain", "", "Idempotency-Key", "k-1")
	want := []visit{
		{"user:a/b", "home", 25, ""}, {"user:ä", "plain", 7, ""}, {"user:a", "home", 8, "peek"},
		{"user:a", "home", 25, ""}, {"user:a", "plain", 9, "k-1"},
	}
	expect.NoDiffBut(t, cmp.AllowUnexported(visit{}), f.visits, want, "visits")
}

// A HEAD request shows no pins, so none may count as shown.
func TestHead_IsNotAVisit(t *testing.T) {
	f := &fakes{}
	s := listen(t, f, nil)
	res := roundTrip(s, "HEAD", "/v1/users/user:a/feed?feed=plain", "")
	if allow := res.Header.Get("Allow"); res.StatusCode != 405 || allow != "GET" || len(f.visits) > 0 {
		t.Errorf("got %d, Allow %q and the visits %v, want 405, GET and none", res.StatusCode, allow, f.visits)
	}
	for _, query := range []string{"cursor=good", "peek=true"} {
		expect.Equal(t, roundTrip(s, "HEAD", "/v1/users/user:a/feed?"+query, "").StatusCode, 200, "%s", query)
	}
}

func TestEvents_PublishesLines(t *testing.T) {
	f := &fakes{}
	s := listen(t, f, nil)
	roundTrip(s, "POST", "/v1/events", save+"\n\n"+strings.Replace(save, "e-81", "e-82", 1))
	if len(f.published) != 1 || len(f.published[0]) != 2 {
		t.Fatalf("got %v, want one publication of two", f.published)
	}
	for i, want := range []string{"e-81", "e-82"} {
		expect.Equal(t, f.published[0][i].Event.(*schemas.ActionEvent).ID, want, "event %d", i)
	}
}

func TestFeatures_PassesRequest(t *testing.T) {
	f := &fakes{}
	s := listen(t, f, nil)
	roundTrip(s, "POST", "/v1/features", `{"features":["interests"],"pairs":[["user:a","pin:1"]],"at":"2026-11-20T10:00:00Z"}`)
	at := now.Add(-2 * time.Hour)
	want := []feature.Request{{Features: []string{"interests"}, Pairs: []feature.UserPin{{User: "user:a", Pin: "pin:1"}}, At: &at}}
	expect.NoDiff(t, f.requests, want, "requests")
}

// Every bad line is listed by number. The total length of the listed problems is limited.
func TestEvents_ListsEveryBadLine(t *testing.T) {
	s := listen(t, &fakes{}, nil)
	unknown := `{"stream":"pins"` + strings.Repeat(`,"`+strings.Repeat("x", 60)+`%d":1`, 6) + "}\n"
	var body strings.Builder
	for range 15_000 {
		fmt.Fprintf(&body, unknown, 1, 2, 3, 4, 5, 6)
	}
	res := roundTrip(s, "POST", "/v1/events", body.String())
	var p Problem
	must.OK(t, json.NewDecoder(res.Body).Decode(&p))
	total := 0
	for i, e := range p.Errors {
		if !strings.HasPrefix(e, fmt.Sprintf("line %d", i+1)) {
			t.Fatalf("problem %d: got %s", i, e)
		}
		total += len(e)
	}
	expect.Equal(t, len(p.Errors), 15_000, "problems")
	expect.Between(t, total, maxListed/2, maxListed+15_000*len("line 15000"), "bytes of problems")
	expect.Equal(t, p.Errors[14_999], "line 15000", "the last problem")
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
			got := roundTrip(s, "GET", "/healthz", "", "X-Request-Id", c.given).Header.Get("X-Request-Id")
			if (got == c.given) != c.kept || got == "" {
				t.Errorf("got %q of %q, want it kept: %v", got, c.given, c.kept)
			}
		})
	}
}

func TestPanic_FailsOnlyItsRequest(t *testing.T) {
	var log logged
	broken := true
	s := listen(t, &fakes{}, func(_ *Config, d *Deps) {
		d.Log = log.logger(slog.LevelInfo)
		d.Ready = func() []string {
			if broken {
				panic("no such part")
			}
			return nil
		}
	})
	res := roundTrip(s, "GET", "/readyz", "", "X-Request-Id", "mine")
	expect.Equal(t, res.StatusCode, 500, "status")
	for _, want := range []string{"no such part", "request=mine", "answers_test.go"} {
		expect.Contains(t, log.String(), want, "log")
	}
	broken = false
	expect.Equal(t, roundTrip(s, "GET", "/readyz", "").StatusCode, 200, "next request")
}

// A rejection under load is not logged, and neither is a caller that has disconnected.
func TestLog_OmitsRejectionsAndDisconnects(t *testing.T) {
	var log logged
	f := &fakes{fail: errBroken}
	s := listen(t, f, func(_ *Config, d *Deps) { d.Log = log.logger(slog.LevelInfo) })
	for range s.cfg.MaxRequests {
		s.gates.Enter(auth.Feed)
	}
	if res := roundTrip(s, "GET", "/v1/users/user:a/feed", ""); res.StatusCode != 503 || strings.Contains(log.String(), "request failed") {
		t.Errorf("at capacity: got %d and log %s", res.StatusCode, &log)
	}
	for range s.cfg.MaxRequests {
		s.gates.Leave(auth.Feed)
	}
	if res := roundTrip(s, "GET", "/v1/users/user:a/feed", ""); res.StatusCode != 500 || !strings.Contains(log.String(), errBroken.Error()) {
		t.Errorf("broken: got %d and log %s, want the cause in it", res.StatusCode, &log)
	}
}

func TestRequest_LogAndMetrics(t *testing.T) {
	var log logged
	s := listen(t, &fakes{}, func(_ *Config, d *Deps) { d.Log = log.logger(slog.LevelDebug) })
	roundTrip(s, "GET", "/v1/users/user:a/feed?limit=0", "", "X-Request-Id", "mine")
	roundTrip(s, "BREW", "/v1/users/user:a/feed", "")
	for _, want := range []string{
		"msg=request method=GET route=/v1/users/{user}/feed path=/v1/users/user:a/feed code=400 bytes=", "request=mine",
		"method=BREW route=/v1/users/{user}/feed path=/v1/users/user:a/feed code=405",
	} {
		expect.Contains(t, log.String(), want, "log")
	}
	metrics := bodyOf(t, roundTrip(s, "GET", "/metrics", ""))
	for _, labels := range []string{
		`{code="400",method="GET",route="/v1/users/{user}/feed"}`, `{code="405",method="other",route="/v1/users/{user}/feed"}`,
	} {
		want := "smartfeed_http_request_duration_seconds_count" + labels + " 1"
		expect.Contains(t, metrics, want, "metrics")
	}
}
