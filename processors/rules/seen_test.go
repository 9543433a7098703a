package rules

import (
	"testing"
	"time"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
)

func TestFeeds_ValidatesSeen(t *testing.T) {
	for _, c := range []struct {
		seen    Seen
		timeout time.Duration
		want    string // in the error; "": none
	}{
		{"", 0, ""},
		{Delivered, 0, ""},
		{Reported, time.Minute, ""},
		{Reported, 30 * 24 * time.Hour, ""},
		{Reported, 0, "feeds.x.report_timeout: 0s: want 1m to 720h"},
		{Reported, 30*24*time.Hour + 1, "want 1m to 720h"},
		{"shown", 0, `feeds.x.seen: "shown": want delivered or reported`},
		{Delivered, 1, ""}, // inherited from another feed
	} {
		feed := Default()["plain"]
		feed.Seen, feed.ReportTimeout = c.seen, c.timeout
		expect.Error(t, Feeds{"x": feed}.Validate(), c.want, "%q, %s", c.seen, c.timeout)
	}
}
