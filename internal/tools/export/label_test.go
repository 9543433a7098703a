package export

import (
	"strings"
	"testing"
	"time"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/schemas"
)

func TestParseLabels(t *testing.T) {
	allowed := schemas.DefaultVerbs()
	got := must.Get(ParseLabels([]string{"save=24h", "hide=90m"}, allowed))(t)
	expect.NoDiff(t, got, Labels{schemas.Hide: 90 * time.Minute, schemas.Save: 24 * time.Hour}, "labels")
	for text, want := range map[string]string{
		"":                  "label: want at least one",
		"save":              `label: "save": want VERB=WINDOW`,
		"like=1h":           `label: "like=1h": unknown verb: want one of [click closeup hide report save view]`,
		"save=0s":           "window: want a duration above 0, at most 168h0m0s",
		"save=169h":         "window: want a duration above 0",
		"save=day":          "window: want a duration above 0",
		"save=1h save=2h":   "another window already",
		"save=1h save=1h":   "another window already",
		"save=1h view=-24h": "window: want",
	} {
		expect.Error(t, expect.ErrorOf(ParseLabels(strings.Fields(text), allowed)), want, "%q", text)
	}
}
