package app

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/topics"
)

// deleteUser publishes the delete of a user, and checks the status code of the response, and that its body contains text.
func (s httpAPI) deleteUser(want int, text, id, user string) {
	s.t.Helper()
	s.answers(want, text, "/v1/events", lines(s.t, event(time.Now(), id, "users", user, "delete", user, nil)))
}

// usersWithOneEvent returns events with users who exist because of a single event. None of them exists only through another one who
// is deleted, because an erasure can take effect before the next delete is checked.
func usersWithOneEvent() []map[string]any {
	story := &story{now: time.Now().Add(-time.Minute)}
	story.add("users", "user:profile", "update", "user:profile", nil)
	story.add("follows", "user:reader", "follow", "interest:i", nil)
	story.add("follows", "user:kept", "follow", "user:followed", nil)
	story.add("follows", "user:blocker", "block", "board:b", nil)
	story.add("pins", "user:author", "create", "pin:1", nil)
	story.add("actions", "user:actor", "save", "pin:1", nil)
	return story.events
}

// checkDeletes checks that the API accepts first and repeated deletes of existing users, and rejects those of unknown
// users.
func (s *started) checkDeletes() {
	s.t.Helper()
	s.publish(usersWithOneEvent()...)
	s.api().deleteUser(http.StatusBadRequest, "unknown user", "never", "user:never")
	users := []string{"user:profile", "user:reader", "user:followed", "user:blocker", "user:author", "user:actor"}
	for range 2 {
		for _, user := range users {
			s.api().deleteUser(http.StatusAccepted, "", "delete-"+user, user)
		}
		s.wait()
	}
	if out, err := s.run("erase", "list"); err != nil || strings.Contains(out, "user:never") || strings.Count(out, "user:") != len(users) {
		s.t.Errorf("erase list: %v: %s, want %v", err, out, users)
	}
}

func TestDeleteUser_RejectsUnknownUser(t *testing.T) {
	t.Parallel()
	s := start(t, testConfig(t.TempDir()))
	s.checkDeletes()
	for i := range 3 { // deleted immediately, maybe before the first event is processed
		user := fmt.Sprint("user:short-", i)
		update := lines(t, event(time.Now(), "update-"+user, "users", user, "update", user, nil))
		s.api().answers(http.StatusAccepted, "", "/v1/events", update)
		s.api().deleteUser(http.StatusAccepted, "", "delete-"+user, user)
	}
}

// Another process owns the rows.
func TestDeleteUser_ChecksRowsOfOtherProcesses(t *testing.T) {
	t.Parallel()
	broker := startBroker(t)
	processor := startPieces(t, roleConfig(t, broker), processing(topics.RowGroups()))
	front := startPieces(t, roleConfig(t, broker), serving())
	front.checkDeletes()
	const hint = "send deletes of users to a process that serves feeds"
	processor.api().deleteUser(http.StatusBadRequest, hint, "elsewhere", "user:profile")
	processor.stop()
	front.api().deleteUser(http.StatusServiceUnavailable, "", "late", "user:unknown")
	front.api().deleteUser(http.StatusAccepted, "", "again", "user:profile") // the delete is known
}

// checkDirectory checks the lists of users, and what one of them follows and blocks.
func (s *started) checkDirectory() {
	s.t.Helper()
	story := &story{now: time.Now().Add(-time.Minute)}
	for _, followee := range []string{"user:ann", "board:b", "interest:tea"} {
		story.add("follows", "user:ada", "follow", followee, nil)
	}
	story.add("follows", "user:ann", "follow", "user:ada", nil)
	story.add("follows", "user:adam", "follow", "user:ada", nil)
	story.add("follows", "user:ada", "block", "user:troll", nil)
	s.publish(story.events...)
	s.wait()
	s.api().deleteUser(http.StatusAccepted, "", "delete-adam", "user:adam")
	s.wait()
	for path, want := range map[string]string{
		"/v1/users?prefix=user:ad":           `{"users":["user:ada"]}`,
		"/v1/users?prefix=user:a&limit=1":    `{"users":["user:ada"]}`,
		"/v1/users?prefix=user:a":            `{"users":["user:ada","user:ann"]}`,
		"/v1/users?prefix=user:zoe":          `{"users":[]}`,
		"/v1/users/user:ada/graph?limit=2":   `{"user":"user:ada","follows":[{"id":"board:b","weight":1},{"id":"interest:tea","weight":1}],"following":3,"blocks":["user:troll"],"blocking":1,"followers":1}`,
		"/v1/users/user:adam/graph":          `{"user":"user:adam","follows":[],"following":0,"blocks":[],"blocking":0,"followers":0}`,
		"/v1/users/user:never/graph?limit=2": `{"user":"user:never","follows":[],"following":0,"blocks":[],"blocking":0,"followers":0}`,
	} {
		expect.Equal(s.t, strings.TrimSpace(s.api().get(path)), want, "%s", path)
	}
}

func TestDirectory_ListsUsersAndTheirGraphs(t *testing.T) {
	t.Parallel()
	s := start(t, testConfig(t.TempDir()))
	s.checkDirectory()
	expect.Contains(t, s.api().get("/v1/config"), `"score_half_life":"16h38m8s"`, "the configuration")
}

// Another process owns the rows.
func TestDirectory_ReadsRowsOfOtherProcesses(t *testing.T) {
	t.Parallel()
	broker := startBroker(t)
	processor := startPieces(t, roleConfig(t, broker), processing(topics.RowGroups()))
	front := startPieces(t, roleConfig(t, broker), serving())
	front.checkDirectory()
	processor.stop()
	for _, path := range []string{"/v1/users?prefix=user:a", "/v1/users/user:ada/graph"} {
		front.api().answers(http.StatusServiceUnavailable, "", path, "")
	}
}
