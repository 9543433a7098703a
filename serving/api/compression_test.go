package api

import (
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/serving/feature"
	"github.com/smartfeed/smartfeed/serving/web"
)

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
	s := listen(t, f, func(_ *Config, d *Deps) { d.Features, d.Console = manyDefinitions{f}, web.Handler() })
	plain := bodyOf(t, roundTrip(s, "GET", "/v1/features", ""))
	res := roundTrip(s, "GET", "/v1/features", "", "Accept-Encoding", "gzip")
	if res.Header.Get("Content-Encoding") != "gzip" || !strings.Contains(res.Header.Get("Vary"), "Accept-Encoding") {
		t.Fatalf("got %v, want it compressed, with Vary", res.Header)
	}
	unpacked := must.Get(gzip.NewReader(res.Body))(t)
	expect.Equal(t, string(must.Get(io.ReadAll(unpacked))(t)), plain, "decompressed text")
	for path, encoding := range map[string]string{"/": "gzip", "/docs": ""} { // the page of the document is short
		page := roundTrip(s, "GET", path, "", "Accept-Encoding", "gzip")
		expect.Equal(t, page.Header.Get("Content-Encoding"), encoding, "%s: encoding", path)
	}
	for path, why := range map[string]string{
		"/v1/users/user:a/feed/events": "a stream", "/v1/users/user:a/feed/new": "short", "/metrics": "compressed by its own handler",
	} {
		if got := roundTrip(s, "GET", path, "", "Accept-Encoding", "gzip").Header.Get("Content-Encoding"); got != "" && path != "/metrics" {
			t.Errorf("%s is compressed with %s: it is %s", path, got, why)
		}
	}
	tried := roundTrip(s, "POST", "/v1/features/try", `{"definition":"{name: a, entity: user, aggregate: count}","users":["user:a"]}`, "Accept-Encoding", "gzip")
	expect.Equal(t, tried.Header.Get("Content-Encoding"), "gzip", "encoding of a trial of definitions")
	got := roundTrip(s, "GET", "/v1/features", "", "Accept-Encoding", "br").Header.Get("Content-Encoding")
	expect.Equal(t, got, "", "compression for a client that does not accept it")
}
