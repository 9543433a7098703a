package cli

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/smartfeed/smartfeed/internal/command"
	"github.com/smartfeed/smartfeed/serving/client"
)

func TestInterestsAsTables(t *testing.T) {
	addr := newServer(t)
	decidedAt := local(now)
	decided := ", by anonymous@127.0.0.1, " + decidedAt + "\n" // without authentication and without --operator
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"candidates": {[]string{"list"}, table(
			"TERM        STATE      SCORE  PINS  PEOPLE  RECENT  DECIDED",
			"oolong tea  candidate  1.50   25    3       50 %    nothing is decided")},
		"decided": {[]string{"list", "--state", "rejected", "--limit", "7"}, table(
			"TERM        STATE     SCORE  PINS  PEOPLE  RECENT  DECIDED",
			"oolong tea  rejected  1.50   7     3       50 %    a brand, by ann, "+decidedAt)},
		"accept":         {[]string{"accept", "Oolong Tea"}, "oolong tea is accepted: interest:oolong tea" + decided},
		"accept for one": {[]string{"accept", "Oolong", "--interest", "interest:tea", "--operator", "ann"}, "oolong is accepted: interest:tea, by ann, " + decidedAt + "\n"},
		"reject":         {[]string{"reject", "Last Sale", "--reason", "advertising"}, "last sale is rejected: advertising" + decided},
		"merge":          {[]string{"merge", "kungfu", "Gong Fu"}, "kungfu is merged: gong fu" + decided},
		"reopen":         {[]string{"reopen", "last sale"}, "last sale is candidate: by anonymous@127.0.0.1, " + decidedAt + "\n"},
		"of a user": {[]string{"of", "user:a", "--limit", "3"}, table(
			"INTEREST       STRENGTH  SHARE  EVIDENCE",
			"interest:tea   2.00      100 %  save pin:1",
			"interest:none  0.00      0 %")},
		"engagement": {[]string{"engagement", "interest:tea"}, table(
			"SOURCE     IMPRESSION  \uFFFD[2J  CLICK  SAVE",
			"direct     0           5     4      0",
			"following  120         0     0      28")},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := at(t, addr, append([]string{"interests"}, c.args...)...)
			if err != nil || got != c.want {
				t.Errorf("got %v\n%s\nwant\n%s", err, got, c.want)
			}
		})
	}
}

func TestInterestsAsJSON(t *testing.T) {
	addr := newServer(t)
	for path, args := range map[string][]string{
		"/v1/dictionary?state=merged&limit=9":        {"list", "--state", "merged", "--limit", "9"},
		"/v1/users/user:a/interests?limit=2":         {"of", "user:a", "--limit", "2"},
		"/v1/interests/interest:t/engagement?days=3": {"engagement", "interest:t", "--days", "3"},
		"/v1/dictionary?state=blocked&limit=25":      {"list", "--state", "blocked"},
	} {
		res, err := http.Get(addr + path)
		if err != nil {
			t.Fatal(err)
		}
		want, err := io.ReadAll(res.Body)
		if err := errors.Join(err, res.Body.Close()); err != nil {
			t.Fatal(err)
		}
		got, err := at(t, addr, append([]string{"interests", "-o", "json"}, args...)...)
		if err != nil || got != string(want) {
			t.Errorf("%v: got %v %s, want %s", args, err, got, want)
		}
	}
}

func TestInterestsSayWhyATermIsBlocked(t *testing.T) {
	addr := newServer(t)
	for want, args := range map[string][]string{
		`term "sale" is blocked by the configuration (interests.block, interests.stop): advertising`: {"accept", "Sale"},
		`into "sale" is blocked by the configuration (interests.block, interests.stop): advertising`: {"merge", "tea", "Sale"},
	} {
		var refused *client.Error
		_, err := at(t, addr, append([]string{"interests"}, args...)...)
		if !errors.As(err, &refused) || refused.Status != http.StatusBadRequest || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: got %v, want %s", args, err, want)
		}
	}
}

func TestInterestsRefuses(t *testing.T) {
	addr := newServer(t)
	for name, c := range map[string]struct {
		args  []string
		usage bool // the command line is invalid, and no server is called
	}{
		"no command":         {nil, true},
		"of no user":         {[]string{"of", "pin:1"}, true},
		"engagement of none": {[]string{"engagement", "user:a"}, true},
		"too many days":      {[]string{"engagement", "interest:tea", "--days", "401"}, false},
		"a state that is no": {[]string{"list", "--state", "odd"}, false},
		"merged into itself": {[]string{"merge", "tea", "Tea"}, false},
		"no such interest":   {[]string{"accept", "tea", "--interest", "pin:1"}, false},
		"no reason":          {[]string{"reject", "tea"}, true},
		"no term":            {[]string{"accept"}, false},
	} {
		_, err := at(t, addr, append([]string{"interests"}, c.args...)...)
		if err == nil || errors.As(err, new(*command.UsageError)) != c.usage {
			t.Errorf("%s: got %v, want an error, wrong usage: %t", name, err, c.usage)
		}
	}
}
