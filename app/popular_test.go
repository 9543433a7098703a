package app

import (
	"fmt"
	"testing"
	"time"

	"github.com/smartfeed/smartfeed/internal/testkit/eventually"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/serving/feed"
)

// A user without followees and history gets the pins that several others act on, in home, until a pin is deleted.
func TestPopular_NewUserGetsFeed(t *testing.T) {
	t.Parallel()
	s := start(t, testConfig(t.TempDir()))
	now := time.Now()
	pins, actions := story{prefix: "pin"}, story{prefix: "act"}
	for n := range 4 {
		pins.addAt(now.Add(-time.Hour), "pins", fmt.Sprintf("user:author-%d", n), "create", fmt.Sprintf("pin:%d", n), nil)
	}
	s.publish(pins.events...) // an action that arrives before its pin does not count
	for user := range 6 {
		actions.addAt(now, "actions", fmt.Sprintf("user:fan-%d", user), "save", "pin:1", nil)
		actions.addAt(now, "actions", fmt.Sprintf("user:fan-%d", user), "click", "pin:2", nil)
		actions.addAt(now, "actions", "user:pusher", "save", "pin:3", nil)
	}
	s.publish(actions.events...)
	// A peek shows whether the global table of popular pins has the records.
	feedOf := func(user, query string) (text string) {
		for _, item := range get[feed.Page](s.api(), "/v1/users/"+user+"/feed?limit=10"+query).Items {
			text += fmt.Sprintf("%s from %s, ", item.ID, item.Source)
		}
		return text
	}
	const both, second = "pin:1 from popular, pin:2 from popular, ", "pin:2 from popular, "
	eventually.True(t, "both pins are popular", func() bool { return feedOf("user:first", "&peek=true") == both })
	expect.Equal(t, feedOf("user:first", ""), both, "a new user")
	expect.Equal(t, feedOf("user:author-1", ""), second, "the author")
	s.publish(event(now, "gone", "pins", "user:author-1", "delete", "pin:1", nil))
	eventually.True(t, "a deleted pin leaves", func() bool { return feedOf("user:second", "&peek=true") == second })
}
