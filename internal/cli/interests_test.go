package cli

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/smartfeed/smartfeed/internal/command"
	"github.com/smartfeed/smartfeed/serving/client"
)

func TestInterests_PrintTables(t *testing.T) {
	addr := newServer(t)
	decidedAt := local(now)
	decided := ", by anonymous@127.0.0.1, " + decidedAt + "\n" // without authentication and without --operator
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"candidates": {[]string{"list"}, table(
			"TERM        STATE      SCORE  PINS  PEOPLE  RECENT  DECIDED",
			"oolong tea  candidate  1.50   25    3       50 %    no decision")},
		"decided": {[]string{"list", "--state", "rejected", "--limit", "7"}, table(
			"TERM        STATE     SCORE  PINS  PEOPLE  RECENT  DECIDED",
			"oolong tea  rejected  1.50   7     3       50 %    a brand, by ann, "+decidedAt)},
		"accept":         {[]string{"accept", "Oolong Tea"}, "oolong tea is accepted: interest:oolong tea" + decided},
		"accept for one": {[]string{"accept", "Oolong", "--interest", "interest:tea", "--operator", "ann"}, "oolong is accepted: interest:tea, by ann, " + decidedAt + "\n"},
		"reject":         {[]string{"reject", "Last Sale", "--reason", "advertising"}, "last sale is rejected: advertising" + decided},
		"merge":          {[]string{"merge", "kungfu", "Gong Fu"}, "kungfu is merged: gong fu" + decided},
		"reopen":         {[]string{"reopen", "last sale"}, "last sale is candidate: by anonymous@127.0.0.1, " + decidedAt + "\n"},
		"of a user": {[]string{"show", "user:a", "--limit", "3"}, table(
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

func TestInterests_SayWhyTermIsBlocked(t *testing.T) {
	addr := newServer(t)
	for want, args := range map[string][]string{
		`term "sale" is blocked by the configuration (interests.blocked_terms, interests.stop_words): advertising`: {"accept", "Sale"},
		`into "sale" is blocked by the configuration (interests.blocked_terms, interests.stop_words): advertising`: {"merge", "tea", "Sale"},
	} {
		var refused *client.Error
		_, err := at(t, addr, append([]string{"interests"}, args...)...)
		if !errors.As(err, &refused) || refused.Status != http.StatusBadRequest || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: got %v, want %s", args, err, want)
		}
	}
}

func TestRequests_ReportRefusals(t *testing.T) {
	addr := newServer(t)
	for _, line := range []string{
		"interests engagement interest:tea --days 401", "interests list --state odd", "interests merge tea Tea",
		"interests accept tea --interest pin:1", "interests accept", "dead-letters states --state lost",
	} {
		if _, err := at(t, addr, strings.Fields(line)...); err == nil || errors.As(err, new(*command.UsageError)) {
			t.Errorf("%s: got %v, want an error that is no wrong usage", line, err)
		}
	}
}
