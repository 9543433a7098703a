package api

import (
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/serving/feature"
	"github.com/smartfeed/smartfeed/serving/web"
)

// cachedRoutes are the calls whose answers caches may keep.
var cachedRoutes = []string{
	"/v1/users/{user}/pins", "/v1/boards/{board}/pins", "/v1/interests/{interest}/pins", "/v1/pins/{pin}/related",
	"/v1/interests/{interest}/related", "/v1/features", "/v1/openapi.json",
}

// cacheControl returns the expected Cache-Control of an answer.
func cacheControl(a exchange) string {
	switch {
	case a.code != 200 && a.code != 304 || a.method != "GET" || !slices.Contains(cachedRoutes, a.route):
		return "no-store"
	case a.route == "/v1/openapi.json":
		return "max-age=300"
	}
	return "private, no-cache"
}

// unchanged returns conditional requests for the first successful answer of each cached call.
func unchanged(good []exchange) []exchange {
	var all []exchange
	for _, route := range cachedRoutes {
		i := slices.IndexFunc(good, func(a exchange) bool { return a.route == route && a.method == "GET" && a.code == 200 })
		a := good[i]
		a.name, a.code, a.says, a.header = "unchanged", 304, "", []string{"If-None-Match", "*"}
		all = append(all, a)
	}
	return all
}

func TestETag(t *testing.T) {
	f := &fakes{}
	s := listen(t, f, nil)
	const path = "/v1/features"
	tag := roundTrip(s, "GET", path, "").Header.Get("ETag")
	if len(tag) < 10 || !strings.HasPrefix(tag, `"`) {
		t.Fatalf("got the tag %s", tag)
	}
	inner := strings.Trim(tag, `"`)
	for given, want := range map[string]int{
		tag: 304, "W/" + tag: 304, `"x", ` + tag: 304, `"` + inner + `-gzip"`: 304, "*": 304, `"x"`: 200, "": 200, `"` + inner[1:] + `"`: 200,
	} {
		res := roundTrip(s, "GET", path, "", "If-None-Match", given)
		body, err := io.ReadAll(res.Body)
		if res.StatusCode != want || res.Header.Get("ETag") != tag || (len(body) == 0) != (want == 304) || err != nil {
			t.Errorf("%s: got %d with the tag %s and %d bytes, %v, want %d", given, res.StatusCode, res.Header.Get("ETag"), len(body), err, want)
		}
	}
	other := roundTrip(s, "GET", "/v1/openapi.json", "").Header.Get("ETag")
	if other == tag || roundTrip(s, "GET", "/v1/openapi.json", "", "If-None-Match", tag).StatusCode != 200 {
		t.Error("another answer has the same tag")
	}
	if res := roundTrip(s, "POST", path, `{"features":["a"]}`); res.Header.Get("ETag") != "" {
		t.Error("a POST has a tag")
	}
}

// manyDefinitions is larger than a packet.
type manyDefinitions struct{ *fakes }

func (m manyDefinitions) Definitions() []feature.Definition {
	var all []feature.Definition
	for i := range 100 {
		d := m.fakes.Definitions()[0]
		d.Name = fmt.Sprint("interests_", i)
		all = append(all, d)
	}
	return all
}

func (m manyDefinitions) Try(context.Context, feature.TryRequest) (feature.TryAnswer, error) {
	return feature.TryAnswer{Definitions: m.Definitions()}, nil
}

func TestCompression(t *testing.T) {
	f := &fakes{}
	s := listen(t, f, func(_ *Config, d *Deps) { d.Features, d.Console = manyDefinitions{f}, theConsole(t) })
	plain, err := io.ReadAll(roundTrip(s, "GET", "/v1/features", "").Body)
	must.OK(t, err)
	res := roundTrip(s, "GET", "/v1/features", "", "Accept-Encoding", "gzip")
	if res.Header.Get("Content-Encoding") != "gzip" || !strings.Contains(res.Header.Get("Vary"), "Accept-Encoding") || !strings.HasSuffix(res.Header.Get("ETag"), `-gzip"`) {
		t.Fatalf("got %v, want it compressed, with Vary and a separate tag", res.Header)
	}
	unpacked, err := gzip.NewReader(res.Body)
	must.OK(t, err)
	if text, err := io.ReadAll(unpacked); err != nil || string(text) != string(plain) {
		t.Errorf("got %.100s, %v, want the same as without compression", text, err)
	}
	if again := roundTrip(s, "GET", "/v1/features", "", "Accept-Encoding", "gzip", "If-None-Match", res.Header.Get("ETag")); again.StatusCode != 304 {
		t.Errorf("tag of the compressed answer: got %d, want 304", again.StatusCode)
	}
	for path, encoding := range map[string]string{"/": "gzip", "/docs": ""} { // the page of the document is short
		page := roundTrip(s, "GET", path, "", "Accept-Encoding", "gzip")
		if got := page.Header.Get("Content-Encoding"); got != encoding {
			t.Errorf("%s: got the encoding %q, want %q", path, got, encoding)
		}
		for _, tag := range []string{page.Header.Get("ETag"), `"other", W/` + page.Header.Get("ETag")} {
			if again := roundTrip(s, "GET", path, "", "Accept-Encoding", "gzip", "If-None-Match", tag); again.StatusCode != 304 {
				t.Errorf("%s, current tag: got %d, want 304", path, again.StatusCode)
			}
		}
	}
	for path, why := range map[string]string{
		"/v1/users/user:a/feed/events": "a stream", "/v1/users/user:a/feed/new": "short", "/metrics": "compressed by its own handler",
	} {
		if got := roundTrip(s, "GET", path, "", "Accept-Encoding", "gzip").Header.Get("Content-Encoding"); got != "" && path != "/metrics" {
			t.Errorf("%s is compressed with %s: it is %s", path, got, why)
		}
	}
	tried := roundTrip(s, "POST", "/v1/features/try", `{"definition":"{name: a, entity: user, aggregate: count}","users":["user:a"]}`, "Accept-Encoding", "gzip")
	if tried.Header.Get("Content-Encoding") != "gzip" {
		t.Errorf("a trial of definitions: got %d %v, want it compressed", tried.StatusCode, tried.Header)
	}
	if got := roundTrip(s, "GET", "/v1/features", "", "Accept-Encoding", "br").Header.Get("Content-Encoding"); got != "" {
		t.Errorf("compressed with %s for a client that does not accept it", got)
	}
	if res := roundTrip(s, http.MethodGet, "/v1/features?x", "", "Accept-Encoding", "gzip"); res.StatusCode != 400 || res.Header.Get("ETag") != "" {
		t.Errorf("an error: got %d with the tag %q", res.StatusCode, res.Header.Get("ETag"))
	}
}

// theConsole returns the real console.
func theConsole(t *testing.T) http.Handler {
	t.Helper()
	h, err := web.Handler()
	must.OK(t, err)
	return h
}
