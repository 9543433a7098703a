package interests_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/proctest"
	"github.com/smartfeed/smartfeed/processors/interests"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// Strengths and the recent parts of terms are sums of all events. A trim deletes the weakest interests.
func TestMarks_StrengthsAreSums(t *testing.T) {
	cfg := interests.DefaultConfig()
	cfg.MaxInterests, cfg.MinPins, cfg.MinAuthors = 4, 1, 1
	r, now := newRig(t, cfg, nil), schemas.MicrosOf(time.Now())
	aMonthAgo := schemas.MicrosOf(time.Now().AddDate(0, 0, -30)) // a half-life
	r.mark(4, like("interest:old", now))
	r.mark(8, like("interest:late", aMonthAgo))
	r.mark(3, hasTerm("oolong", aMonthAgo))
	r.mark(10, like("interest:new", now))
	r.mark(2, hasTerm("sencha", now))
	for n := range 3 {
		r.mark(1, like(schemas.InterestID(fmt.Sprint("interest:once-", n)), now))
	}
	r.WaitIdle()
	r.wantStrengths(map[schemas.InterestID]float64{"interest:new": 10, "interest:old": 4, "interest:late": 4, "interest:once-0": 1})
	r.wantRecent(map[string]float64{"oolong": 0.5, "sencha": 1})
}

// marked is the user whose partition marks are sent to.
const marked = "user:1"

func like(interest schemas.InterestID, at schemas.Micros) *schemas.InterestMarks {
	return &schemas.InterestMarks{Likes: []schemas.LikeMark{{User: marked, Interest: interest, Pin: "pin:1", Verb: "save", Weight: 1, Time: at}}}
}

func hasTerm(term string, at schemas.Micros) *schemas.InterestMarks {
	return &schemas.InterestMarks{Terms: []schemas.TermMark{{Term: term, Author: "user:2", Time: at}}}
}

func (r *rig) mark(times int, m *schemas.InterestMarks) {
	for range times {
		proctest.PublishTo(r.Wire, r.Streams.InterestMarks, topics.Partition(marked, r.Kafka.Partitions), "k", time.Time{}, m)
	}
}

// approximately tolerates the decay during a test.
var approximately = cmpopts.EquateApprox(0.01, 0)

// wantStrengths checks the user's current interests, and that the reader returns them.
func (r *rig) wantStrengths(want map[schemas.InterestID]float64) {
	r.t.Helper()
	got := read(r, func(i interests.Reader) ([]schemas.UserInterest, error) {
		i.Now = time.Now
		return i.Interests(r.t.Context(), marked, 10)
	})
	expect.Error(r.t, expect.ErrorOf(json.Marshal(got)), "", "encode interests as JSON")
	all, strengths, shares, wantShares := 0.0, map[schemas.InterestID]float64{}, map[schemas.InterestID]float64{}, map[schemas.InterestID]float64{}
	for _, strength := range want {
		all += strength
	}
	for id, strength := range want {
		wantShares[id] = strength / all
	}
	for _, i := range got {
		strengths[i.Interest], shares[i.Interest] = i.Strength, i.Share
	}
	expect.NoDiffBut(r.t, approximately, strengths, want, "strengths")
	expect.NoDiffBut(r.t, approximately, shares, wantShares, "shares")
}

// wantRecent checks the remaining part of each term's pins.
func (r *rig) wantRecent(want map[string]float64) {
	r.t.Helper()
	got := map[string]float64{}
	for _, term := range read(r, func(i interests.Reader) ([]schemas.DictionaryTerm, error) {
		i.Now = time.Now
		return i.Terms(r.t.Context(), topics.Partition(marked, r.Kafka.Partitions), 10, nil)
	}) {
		got[term.Term] = term.Recent
	}
	expect.NoDiffBut(r.t, approximately, got, want, "recent parts of terms")
}
