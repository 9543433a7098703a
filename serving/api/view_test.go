package api

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/serving/auth"
)

// The scope view permits every call that reads, and no call that changes anything. Each call with POST is in one of the lists.
func TestView_ReadsEverythingAndChangesNothing(t *testing.T) {
	changing := []string{
		"/v1/users/{user}/visits", "/v1/events", "/v1/dead-letters/retry", "/v1/dead-letters/limits", "/v1/dictionary/decisions",
	}
	reading := []string{"/v1/features", "/v1/features/attributes", "/v1/features/try"}
	f := &fakes{}
	s := listen(t, f, func(c *Config, d *Deps) {
		authenticated(c, d)
		c.Limits.UserRate = 0
	})
	seen := 0
	for _, r := range s.routes() {
		example := first(r.method, r.path)
		if r.path == "/v1/users/{user}/feed" {
			example.path += "?peek=true"
		}
		status := roundTrip(s, r.method, example.path, example.body, "Authorization", "Bearer "+auth.View).StatusCode
		changes := slices.Contains(changing, r.path)
		if changes {
			seen++
		}
		if (status == http.StatusForbidden) != changes || status == http.StatusUnauthorized {
			t.Errorf("%s %s with the scope view: %d, and it changes something: %t", r.method, r.path, status, changes)
		}
		if r.method != http.MethodGet && !changes && !slices.Contains(reading, r.path) {
			t.Errorf("%s %s: is in no list of this test", r.method, r.path)
		}
	}
	expect.Equal(t, seen, len(changing), "calls that change something")
	if res := roundTrip(s, "GET", "/v1/users/user:7/feed", "", "Authorization", "Bearer "+auth.View); res.StatusCode != http.StatusForbidden {
		t.Errorf("a visit with GET: %d, want 403", res.StatusCode)
	} else if text := bodyOf(t, res); !strings.Contains(text, "peek=true") {
		t.Errorf("a visit with GET: %s, want a hint at peek", text)
	}
	both := tokens{"t": {Subject: "service:x", Scopes: []string{auth.View, auth.Feed}}}
	s = listen(t, &fakes{}, func(_ *Config, d *Deps) { d.Auth = both })
	res := roundTrip(s, "GET", "/v1/users/user:7/feed", "", "Authorization", "Bearer t")
	expect.Equal(t, res.StatusCode, http.StatusOK, "a visit with the scopes view and feed")
}

// The training log must not contain what a viewer reads.
func TestView_FeaturesAreNotRecorded(t *testing.T) {
	f := &fakes{}
	s := listen(t, f, authenticated)
	example := first("POST", "/v1/features")
	for scope, unrecorded := range map[string]bool{auth.View: true, auth.Features: false} {
		res := roundTrip(s, "POST", example.path, example.body, "Authorization", "Bearer "+scope)
		if res.StatusCode != http.StatusOK || f.requests[len(f.requests)-1].Unrecorded != unrecorded {
			t.Errorf("scope %s: got %d, unrecorded %t, want %t", scope, res.StatusCode, !unrecorded, unrecorded)
		}
	}
}

func TestCaller_NamesScopes(t *testing.T) {
	s := listen(t, &fakes{}, func(_ *Config, d *Deps) {
		d.Auth = tokens{
			"service": {Subject: "service:x", Scopes: []string{auth.View, auth.Events}},
			"user":    {Subject: "user:a", User: "user:a", Scopes: []string{auth.Operate}},
		}
	})
	for token, want := range map[string]string{
		"service": `{"authentication":true,"subject":"service:x","scopes":["view","events"]}`,
		"user":    `{"authentication":true,"subject":"user:a","user":"user:a","scopes":[]}`,
		"unknown": `{"authentication":true,"scopes":[]}`,
	} {
		res := roundTrip(s, "GET", "/v1/caller", "", "Authorization", "Bearer "+token)
		if text := strings.TrimSpace(bodyOf(t, res)); res.StatusCode != http.StatusOK || text != want {
			t.Errorf("%s: got %d %s, want %s", token, res.StatusCode, text, want)
		}
	}
}
