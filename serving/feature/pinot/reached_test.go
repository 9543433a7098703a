package pinot

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/topics"
)

// segments is a controller's response in the format of a release: for each segment, the offsets of its replicas. "-" is
// a replica without an offset.
type segments map[string][]string

func (s segments) text(r Release) string {
	all := make([]string, 0, len(s))
	for name, replicas := range s {
		partition := strings.Split(name, "__")[1]
		var each []string
		for _, at := range replicas {
			offsets := `{"` + partition + `":"` + at + `"}`
			if at == "-" {
				offsets = "{}"
			}
			one := `{"serverName":"Server_1","consumerState":"CONSUMING","lastConsumedTimestamp":1,"partitionToOffsetMap":` + offsets
			if r == V1 { // with the older field as a release may leave it
				one = strings.Replace(one, offsets, "{}", 1) + `,"partitionOffsetInfo":{"currentOffsetsMap":` + offsets +
					`,"latestUpstreamOffsetMap":{"` + partition + `":"900"},"recordsLagMap":{"` + partition + `":"7"}}`
			}
			each = append(each, one+"}")
		}
		all = append(all, `"`+name+`":[`+strings.Join(each, ",")+`]`)
	}
	text := `{"_segmentToConsumingInfoMap":{` + strings.Join(all, ",") + `}`
	if r == V1 {
		text += `,"serversFailingToRespond":1,"serversUnparsableRespond":0`
	}
	return text + "}"
}

// consumerOf returns the external consumer of the actions, whose controller responds with answer.
func consumerOf(t *testing.T, answer http.HandlerFunc) topics.ExternalConsumer {
	t.Helper()
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	cfg := DefaultConfig()
	cfg.Controller = strings.TrimPrefix(server.URL, "http://")
	all := must.Get(NewExternalConsumers(cfg))(t)
	return all[0]
}

func TestReached(t *testing.T) {
	for name, tt := range map[string]struct {
		segments segments
		want     map[int32]int64
		says     string // in the error
	}{
		"two partitions":               {segments{"actions_enriched__0__3__20260101T0000Z": {"12"}, "actions_enriched__11__0__20260101T0000Z": {"0"}}, map[int32]int64{0: 12, 11: 0}, ""},
		"a replica that lags":          {segments{"actions_enriched__0__3__20260101T0000Z": {"12", "5", "12"}}, map[int32]int64{0: 5}, ""},
		"one segment ends, one begins": {segments{"actions_enriched__0__3__20260101T0000Z": {"90"}, "actions_enriched__0__4__20260101T0000Z": {"100"}}, map[int32]int64{0: 90}, ""},
		"a replica without an offset":  {segments{"actions_enriched__0__3__20260101T0000Z": {"-"}, "actions_enriched__1__0__20260101T0000Z": {"3"}}, map[int32]int64{1: 3}, ""},
		"a segment without a consumer": {segments{"actions_enriched__0__3__20260101T0000Z": {}, "actions_enriched__1__0__20260101T0000Z": {"3"}}, nil, "segment actions_enriched__0__3"},
		"no segment":                   {segments{}, nil, "no segment is consuming"},
		"an offset of another stream":  {segments{"actions_enriched__0__3__20260101T0000Z": {"shard-1"}}, nil, "shard-1"},
	} {
		for _, r := range []Release{V0, V1} {
			t.Run(name+" "+string(r), func(t *testing.T) {
				f := consumerOf(t, func(w http.ResponseWriter, req *http.Request) {
					table := strings.TrimSuffix(strings.TrimPrefix(req.URL.Path, "/tables/"), "/consumingSegmentsInfo")
					if req.Method != http.MethodGet || table != TableName && table != SequencesTable {
						t.Errorf("sent %s %s", req.Method, req.URL)
					}
					says(tt.segments.text(r))(w, req)
				})
				got, err := f.Reached(t.Context())
				if !maps.Equal(got, tt.want) || (err == nil) != (tt.says == "") || err != nil && !strings.Contains(err.Error(), tt.says) {
					t.Errorf("got %v, %v, want %v, %q", got, err, tt.want, tt.says)
				}
			})
		}
	}
}

// Two tables read item-features. Their consumer has reached what both have ingested.
func TestReached_LowestOfTables(t *testing.T) {
	offsets := map[string]segments{
		CountsTable: {"pin_counts__0__0__x": {"7"}, "pin_counts__1__0__x": {"9"}, "pin_counts__2__0__x": {"3"}},
		MeansTable:  {"pin_actors__0__0__x": {"8"}, "pin_actors__1__0__x": {"5"}},
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		says(offsets[strings.Split(req.URL.Path, "/")[2]].text(V0))(w, req)
	}))
	t.Cleanup(server.Close)
	cfg := DefaultConfig()
	cfg.Controller = server.URL
	a := must.Get(NewAdmin(cfg))(t)
	got, err := a.Reached(t.Context(), CountsTable, MeansTable)
	if want := map[int32]int64{0: 7, 1: 5}; err != nil || !maps.Equal(got, want) { // the means have not begun partition 2
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
}

func TestReached_ReportsControllerErrors(t *testing.T) {
	for name, tt := range map[string]struct {
		answer http.HandlerFunc
		says   string
	}{
		"no table": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) }, `"smartfeed pinot apply" creates it`},
		"no answer": {func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusInternalServerError)
			says("servers are unavailable")(w, nil)
		}, "500 Internal Server Error: servers are unavailable"},
		"no JSON": {says("<html>"), "read the offsets of pinot"},
	} {
		expect.Error(t, expect.ErrorOf(consumerOf(t, tt.answer).Reached(t.Context())), tt.says, "%s", name)
	}
	cfg := DefaultConfig()
	cfg.Controller = "127.0.0.1:1"
	all := must.Get(NewExternalConsumers(cfg))(t)
	expect.Error(t, expect.ErrorOf(all[0].Reached(t.Context())), "request the offsets of pinot", "unavailable server")
}

// A controller that hangs is abandoned after the timeout.
func TestReached_TimesOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hangs := transport(func(req *http.Request) (*http.Response, error) {
			<-req.Context().Done()
			return nil, req.Context().Err()
		})
		a := &Admin{url: "http://controller", http: &http.Client{Transport: hangs}}
		began := time.Now()
		_, err := a.Reached(t.Context(), TableName)
		if took := time.Since(began); err == nil || took != reachedTimeout || !strings.Contains(err.Error(), "does not answer within 5s") {
			t.Errorf("after %s: %v", took, err)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(errors.New("canceled by the caller"))
		expect.Error(t, expect.ErrorOf(a.Reached(ctx, TableName)), "canceled by the caller", "error")
	})
}

type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }
