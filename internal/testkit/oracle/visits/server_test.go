package visits

import (
	"encoding/json"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/internal/testkit/oracle"
	"github.com/smartfeed/smartfeed/internal/tools/lastfm"
	"github.com/smartfeed/smartfeed/schemas"
)

// imported returns the product of the Last.fm data set, or skips the test.
func imported(t *testing.T) *oracle.Product {
	t.Helper()
	dir, at := os.Getenv("LASTFM_DIR"), os.Getenv("SMARTFEED_LAST_ACTION")
	if dir == "" || at == "" || os.Getenv("SMARTFEED_SERVER") == "" {
		t.Skip("needs a server: set SMARTFEED_SERVER to the URL of one that has imported the Last.fm set and has had no visits, " +
			"LASTFM_DIR to the directory of the set, SMARTFEED_LAST_ACTION to the import's --last-action")
	}
	last, err := time.Parse(time.RFC3339, at)
	must.OK(t, err)
	d, err := lastfm.Read(os.DirFS(dir))
	must.OK(t, err)
	p := oracle.New(oracle.Config{HalfLife: 24 * time.Hour})
	for line := range d.Events(d.ShiftTo(last)) {
		p.Apply(line)
	}
	return p
}

func TestServer_FeaturesMatchOracle(t *testing.T) {
	p := imported(t)
	h := &HTTP{URL: os.Getenv("SMARTFEED_SERVER"), Client: &http.Client{Timeout: 10 * time.Second}}
	at, err := time.Parse(time.RFC3339, os.Getenv("SMARTFEED_LAST_ACTION"))
	must.OK(t, err)
	var users []schemas.UserID
	for i := 0; i < len(p.Users()); i += 40 {
		users = append(users, p.Users()[i])
	}
	got, err := h.Features(t.Context(), []string{"interests_24h", "verbs_1h", "last_actions"}, users, at)
	must.OK(t, err)
	asOf, groups := schemas.MicrosOf(at), 0
	for _, user := range users {
		day := oracle.Feature{Verbs: []schemas.Verb{schemas.Click, schemas.Save}, Window: 24 * time.Hour}
		want := p.CountBy(user, day, "objectAttributes.interests", asOf)
		sameCounts(t, user, got[user]["interests_24h"], want)
		sameCounts(t, user, got[user]["verbs_1h"], p.CountBy(user, oracle.Feature{Window: time.Hour}, "verb", asOf))
		sameActions(t, user, got[user]["last_actions"], p.Last(user, oracle.Feature{Window: 96 * time.Hour}, 20, asOf))
		groups += len(want)
	}
	if groups == 0 {
		t.Error("no user has an action")
	}
}

func sameCounts(t *testing.T, user schemas.UserID, got json.RawMessage, want map[string]int) {
	t.Helper()
	counts := map[string]int{}
	if err := json.Unmarshal(got, &counts); err != nil {
		t.Errorf("%s: %v in %s", user, err, got)
	}
	if diff := cmp.Diff(want, counts); diff != "" {
		t.Errorf("counts of %s (-want +got):\n%s", user, diff)
	}
}

func sameActions(t *testing.T, user schemas.UserID, got json.RawMessage, want []*schemas.EnrichedAction) {
	t.Helper()
	type act struct {
		Object    schemas.ID
		Verb      schemas.Verb
		Timestamp time.Time
	}
	var acts []act
	if err := json.Unmarshal(got, &acts); err != nil {
		t.Errorf("%s: %v in %s", user, err, got)
	}
	wanted := []act{}
	for _, a := range want {
		wanted = append(wanted, act{a.Object, a.Verb, a.Timestamp.Time()})
	}
	if diff := cmp.Diff(wanted, acts); diff != "" {
		t.Errorf("last actions of %s (-want +got):\n%s", user, diff)
	}
}

// The pools of a server that has imported the data set match the oracle, and its feeds pass all checks.
func TestServer_FeedsMatchOracle(t *testing.T) {
	p := imported(t)
	h := &HTTP{URL: os.Getenv("SMARTFEED_SERVER"), Client: &http.Client{Timeout: 10 * time.Second}, Feed: "plain", Limit: 100}
	users := p.Users()
	for i := 0; i < len(users); i += 40 {
		if err := CheckPools(t.Context(), h, p, users[i], 500); err != nil {
			t.Error(err)
		}
	}
	for i := 7; i < len(users); i += 400 {
		r := NewReader(Config{Limit: h.Limit, Cap: 500, Plain: true, Stale: time.Second}, h, p, users[i])
		if err := r.ReadAll(t.Context()); err != nil {
			t.Error(err)
		}
		t.Logf("%d pins served to %s", r.Shown(), users[i])
	}
	home := &HTTP{URL: h.URL, Client: h.Client, Feed: "home", Limit: 25}
	for i := 11; i < len(users); i += 400 {
		r := NewReader(Config{Limit: home.Limit, Cap: 500, Stale: time.Second}, home, p, users[i])
		for range 10 {
			w, err := r.Visit(t.Context())
			if err == nil {
				err = w.Finish(t.Context())
			}
			if err != nil {
				t.Error(err)
				break
			}
		}
		t.Logf("%d pins served to %s in the feed home", r.Shown(), users[i])
	}
}
