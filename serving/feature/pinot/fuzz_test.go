package pinot

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/serving/feature"
)

// FuzzAnswer gives arbitrary answers of a broker to a Store. The result must be an error or one result per feature.
func FuzzAnswer(f *testing.F) {
	var text []byte
	client := &Client{
		brokers: brokers{now: time.Now, all: []*endpoint{{url: "http://pinot"}}}, maxBytes: 64 << 10,
		http: &http.Client{Transport: transport(func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(bytes.NewReader(text))}, nil
		})},
	}
	builtin := must.Get(feature.Parse("built in", []byte(feature.Builtin)))(f)
	var users, ofPins []feature.Definition
	for _, d := range builtin {
		if d.Entity == feature.User && d.Window > 0 {
			users = append(users, d)
		}
		if d.Entity == feature.Pin && d.Aggregate != feature.Ratio {
			ofPins = append(ofPins, d)
		}
	}
	if len(users) < 3 {
		f.Fatalf("only %d built-in features of users", len(users))
	}
	store := NewStore(feature.DefaultConfig(), client)
	span := feature.Span{AsOf: 1_000_000_000_000, Now: 1_000_000_000_000}
	f.Add([]byte(`{}`), false)
	f.Add([]byte(`{"resultTable":{"rows":[[3]]},"numServersQueried":1,"numServersResponded":1}`), true)
	f.Add([]byte(`{"resultTable":{"rows":[["a",1e999],[null,"x"]]},"minConsumingFreshnessTimeMs":9223372036854775807}`), true)
	f.Add([]byte(`{"resultTable":{"rows":[["pin:1","{\"save\":1}","a0b1",300000]]},"numServersQueried":1,"numServersResponded":1}`), false)
	f.Add([]byte(`{"resultTable":{"rows":[null,[]]},"exceptions":[{"errorCode":-1}]}`), false)
	f.Fuzz(func(t *testing.T, answer []byte, one bool) {
		text = answer
		defs := users
		if one {
			defs = users[:1]
		}
		got, fresh, err := store.Actions(t.Context(), schemas.UserID("user:7"), span, defs)
		expect.True(t, err != nil || len(got) == len(defs), "%q: %d results for %d features", answer, len(got), len(defs))
		pins := []schemas.PinID{"pin:1", "pin:2"}
		if items, _, err := store.Items(t.Context(), pins, span.Now, ofPins); err == nil && (len(items) != 2 || len(items[0]) != len(ofPins)) {
			t.Errorf("%q: results %v for two pins", answer, items)
		}
		_, _, _ = store.Pins(t.Context(), pins, one)
		expect.Error(t, expect.ErrorOf(json.Marshal(fresh)), "", "%q: the answer's time of freshness", answer)
	})
}
