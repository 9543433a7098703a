package visits

import (
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/smartfeed/smartfeed/internal/oracle"
	"github.com/smartfeed/smartfeed/topics/lastfm"
)

// imported builds the product of the Last.fm set, or skips.
func imported(t *testing.T) *oracle.Product {
	t.Helper()
	dir, at := os.Getenv("LASTFM_DIR"), os.Getenv("SMARTFEED_LAST_ACTION")
	if dir == "" || at == "" || os.Getenv("SMARTFEED_SERVER") == "" {
		t.Skip("no server to read from: set SMARTFEED_SERVER to the URL of one that has imported the Last.fm set and was not " +
			"visited, LASTFM_DIR to its directory, SMARTFEED_LAST_ACTION to the import's --last-action")
	}
	last, err := time.Parse(time.RFC3339, at)
	if err != nil {
		t.Fatal(err)
	}
	d, err := lastfm.Read(os.DirFS(dir))
	if err != nil {
		t.Fatal(err)
	}
	p := oracle.New(oracle.Config{HalfLife: 24 * time.Hour})
	for line := range d.Events(d.ShiftTo(last)) {
		p.Apply(line)
	}
	return p
}

// A server that has imported the set holds what it should in its pools, and shows it as it should.
func TestServer(t *testing.T) {
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
		t.Logf("%d pins shown to %s", r.Shown(), users[i])
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
		t.Logf("%d pins shown to %s at home", r.Shown(), users[i])
	}
}
