package api

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/serving/auth"
)

func event(stream, verb, actor, object string) string {
	return fmt.Sprintf(`{"stream":%[1]q,"id":"%[2]s-%[3]s","time":"2026-11-20T10:00:00Z","actor":%[3]q,"verb":%[2]q,"object":%[4]q}`, stream, verb, actor, object) + "\n"
}

func TestEvents_RequireScopeOfStream(t *testing.T) {
	lines := map[string]string{
		schemas.StreamPins:       event("pins", "delete", "user:7", "pin:1"),
		schemas.StreamFollows:    event("follows", "follow", "user:7", "user:8"),
		schemas.StreamActions:    save + "\n",
		schemas.StreamUsers:      event("users", "update", "user:7", "user:7"),
		schemas.StreamCandidates: `{"stream":"candidates","id":"c-1","time":"2026-11-20T10:00:00Z","user":"user:7","source":"ml","candidates":[]}` + "\n",
		"delete":                 event("users", "delete", "user:7", "user:7"),
	}
	permitted := map[string][]string{auth.DeleteUsers: {"delete"}, auth.Events: {"pins", "follows", "actions", "users", "candidates"}}
	for _, stream := range permitted[auth.Events] {
		permitted[auth.EventsOf(stream)] = []string{stream}
	}
	permitted["events:unknown"], permitted["events:"] = nil, nil
	for scope, streams := range permitted {
		for stream, line := range lines {
			f := &fakes{}
			s := listen(t, f, func(_ *Config, d *Deps) { d.Auth = tokens{"t": {Subject: "service:x", Scopes: []string{scope}}} })
			want, published := http.StatusForbidden, 0
			if slices.Contains(streams, stream) {
				want, published = http.StatusAccepted, 1
			}
			res := roundTrip(s, "POST", "/v1/events", line, "Authorization", "Bearer t")
			expect.Equal(t, res.StatusCode, want, "scope %q, event of %s: status", scope, stream)
			expect.Equal(t, len(f.published), published, "scope %q, event of %s: requests published", scope, stream)
			if want == http.StatusForbidden && !strings.Contains(res.Header.Get("WWW-Authenticate"), `error="insufficient_scope"`) {
				t.Errorf("scope %q, event of %s: got the challenge %q", scope, stream, res.Header.Get("WWW-Authenticate"))
			}
		}
	}
}

func TestEvents_OneWithoutScopePublishesNothing(t *testing.T) {
	f := &fakes{}
	s := listen(t, f, func(_ *Config, d *Deps) { d.Auth = tokens{"t": {Subject: "service:x", Scopes: []string{auth.Events}}} })
	res := roundTrip(s, "POST", "/v1/events", save+"\n"+event("users", "delete", "user:7", "user:7"), "Authorization", "Bearer t")
	body := bodyOf(t, res)
	if res.StatusCode != 403 || len(f.published) != 0 || !strings.Contains(body, "needs the scope events:users:delete; nothing was published") {
		t.Errorf("got %d, %d requests published: %s", res.StatusCode, len(f.published), body)
	}
}

func bodyOf(t *testing.T, res *http.Response) string {
	t.Helper()
	return string(must.Get(io.ReadAll(res.Body))(t))
}

func TestEvents_AcceptedDeletesHaveAuditLines(t *testing.T) {
	var log logged
	f := &fakes{}
	s := listen(t, f, func(_ *Config, d *Deps) {
		d.Auth = tokens{"t": {Subject: "service:gdpr", Scopes: []string{auth.Events, auth.DeleteUsers}}}
		d.Log = log.logger(slog.LevelInfo)
	})
	body := save + "\n" + event("users", "delete", "user:7", "user:7") + event("pins", "delete", "user:8", "pin:9") + event("users", "update", "user:8", "user:8")
	res := roundTrip(s, "POST", "/v1/events", body, "Authorization", "Bearer t", "X-Request-Id", "r-1")
	expect.Equal(t, res.StatusCode, 202, "status")
	text := log.String()
	for _, want := range []string{
		`msg="delete accepted" operator=service:gdpr object=user:7 event=delete-user:7 request=r-1`,
		`msg="delete accepted" operator=service:gdpr object=pin:9 event=delete-user:8 request=r-1`,
	} {
		expect.Contains(t, text, want, "log")
	}
	if got := strings.Count(text, "delete accepted"); got != 2 || f.publisher != "service:gdpr" {
		t.Errorf("got %d audit lines, published as %q, want 2 and service:gdpr", got, f.publisher)
	}
}

func TestAudit_LogsChanges(t *testing.T) {
	for _, c := range []struct{ path, body, want string }{
		{"/v1/dead-letters/limits", `{"kind":"actions","rate":2.5,"priority":3}`, "kind=actions rate=2.5 priority=3"},
		{"/v1/dead-letters/retry", "", "retried=2 skipped=1"},
		{"/v1/dictionary/decisions", `{"term":"tea","state":"accepted","reason":""}`, "term=tea state=accepted"},
	} {
		var log logged
		s := listen(t, &fakes{}, func(cfg *Config, d *Deps) {
			authenticated(cfg, d)
			d.Log = log.logger(slog.LevelInfo)
		})
		header := []string{"Authorization", "Bearer " + auth.Operate}
		if c.body != "" {
			header = append(header, "Content-Type", "application/json")
		}
		res := roundTrip(s, "POST", c.path, c.body, header...)
		if text := log.String(); res.StatusCode != 200 || !strings.Contains(text, c.want) || !strings.Contains(text, "operator=operate-service") {
			t.Errorf("%s: got %d and the log\n%s\nwant %s in it", c.path, res.StatusCode, text, c.want)
		}
	}
}

func TestAudit_BoundsLinesOfRequestsWithoutToken(t *testing.T) {
	var log logged
	at := time.Unix(1_800_000_000, 0)
	s := listen(t, &fakes{}, func(cfg *Config, d *Deps) {
		authenticated(cfg, d)
		cfg.Limits.UserBurst = 15 // then 429
		d.Log, d.Now = log.logger(slog.LevelInfo), func() time.Time { return at }
	})
	for range 3 * linesPerSecond {
		roundTrip(s, "POST", "/v1/dead-letters/retry", "")
	}
	expect.Equal(t, strings.Count(log.String(), "msg=operated"), linesPerSecond, "lines")
	text := bodyOf(t, roundTrip(s, "GET", "/metrics", "", "Authorization", "Bearer "+auth.Operate))
	want := fmt.Sprintf("\nsmartfeed_http_audit_lines_omitted_total %d\n", 2*linesPerSecond)
	expect.Contains(t, text, want, "metrics")
	roundTrip(s, "POST", "/v1/dead-letters/retry", "", "Authorization", "Bearer "+auth.Operate)
	expect.Contains(t, log.String(), "operator=operate-service", "a line of a request with a token")
	at = at.Add(time.Minute)
	roundTrip(s, "POST", "/v1/dead-letters/retry", "")
	expect.Contains(t, log.String(), fmt.Sprintf("omitted=%d", 2*linesPerSecond), "the next line, with the number of omitted lines")
}
