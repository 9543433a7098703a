package test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"testing"

	"github.com/smartfeed/smartfeed/internal/testkit/eventually"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
)

// held delays a response until letGo is called or the test has ended.
func held(t *testing.T, answer any) (body func([]byte) any, letGo func()) {
	wait := make(chan struct{})
	return func([]byte) any {
		select {
		case <-wait:
		case <-t.Context().Done():
		}
		return answer
	}, func() { close(wait) }
}

// pageOf returns a page of two items whose numbers start at first.
func pageOf(first int, next string) map[string]any {
	return map[string]any{"items": []any{item(first, fmt.Sprint(first)), item(first+1, fmt.Sprint(first+1))}, "next": next, "degraded": []string{}}
}

// A visit can complete while an older page is in flight. That page would continue below replaced items, and leave a gap.
func leavesNoGapInAFeed(t *testing.T, b *Browser) {
	d := newDesk()
	asked := func(n int) func() bool { return func() bool { return len(d.bodies("GET /feed")) == n } }
	d.answers("GET /feed", 200, pageOf(1, "c1"))
	p := d.open(t, b, wide, "/?user=user:a")
	p.Wait("the feed", "document.querySelectorAll('.card').length === 2")
	d.counts <- 3
	p.Wait("new items are announced", "!document.querySelector('#fresh').hidden")
	visit, answerVisit := held(t, pageOf(11, "c2"))
	d.answers("GET /feed", 200, visit)
	p.Click("#fresh")
	eventually.True(t, "the visit is in flight", asked(2))
	older, answerOlder := held(t, pageOf(3, "c3"))
	d.answers("GET /feed", 200, older)
	p.Click("#more")
	eventually.True(t, "the older page is, too", asked(3))
	answerVisit()
	p.Wait("the visit's page", "document.querySelector('.card').dataset.pin === 'pin:11'")
	answerOlder()
	p.Wait("the older page is loaded", "!document.querySelector('#more').disabled")
	expect.NoDiff(t, p.Texts(".card h2"), []string{"11", "12"}, "items of the visit on the page")
}

// A plot is labeled with the parameters of its request, which are those of the form when it was submitted.
func labelsFunnelWithItsRequest(t *testing.T, b *Browser) {
	d := newDesk()
	answer, letGo := held(t, map[string]any{"steps": []any{map[string]any{"verb": "view", "users": 3}}})
	d.answers("GET /insights/funnel", 200, answer)
	p := d.open(t, b, wide, "/#insights")
	eventually.True(t, "the request of the funnel", func() bool { return len(d.bodies("GET /insights/funnel")) == 1 })
	Eval[string](p, "document.querySelector('#funnel-within').value = '1h'")
	letGo()
	p.Wait("the plot", "document.querySelector('#plot-funnel figcaption')?.textContent.includes('in order within a day')")
}

// Sources without a share have one target each; without their number, the page shows no targets.
func showsNoTargetsWithoutShare(t *testing.T, b *Browser) {
	d := newDesk()
	share := func(source string, target float64, items int) map[string]any {
		return map[string]any{"feed": "home", "source": source, "target": target, "items": items}
	}
	targets := func(shares ...any) []string {
		s := status()
		s["shares"] = shares
		d.answers("GET /status", 200, s)
		p := d.open(t, b, wide, "/#insights")
		p.Wait("the shares", "Boolean(document.querySelector('#plot-shares figure'))")
		return p.Texts("#plot-shares tbody td:nth-child(2)")
	}
	expect.NoDiff(t, targets(share("following", 0.6, 60), share("others", 0.2, 0)), []string{"100 %"}, "targets without others")
	expect.NoDiff(t, targets(share("following", 0.6, 60), share("others", 0.2, 40)), []string{"–", "–"}, "targets with others")
}

// An address with an unknown view shows the feed, even if it is the name of a property of every JavaScript object.
func recoversFromUnknownView(t *testing.T, b *Browser) {
	d := newDesk()
	p := d.open(t, b, wide, "/?user=user:a#constructor")
	p.Wait("the feed", "document.querySelectorAll('.card').length === 2 && !document.querySelector('#view-feed').hidden")
	asked := len(d.bodies("GET /status"))
	eventually.True(t, "it is looked again", func() bool { return len(d.bodies("GET /status")) > asked+1 })
}

// The page resends an action whose event may have arrived with the same id. It does not resend one that was accepted or is in
// flight.
func countsAnActionOnce(t *testing.T, b *Browser) {
	const late = "the broker has not acknowledged every event: send them again"
	d := newDesk()
	d.answers("GET /feed", 200, pageOf(1, "c1"))
	p := d.open(t, b, wide, "/?user=user:a", "400", "429", "ERR_")
	p.Wait("the feed", "document.querySelectorAll('.card').length === 2")
	press := func(verb string) {
		t.Helper()
		Eval[bool](p, "(document.querySelector('#announcer').textContent = '', true)")
		p.Click(".card[data-pin='pin:1'] [data-verb=" + verb + "]")
	}
	notice := func(text string) {
		p.Wait("the notice has "+text, "document.querySelector('#notice').textContent.includes('"+text+"')")
	}
	said := func(text string) {
		p.Wait("the announcement that "+text, "document.querySelector('#announcer').textContent === '"+text+"'")
	}
	taken := func(verb string) {
		said(verb + " sent")
		p.Wait("the button is pressed, without a warning", "document.querySelector('.card [data-verb="+verb+"]').getAttribute('aria-pressed') === 'true' && "+says("#notice", ""))
	}

	d.answers("POST /events", 503, map[string]any{"detail": late})
	press("save")
	notice(late)
	answer, letGo := held(t, map[string]any{"accepted": 1})
	d.answers("POST /events", 202, answer)
	press("save")
	press("save")
	said("save was sent already")
	letGo()
	taken("save")
	press("save")
	said("save was sent already")
	p.Click("#feed-form button")
	p.Wait("the button is unchanged after another visit", "document.querySelector('.card [data-verb=save]').getAttribute('aria-pressed') === 'true'")
	press("save")
	said("save was sent already")
	ids := idsOf(t, d.bodies("POST /events"))
	if len(ids) != 2 || ids[0] != ids[1] {
		t.Errorf("sent %q, want one id twice", ids)
	}

	d.answers("POST /events", 202, func([]byte) any { panic(http.ErrAbortHandler) })
	press("hide")
	notice("The outcome of hide is unknown: the server does not answer")
	d.answers("POST /events", 429, map[string]any{"detail": "too many"})
	press("hide")
	notice("The outcome of hide is unknown: too many")
	d.answers("POST /events", 202, map[string]any{"accepted": 1})
	press("hide")
	taken("hide")
	doubtful := idsOf(t, d.bodies("POST /events")[len(ids):])
	if slices.Contains(doubtful, ids[0]) || len(doubtful) < 3 || len(slices.Compact(doubtful)) != 1 {
		t.Errorf("sent %q, want another id, three times", doubtful)
	}

	d.answers("POST /events", 400, map[string]any{"detail": "line 1: too late"})
	press("click")
	notice("click was rejected: line 1: too late")
}

// idsOf returns the ids of events, in the order in which they were sent.
func idsOf(t *testing.T, sent []string) []string {
	t.Helper()
	var ids []string
	for _, body := range sent {
		var event struct{ ID string }
		if err := json.Unmarshal([]byte(body), &event); err != nil || event.ID == "" {
			t.Fatalf("sent %q, want an event with an id (%v)", body, err)
		}
		ids = append(ids, event.ID)
	}
	return ids
}
