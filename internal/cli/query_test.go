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
	for command, want := range map[string]string{
		"query feed user:a": table(
			"     PIN    SOURCE     SCORE  CREATED              AUTHOR  TITLE",
			"new  pin:1  following  1.500  2026-11-20 12:00:00  user:a  Oolong",
			"older: --cursor good"),
		"query feed user:a --cursor good": table(
			"  PIN    SOURCE    SCORE  CREATED              AUTHOR  TITLE",
			"  pin:2  interest  1.000  2026-11-20 12:00:00  user:a  Oolong",
			"answered without: store",
			"end of the feed"),
		"query feed user:a --all": table(
			"     PIN    SOURCE     SCORE  CREATED              AUTHOR  TITLE",
			"new  pin:1  following  1.500  2026-11-20 12:00:00  user:a  Oolong",
			"  pin:2  interest  1.000  2026-11-20 12:00:00  user:a  Oolong",
			"answered without: store"),
		"query pool user:a interest --limit 1": table(
			"PIN    SCORE  CREATED              AUTHOR  BOARD",
			"pin:1  2.000  2026-11-20 12:00:00  user:a  board:b",
			"1 of 7 candidates"),
		"query why user:a pin:shown --feed plain": table(
			"pin:shown was shown 2026-11-20 12:00:00, at position 7, from following; it is hidden from the user now: the user or the author blocked the other (user:a)"),
		"query why user:a pin:1": table(
			"pin:1 would be shown by a visit now, in place 3, with the rules of the feed calm",
			"deferred since 2026-11-20 12:00:00",
			"",
			"SOURCE    RANK  SCORE  PARTS                      BY",
			"interest  2     3.000  created 2.000, edge 1.000  interest:tea  waiting",
			"related         0.000                                           it was shown"),
		"query features": table(
			"NAME       OF    WINDOW  AGGREGATE  MEANING",
			"interests  user  1h      count      what it counts",
			"set ranking: interests, number"),
		"query features interests --user user:a": table(
			"ENTITY  FEATURE    VALUE",
			"user:a  interests  3 interest:art",
			"user:a  interests  2 interest:tea",
			"user:a  last       save pin:1 at 2026-11-20T12:00:00Z",
			"user:a  none       none",
			"user:a  number     1.25",
			"user:a  taste      [0.5 1 2 3 …] 5 numbers",
			"user:a  top        1234567 interest:tea",
			"missing: none of user:a: empty",
			"as of 2026-11-20 12:00:00"),
		"query status": table(
			"smartfeed v1 is ready",
			"without gone:1: it does not answer",
			"",
			"PROCESS  VERSION  STATE",
			"here:1   v1       ready",
			"there:1  v0       pools is waiting",
			"",
			"PROCESS  COMPONENT  CONDITION  SINCE                RESTARTS  LAST ERROR",
			"there:1  pools      waiting    2026-11-20 12:00:00  4         it broke there",
			"",
			"GROUP  PARTITIONS  RECORDS  PER SECOND  LAG  RESTARTS  DEAD LETTERS",
			"pools  1           12       1.5         3    4         3"),
		"dead-letters kinds": table(
			"KIND               WAITING  SENT  DONE  PARKED  NEXT                 RATE     PRIORITY  SET BY",
			"actions/objects/a  3        0     1     0       2026-11-20 12:00:00  2.5/s    0         the configuration",
			"actions/objects/b  3        0     1     0       –                    stopped  0         ann"),
		"dead-letters states --limit 7 --kind actions/objects/a": table(
			"STATE    ATTEMPTS  SINCE                NEXT                 TOPIC    PARTITION  OFFSET  GROUP    REASON",
			"waiting  7         2026-11-20 12:00:00  2026-11-20 12:00:00  actions  0          7       objects  odd",
			"parked   0         2026-11-20 12:00:00  –                    actions  0          0       objects  bad (parked: because)"),
	} {
		t.Run(command, func(t *testing.T) {
			got, err := at(t, addr, strings.Fields(command)...)
			if err != nil || got != want {
				t.Errorf("got %v\n%s\nwant\n%s", err, got, want)
			}
		})
	}
}

func TestRequests_PrintJSONUnchanged(t *testing.T) {
	addr := newServer(t)
	for command, path := range map[string]string{
		"query feed user:a":                    "/v1/users/user:a/feed",
		"query pool user:a interest --limit 2": "/v1/users/user:a/pools?source=interest&limit=2",
		"query why user:a pin:shown":           "/v1/users/user:a/feed/why?pin=pin:shown",
		"query features":                       "/v1/features",
		"query status":                         "/v1/status",
		"query ready":                          "/readyz",
		"dead-letters kinds":                   "/v1/dead-letters/kinds",
		"dead-letters states --kind a/b/c --state parked --limit 9": "/v1/dead-letters/retries?kind=a/b/c&state=parked&limit=9",
		"interests list --state merged --limit 9":                   "/v1/dictionary?state=merged&limit=9",
		"interests list --state blocked":                            "/v1/dictionary?state=blocked&limit=25",
		"interests show user:a --limit 2":                           "/v1/users/user:a/interests?limit=2",
		"interests engagement interest:t --days 3":                  "/v1/interests/interest:t/engagement?days=3",
	} {
		res, err := http.Get(addr + path)
		must.OK(t, err)
		want, err := io.ReadAll(res.Body)
		must.OK(t, errors.Join(err, res.Body.Close()))
		if got, err := at(t, addr, append(strings.Fields(command), "-o", "json")...); err != nil || got != string(want) {
			t.Errorf("%s: got %v %s, want %s", command, err, got, want)
		}
	}
	pages, err := query(t, addr, "feed", "user:a", "--all", "-o", "json")
	if lines := strings.Split(strings.TrimSpace(pages), "\n"); err != nil || len(lines) != 2 || !json.Valid([]byte(lines[1])) {
		t.Errorf("all pages: got %v %s, want two lines of JSON", err, pages)
	}
}

// The server rejects a request other than the recorded one.
func TestQuery_SendsIDsUnchanged(t *testing.T) {
	addr := newServer(t)
	if _, err := query(t, addr, "feed", "user:a/../b?c=%2F ä", "--feed", "plain", "--limit", "7"); err != nil {
		t.Error(err)
	}
	if _, err := query(t, addr, "feed", "user:a", "--peek", "--feed", "plain", "--all"); err != nil { // older pages are no peeks
		t.Error(err)
	}
	if _, err := query(t, addr, "features", "--set", "ranking", "--user", "user:a"); err != nil {
		t.Error(err)
	}
	if _, err := query(t, addr, "features", "interests", "--pair", "user:a|b|pin:1|pin:2", "--pin", "pin:a,b", "--at", "2026-11-20T10:00:00Z"); err != nil {
		t.Error(err)
	}
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
		"several problems": {good, "pool user:a " + strings.Repeat("x", 65) + " --limit 0", []string{
			"400 Bad Request", "\n  source ", "\n  limit \"0\": want a number",
		}},
		"forged cursor":  {good, "feed user:a --cursor forged", []string{"bad cursor"}},
		"no server":      {closed.URL, "status", []string{"call server", "connection refused"}},
		"not ready":      {busy.URL, "ready", []string{"503"}},
		"another server": {stranger.URL, "status", []string{"404 Not Found"}},
		"no JSON":        {talker.URL, "status", []string{"read answer"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := query(t, c.addr, strings.Fields(c.line)...)
			if err == nil || errors.As(err, new(*command.UsageError)) {
				t.Fatalf("got %v, want a failure that is no wrong usage", err)
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("got %v, want %s in it", err, want)
				}
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
	if err == nil || !strings.Contains(err.Error(), "degraded: store") || asked != 2 {
		t.Errorf("got %v after %d pages, want an error after 2", err, asked)
	}
}

func TestTables_ReplaceControlCharacters(t *testing.T) {
	hostile := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		pin := feed.Pin{ID: "pin:1", Title: "a\x1b[2Jb\nc\td\u202e"}
		_ = json.NewEncoder(w).Encode(feed.Page{Items: []feed.Item{{Pin: pin}}, Degraded: []string{}})
	}))
	defer hostile.Close()
	got, err := query(t, hostile.URL, "feed", "user:a")
	if err != nil || !strings.Contains(got, "a�[2Jb�c�d�") {
		t.Errorf("got %v %q, want a title without control characters", err, got)
	}
}
