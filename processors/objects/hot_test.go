package objects

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/golden"
	"github.com/smartfeed/smartfeed/schemas"
)

// The sent counts lag by at most an eighth, or one. A pin with n impressions and saves is sent O(log n) times.
func TestExposure_SentCountsAreCloseAndFew(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		from := rapid.Int64Range(1, 50).Draw(t, "from")
		events := rapid.IntRange(1, 3000).Draw(t, "events")
		saves := rapid.IntRange(2, 50).Draw(t, "one save in")
		var h exposure
		sent := 0
		for i := range events {
			what := schemas.ImpressionCount
			if i%saves == 0 {
				what = "save"
			}
			h.add(what, 1)
			if h.due(from) {
				h.sentShown, h.sentSaved = h.shown, h.saved
				sent++
			}
			if behind := max(h.shown-h.sentShown, h.saved-h.sentSaved); h.sent() && behind > max(h.shown, h.saved)/8+1 {
				t.Fatalf("%+v: sent counts lag by %d", h, behind)
			}
			expect.Equal(t, h.sent(), h.shown+h.saved >= from, "%+v: sent from %d on", h, from)
		}
		if sent > 140 { // about 2 · (8 + log(3000)/log(9/8))
			t.Fatalf("sent %d times of %d", sent, events)
		}
	})
}

func TestExposure_KeepsItsFormat(t *testing.T) {
	golden.Row(t, exposure{shown: 300, saved: 2, sentShown: 290, sentSaved: 2, last: -5}, "01"+"d804"+"04"+"c404"+"04"+"09")
}
