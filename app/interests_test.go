package app

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/smartfeed/smartfeed/internal/testkit/eventually"
	"github.com/smartfeed/smartfeed/schemas"
)

// A term that many authors write becomes an interest when an operator accepts it. Users who act on its pins have it,
// with the evidence, and the engagement with its pins is reported by source.
func TestATermBecomesAnInterest(t *testing.T) {
	t.Parallel()
	s := start(t, testConfig(t.TempDir()))
	now := time.Now()
	var events []map[string]any
	event := func(stream, verb, actor, object string, more map[string]any) {
		e := map[string]any{"stream": stream, "verb": verb, "actor": actor, "object": object, "id": fmt.Sprint("i-", len(events)),
			"time": now.Add(time.Duration(len(events)-100) * time.Second).UnixMicro()}
		for k, v := range more {
			e[k] = v
		}
		events = append(events, e)
	}
	for i := range 6 {
		author := fmt.Sprintf("user:a%d", i)
		event("follows", "follow", "user:reader", author, nil)
		event("pins", "create", author, fmt.Sprintf("pin:%d", i), map[string]any{"title": fmt.Sprintf("Wulong tea, no %d", i), "interests": []string{"interest:drinks"}})
	}
	s.publish(events...)
	d := s.door()
	says := func(path string, wants ...string) {
		t.Helper()
		text := strings.ReplaceAll(d.get(path), " ", "")
		for _, want := range wants {
			if !strings.Contains(text, want) {
				t.Errorf("%s: %.600s lacks %s", path, text, want)
			}
		}
	}
	says("/v1/dictionary", `{"terms":[{"term":"wulongtea","state":"candidate"`, `"pins":6,"people":6`)
	if status, body := d.send("/v1/dictionary/decisions", `{"term":"Wulong Tea","state":"accepted","interest":"interest:oolong","operator":"ann"}`); status != 200 {
		t.Fatalf("accept: %d %s", status, body)
	}
	if status, body := d.send("/v1/dictionary/decisions", `{"term":"tea","state":"rejected","reason":"too broad"}`); status != 200 {
		t.Fatalf("reject: %d %s", status, body)
	}
	if out, err := s.run("wait"); err != nil {
		t.Fatalf("wait: %v %s", err, out)
	}
	says("/v1/dictionary?state=accepted", `"term":"wulongtea"`, `"interest":"interest:oolong"`, `"operator":"ann"`, `"pins":6`)
	says("/v1/dictionary?state=rejected", `"reason":"toobroad"`)
	if text := d.get("/v1/dictionary"); strings.Contains(text, `"wulong tea"`) || !strings.Contains(text, `"wulong"`) {
		t.Errorf("candidates after the decisions: %s", text)
	}
	d.get("/v1/users/user:reader/feed?limit=10")
	events = events[:0]
	now = time.Now().Add(100 * time.Second)
	event("actions", "save", "user:reader", "pin:3", map[string]any{"id": "save"})
	event("actions", "click", "user:stranger", "pin:3", map[string]any{"id": "click"})
	s.publish(events...)
	says("/v1/users/user:reader/interests", `"interest":"interest:oolong"`, `"interest":"interest:drinks"`, `"pin":"pin:3","verb":"save"`)
	says("/v1/interests/interest:oolong/engagement", `"source":"following","counts":{"impression":6,"save":1}`, `"source":"direct","counts":{"click":1}`)
	if out, err := s.run("erase", "user:reader"); err != nil {
		t.Fatalf("erase: %v %s", err, out)
	}
	says("/v1/users/user:reader/interests", `{"interests":[]}`)
}

// send posts JSON and returns status and body.
func (s door) send(path, text string) (int, string) {
	s.t.Helper()
	res, err := http.Post(s.base+path, "application/json", strings.NewReader(text))
	if err != nil {
		s.t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return res.StatusCode, string(body)
}

// An accepted term that is blocked is no interest from the next start on. It is listed only as blocked, and accepting
// it again fails with the reason. After it has been unblocked, everything is as before.
func TestAnAcceptedTermIsBlocked(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t.TempDir())
	s := start(t, cfg)
	var events []map[string]any
	for i := range 6 {
		events = append(events, map[string]any{"stream": "pins", "verb": "create", "actor": fmt.Sprintf("user:a%d", i), "object": fmt.Sprintf("pin:%d", i),
			"id": fmt.Sprint("i-", i), "time": time.Now().UnixMicro(), "title": "Winter sale, oolong"})
	}
	s.publish(events...)
	all := func() map[string]string {
		said := map[string]string{}
		for _, state := range []schemas.TermState{schemas.TermCandidate, schemas.TermAccepted, schemas.TermMerged, schemas.TermBlocked} {
			for _, d := range get[struct {
				Terms []struct {
					Term, Reason string
					Pins         int
				}
			}](s.door(), "/v1/dictionary?limit=100&state="+string(state)).Terms {
				said[d.Term] += fmt.Sprintf("%s, %d pins %s", state, d.Pins, d.Reason)
			}
		}
		return said
	}
	lists := func(want map[string]string) {
		t.Helper()
		if diff := cmp.Diff(want, all()); diff != "" {
			t.Errorf("terms (-want +got):\n%s", diff)
		}
	}
	comeTo := func(want map[string]string) {
		t.Helper()
		eventually.True(t, "decisions are in force", func() bool { return maps.Equal(all(), want) })
	}
	decide := func(says string, args ...string) {
		t.Helper()
		if out, err := s.run(append([]string{"interests"}, args...)...); !strings.Contains(fmt.Sprint(out, err), says) {
			t.Errorf("%q: got %s, %v, want %s", args, out, err, says)
		}
	}
	decide("sale is accepted", "accept", "sale", "--interest", "interest:bargains")
	decide("oolong is merged", "merge", "oolong", "sale")
	decide("winter sale is accepted", "accept", "winter sale")
	before := map[string]string{"sale": "accepted, 6 pins ", "winter sale": "accepted, 6 pins ", "oolong": "merged, 6 pins ", "winter": "candidate, 6 pins "}
	comeTo(before)
	s.stop()

	cfg.Interests.Block = map[string]string{"Sale": "advertising", "gewgaw": "a brand"}
	s = start(t, cfg)
	blocked := maps.Clone(before)
	blocked["sale"], blocked["gewgaw"] = "blocked, 0 pins advertising", "blocked, 0 pins a brand"
	lists(blocked)
	decide(`term "sale" is blocked by the configuration (interests.block, interests.stop): advertising`, "accept", "Sale")
	decide(`into "gewgaw" is blocked`, "merge", "winter", "gewgaw")
	s.stop()

	cfg.Interests.Block, cfg.Interests.Stop = nil, []string{"sale", "winter"}
	s = start(t, cfg)
	stopped := map[string]string{
		"sale": "blocked, 0 pins sale is a stop word", "winter sale": "blocked, 0 pins winter is a stop word", "oolong": before["oolong"],
	}
	lists(stopped)
	decide("sale is a stop word", "accept", "big sale")
	decide("winter sale is candidate", "reopen", "winter sale")
	delete(stopped, "winter sale")
	comeTo(stopped)
	s.stop()

	cfg.Interests.Stop = nil
	s = start(t, cfg)
	before["winter sale"] = "candidate, 6 pins "
	lists(before)
}
