package cli

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/smartfeed/smartfeed/internal/command"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/serving/feed"
)

// query runs a command line of query.
func query(t *testing.T, addr string, args ...string) (string, error) {
	t.Helper()
	return at(t, addr, append([]string{"query"}, args...)...)
}

// table joins lines, and converts the time of the fakes to the local time zone.
func table(lines ...string) string {
	at := now.Local().Format(time.DateTime)
	return strings.ReplaceAll(strings.Join(lines, "\n")+"\n", "2026-11-20 12:00:00", at)
}

func TestRequests_PrintTables(t *testing.T) {
	addr := newServer(t)
	first := table(
		"items",
		"NEW   PIN    SOURCE     SCORE  TIME                  AUTHOR  TITLE",
		"true  pin:1  following  1.500  2026-11-20T12:00:00Z  user:a  Oolong",
		"",
		"next      good",
		"degraded  none",
	)
	second := table(
		"items",
		"NEW    PIN    SOURCE    SCORE  TIME                  AUTHOR  TITLE",
		"false  pin:2  interest      1  2026-11-20T12:00:00Z  user:a  Oolong",
		"",
		"next      none",
		"degraded  store",
	)
	for command, want := range map[string]string{
		"query feed user:a":               first,
		"query feed user:a --cursor good": second,
		"query feed user:a --all":         first + second,
		"query why user:a pin:shown --feed plain": table(
			"pin:shown was shown 2026-11-20 12:00:00, at position 7, from following; it is hidden from the user now: the user or the author blocked the other (user:a)"),
		"query why user:a pin:1": table(
			"pin:1 would be shown by a visit now, in place 3, with the rules of the feed calm",
			"deferred since 2026-11-20 12:00:00",
			"",
			"SOURCE    RANK  SCORE  PARTS                      BY            REASON",
			"interest     2  3.000  created 2.000, edge 1.000  interest:tea  waiting",
			"related         0.000                                           it was shown"),
		"query features": table(
			"features",
			"NAME       ENTITY  WINDOW  AGGREGATE  DESCRIPTION",
			"interests  user    1h      count      what it counts",
			"",
			"feature_sets.ranking  interests",
			"                      number"),
		"query features interests --user user:a": table(
			"values.user:a.interests.interest:art  3",
			"values.user:a.interests.interest:tea  2",
			"",
			"values.user:a.last",
			"OBJECT  VERB  TIMESTAMP",
			"pin:1   save  2026-11-20T12:00:00Z",
			"",
			"values.user:a.none    none",
			"values.user:a.number  1.250",
			"values.user:a.taste   0.500, 1, 2, 3, 4",
			"",
			"values.user:a.top",
			"VALUE           COUNT",
			"interest:tea  1234567",
			"",
			"missing",
			"ENTITY  FEATURE  REASON",
			"user:a  none     empty",
			"",
			"degraded  none",
			"as_of     2026-11-20T12:00:00Z",
			"fresh     none"),
		"query get users/user:a/pools?source=interest&limit=1": table(
			"source  interest",
			"total   7",
			"",
			"items",
			"PIN    SCORE  TIME                  AUTHOR  BOARD",
			"pin:1      2  2026-11-20T12:00:00Z  user:a  board:b"),
		"query get status": table(
			"dir  /var/lib/smartfeed",
			"",
			"flows",
			"KEY   RECORDS  TOPIC   WRITERS",
			"user        9  served  serving",
			"",
			"flows.readers",
			"KEY   GROUP  RECORDS  TOPIC",
			"user  pools        2  served",
			"",
			"groups",
			"COUNTERS                        GROUP  JOINED  LAG                    READY  RECORDS_PER_SECOND  RESTARTS  STARTS",
			"{dead_letters: 3, records: 12}  pools  true    {edges: 1, served: 2}  true                1.500         4       1",
			"",
			"groups.partitions",
			"COUNTERS                        PARTITION  PROCESS  STAGE    TABLE_OFFSET",
			"{dead_letters: 3, records: 12}          0  there:1  running             5",
			"",
			"missing  none",
			"",
			"components",
			"CONDITION  LAST_ERROR  NAME   RESTARTS  SINCE",
			"running    it broke    pools         2  2026-11-20T12:00:00Z",
			"",
			"processes",
			"ADDRESS  MISSING           READY  VERSION",
			"here:1                     true   v1",
			"there:1  pools is waiting  false  v0",
			"",
			"processes.components",
			"ADDRESS  CONDITION  LAST_ERROR      NAME   RESTARTS  SINCE",
			"there:1  waiting    it broke there  pools         4  2026-11-20T12:00:00Z",
			"",
			"ready  true",
			"",
			"shares",
			"FEED  ITEMS  SOURCE     TARGET",
			"home      7  following   0.600",
			"",
			"stores",
			"CONNECTED  KIND       NAME",
			"true       cassandra  primary",
			"           pinot      features",
			"",
			"unavailable",
			"SOURCE  REASON",
			"gone:1  it does not answer",
			"",
			"version  v1"),
		"query get dictionary?limit=7&state=rejected": table(
			"terms",
			"TERM        STATE     SCORE  PINS  PEOPLE  RECENT  REASON   OPERATOR  DECIDED",
			"oolong tea  rejected  1.500     7       3   0.500  a brand  ann       2026-11-20T12:00:00Z"),
		"query get users/user:a/interests?limit=3": table(
			"interests",
			"INTEREST       STRENGTH  SHARE",
			"interest:tea          2      1",
			"interest:none         0      0",
			"",
			"interests.evidence",
			"INTEREST      PIN    VERB  WEIGHT  TIME",
			"interest:tea  pin:1  save       3  2026-11-20T12:00:00Z"),
		"query get dead-letters/retries?kind=actions/objects/a&limit=7": table(
			"dead_letters",
			"KIND               TOPIC    PARTITION  OFFSET  GROUP    REASON  STATE    ATTEMPTS  SINCE                 DUE                   WHY",
			"actions/objects/a  actions          0       7  objects  odd     waiting         7  2026-11-20T12:00:00Z  2026-11-20T12:00:00Z",
			"k                  actions          0       0  objects  bad     parked          0  2026-11-20T12:00:00Z                        because"),
		"query get dead-letters/kinds": table(
			"kinds",
			"KIND               TOPIC    GROUP    REASON   RATE  PRIORITY  STATES                                     NEXT                  OPERATOR",
			"actions/objects/a  actions  objects  a       2.500         0  {done: 1, parked: 0, sent: 0, waiting: 3}  2026-11-20T12:00:00Z",
			"actions/objects/b  actions  objects  b           0         0  {done: 1, parked: 0, sent: 0, waiting: 3}                        ann"),
		"query get interests/interest:tea/engagement?days=28": table(
			"sources",
			"SOURCE     COUNTS",
			"direct     {\"\\e[2J\": 5, click: 4}",
			"following  {impression: 120, save: 28}"),
	} {
		t.Run(command, func(t *testing.T) {
			expect.Equal(t, must.Get(at(t, addr, strings.Fields(command)...))(t), want, "%s", command)
		})
	}
}

func TestRequests_PrintJSONUnchanged(t *testing.T) {
	addr := newServer(t)
	for command, path := range map[string]string{
		"query feed user:a": "/v1/users/user:a/feed",
		"query get users/user:a/pools?source=interest&limit=2": "/v1/users/user:a/pools?source=interest&limit=2",
		"query why user:a pin:shown":                           "/v1/users/user:a/feed/why?pin=pin:shown",
		"query features":                                       "/v1/features",
		"query get /v1/status":                                 "/v1/status",
		"query ready":                                          "/readyz",
	} {
		res := must.Get(http.Get(addr + path))(t)
		want, err := io.ReadAll(res.Body)
		must.OK(t, errors.Join(err, res.Body.Close()))
		expect.Equal(t, must.Get(at(t, addr, append(strings.Fields(command), "-o", "json")...))(t), string(want), "%s", command)
	}
	pages, err := query(t, addr, "feed", "user:a", "--all", "-o", "json")
	if lines := strings.Split(strings.TrimSpace(pages), "\n"); err != nil || len(lines) != 2 || !json.Valid([]byte(lines[1])) {
		t.Errorf("all pages: got %v %s, want two lines of JSON", err, pages)
	}
}

// The server rejects a request other than the recorded one.
func TestQuery_SendsIDsUnchanged(t *testing.T) {
	addr := newServer(t)
	must.Get(query(t, addr, "feed", "user:a/../b?c=%2F ä", "--feed", "plain", "--limit", "7"))(t)
	expect.Error(t, expect.ErrorOf(query(t, addr, "feed", "user:a", "--peek", "--feed", "plain", "--all")), "", "all pages of a peek")
	must.Get(query(t, addr, "features", "--set", "ranking", "--user", "user:a"))(t)
	flags := []string{"--pair", "user:a|b|pin:1|pin:2", "--pin", "pin:a,b", "--at", "2026-11-20T10:00:00Z"}
	must.Get(query(t, addr, append([]string{"features", "interests"}, flags...)...))(t)
}

func TestQuery_ExplainsErrors(t *testing.T) {
	closed := httptest.NewServer(http.NotFoundHandler())
	stranger := httptest.NewServer(http.NotFoundHandler())
	defer stranger.Close()
	talker := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") }))
	defer talker.Close()
	busy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, `{"ready":false}`, http.StatusServiceUnavailable)
	}))
	defer busy.Close()
	good := newServer(t)
	closed.Close() // only now, because another server could otherwise get its port
	for name, c := range map[string]struct {
		addr, line string
		want       []string
	}{
		"problem": {good, "feed user:a --limit 101", []string{"/v1/users/user:a/feed?limit=101: 400 Bad Request", "1 to 100"}},
		"several problems": {good, "get users/user:a/pools?source=" + strings.Repeat("x", 65) + "&limit=0", []string{
			"400 Bad Request", "\n  source ", "\n  limit \"0\": want a number",
		}},
		"forged cursor":  {good, "feed user:a --cursor forged", []string{"bad cursor"}},
		"bad number":     {good, "get interests/interest:tea/engagement?days=401", []string{"400 Bad Request"}},
		"bad term state": {good, "get dictionary?state=odd&limit=25", []string{"400 Bad Request"}},
		"bad state":      {good, "get dead-letters/retries?state=lost&limit=25", []string{"400 Bad Request"}},
		"no server":      {closed.URL, "get status", []string{"call server", "connection refused"}},
		"not ready":      {busy.URL, "ready", []string{"503"}},
		"another server": {stranger.URL, "get status", []string{"404 Not Found"}},
		"no JSON":        {talker.URL, "get status", []string{"read answer"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := query(t, c.addr, strings.Fields(c.line)...)
			if err == nil || errors.As(err, new(*command.UsageError)) {
				t.Fatalf("got %v, want a failure that is no wrong usage", err)
			}
			for _, want := range c.want {
				expect.Contains(t, err.Error(), want, "error")
			}
		})
	}
}

// A feed without its store returns the same cursor for every page. Then --all stops.
func TestQueryFeed_StopsAtRepeatedCursor(t *testing.T) {
	asked, here := 0, "here"
	stuck := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked++
		_ = json.NewEncoder(w).Encode(feed.Page{Items: []feed.Item{}, Next: &here, Degraded: []string{"store"}})
	}))
	defer stuck.Close()
	_, err := query(t, stuck.URL, "feed", "user:a", "--all")
	expect.Error(t, err, "degraded: store", "all pages")
	expect.Equal(t, asked, 2, "requested pages")
}
