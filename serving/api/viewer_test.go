package api

import (
	"testing"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/serving/auth"
)

// The viewer is the user of the token. A service can name a viewer.
func TestViewer_IsTheTokensUserOrNamedByService(t *testing.T) {
	for _, path := range []string{
		"/v1/users/user:c/pins", "/v1/boards/board:c/pins", "/v1/interests/interest:c/pins", "/v1/pins/pin:c/related",
	} {
		for name, c := range map[string]struct {
			token, query string
			code         int
			want         []any
		}{
			"user":                     {"a", "", 200, []any{schemas.UserID("user:a")}},
			"user, named":              {"a", "?viewer=user:a", 200, []any{schemas.UserID("user:a")}},
			"user, another one named":  {"a", "?viewer=user:b", 400, nil},
			"service":                  {auth.Feed, "", 200, []any{schemas.UserID("")}},
			"service, a user named":    {auth.Feed, "?viewer=user:b", 200, []any{schemas.UserID("user:b")}},
			"service, no user's name":  {auth.Feed, "?viewer=board:b", 400, nil},
			"no authentication":        {"", "", 200, []any{schemas.UserID("")}},
			"no authentication, named": {"", "?viewer=user:b", 200, []any{schemas.UserID("user:b")}},
		} {
			t.Run(path+" "+name, func(t *testing.T) { checkSeen(t, path+c.query, c.token, c.code, c.want) })
		}
	}
}

func TestWhy_IsMaskedForUsers(t *testing.T) {
	for token, masked := range map[string]bool{"a": true, auth.Feed: false, "": false} {
		t.Run(token, func(t *testing.T) { checkSeen(t, "/v1/users/user:a/feed/why?pin=pin:1", token, 200, []any{masked}) })
	}
}

// checkSeen sends a request, and compares the viewers that the feed received.
func checkSeen(t *testing.T, path, token string, code int, want []any) {
	t.Helper()
	f, change := &fakes{}, func(*Config, *Deps) {}
	var header []string
	if token != "" {
		change, header = authenticated, []string{"Authorization", "Bearer " + token}
	}
	res := roundTrip(listen(t, f, change), "GET", path, "", header...)
	expect.Equal(t, res.StatusCode, code, "status of %s", bodyOf(t, res))
	expect.NoDiff(t, f.seen, want, "result")
}
