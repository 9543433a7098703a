package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/schemas"
)

// knownFunc implements KnownUsers.
type knownFunc func(context.Context, schemas.UserID) (bool, error)

func (f knownFunc) Known(ctx context.Context, user schemas.UserID) (bool, error) { return f(ctx, user) }

// sendDeletes sends events to a server with the given KnownUsers. It returns the answer, its problem, the number of
// published requests, and the time it took.
func sendDeletes(t *testing.T, known KnownUsers, lines string) (res *http.Response, p Problem, published int, took time.Duration) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{}
		s := listen(t, f, func(_ *Config, d *Deps) { d.Known = known })
		began := time.Now()
		res = roundTrip(s, "POST", "/v1/events", lines)
		took, published = time.Since(began), len(f.published)
		must.OK(t, json.NewDecoder(res.Body).Decode(&p))
	})
	return res, p, published, took
}

func deleteOf(user string) string { return event("users", "delete", user, user) }

func TestEvents_RejectsDeletesOfUnknownUsers(t *testing.T) {
	known := knownFunc(func(_ context.Context, user schemas.UserID) (bool, error) { return user == "user:known", nil })
	body := save + "\n\n" + deleteOf("user:never") + deleteOf("user:known") +
		event("users", "update", "user:new", "user:new") + deleteOf("user:new") +
		deleteOf("user:late") + event("follows", "follow", "user:late", "user:known") +
		event("pins", "delete", "user:other", "pin:1") + deleteOf("user:other") + deleteOf("user:never")
	res, p, published, _ := sendDeletes(t, known, body)
	if res.StatusCode != http.StatusBadRequest || published != 0 || !strings.Contains(p.Detail, "4 lines are bad; nothing was published") {
		t.Errorf("got %d: %s, %d requests published, want 400 and none", res.StatusCode, p.Detail, published)
	}
	var got []string
	for _, text := range p.Errors {
		line, _, _ := strings.Cut(text, ": send")
		got = append(got, line)
		expect.Contains(t, text, "smartfeed erase --unknown USER", "how to delete the unknown id")
	}
	want := []string{
		`line 3: unknown user "user:never"`, `line 7: unknown user "user:late"`, `line 10: unknown user "user:other"`, `line 11: unknown user "user:never"`,
	}
	expect.NoDiff(t, got, want, "rejected lines")
}

func TestEvents_WaitsForFirstEventsOfDeletedUser(t *testing.T) {
	var checks atomic.Int64
	arriving := knownFunc(func(context.Context, schemas.UserID) (bool, error) { return checks.Add(1) == 3, nil })
	res, p, published, took := sendDeletes(t, arriving, deleteOf("user:7"))
	if res.StatusCode != http.StatusAccepted || published != 1 || took != 2*knownEvery {
		t.Errorf("got %d after %s: %s, %d requests published, want 202 after %s", res.StatusCode, took, p.Detail, published, 2*knownEvery)
	}
}

func TestEvents_UncheckableDeletesAreUnavailable(t *testing.T) {
	for name, c := range map[string]struct {
		known knownFunc
		took  time.Duration
	}{
		"failing owner": {func(context.Context, schemas.UserID) (bool, error) { return false, errors.New("secret inside") }, 0},
		"owner that stops answering": {func(ctx context.Context, user schemas.UserID) (bool, error) {
			if user == "user:0" {
				return true, nil
			}
			<-ctx.Done()
			return false, ctx.Err()
		}, knownTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			var body strings.Builder
			for i := range 24 {
				body.WriteString(deleteOf(fmt.Sprint("user:", i)))
			}
			res, p, published, took := sendDeletes(t, c.known, body.String())
			if res.StatusCode != http.StatusServiceUnavailable || res.Header.Get("Retry-After") == "" || published != 0 || took != c.took {
				t.Errorf("got %d, Retry-After %q after %s, %d requests published, want 503 after %s and none",
					res.StatusCode, res.Header.Get("Retry-After"), took, published, c.took)
			}
			expect.Contains(t, p.Detail, "nothing was published", "detail")
			expect.Omits(t, p.Detail, "secret", "detail")
		})
	}
}

func TestEvents_BoundsDeletesOfUsers(t *testing.T) {
	var mu sync.Mutex
	var running, most int
	known := knownFunc(func(context.Context, schemas.UserID) (bool, error) {
		mu.Lock()
		running++
		most = max(most, running)
		mu.Unlock()
		time.Sleep(time.Millisecond)
		mu.Lock()
		defer mu.Unlock()
		running--
		return true, nil
	})
	for n, want := range map[int]int{maxUserDeletes: http.StatusAccepted, maxUserDeletes + 1: http.StatusRequestEntityTooLarge} {
		var body strings.Builder
		for i := range n {
			body.WriteString(deleteOf(fmt.Sprint("user:", i)))
		}
		res, p, _, _ := sendDeletes(t, known, body.String())
		expect.Equal(t, res.StatusCode, want, "%d deletes: %s", n, p.Detail)
	}
	expect.Equal(t, most, 8, "users looked up at once")
}

func TestEvents_RejectsDeletesWithoutKnownUsers(t *testing.T) {
	res, p, published, _ := sendDeletes(t, nil, deleteOf("user:7"))
	if res.StatusCode != http.StatusBadRequest || published != 0 || !strings.Contains(p.Detail, "send deletes of users to a process that serves feeds") {
		t.Errorf("got %d: %s, %d requests published, want 400 and none", res.StatusCode, p.Detail, published)
	}
}
