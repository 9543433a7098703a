package test

import (
	"fmt"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp/kb"

	"github.com/smartfeed/smartfeed/internal/testkit/eventually"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
)

// Opening a user changes nothing. A visit whose answer was lost is repeated with its key; the next one has another key.
func visitsOnlyByItsButton(t *testing.T, b *Browser) {
	d := newDesk()
	p := d.open(t, b, wide, "/?user=user:a", "ERR_")
	visits := func() []string {
		d.mu.Lock()
		defer d.mu.Unlock()
		return slices.Clone(d.keys)
	}
	p.Wait("the preview", "document.querySelectorAll('.card').length === 2 && !document.querySelector('#preview').hidden")
	p.Choose("#name", "plain")
	p.Wait("the preview of another feed", "location.search.includes('plain') && document.querySelectorAll('.card').length === 2")
	p.Fill("#user", "b")
	p.Press(kb.Enter)
	p.Wait("the preview of another user", "location.search.includes('user%3Ab') && document.querySelectorAll('.card').length === 2")
	if got, peeks := visits(), d.queries("GET /feed", "peek"); len(got) > 0 || !slices.Equal(peeks, []string{"true", "true", "true"}) {
		t.Errorf("%d visits and the peeks %q, want no visit and three peeks", len(got), peeks)
	}
	page := d.said["GET /feed"].body
	d.answers("GET /feed", 200, func([]byte) any { panic(http.ErrAbortHandler) })
	p.Click("#visit")
	p.Wait("the answer is lost", "document.querySelector('#notice').textContent.includes('the server does not answer')")
	d.answers("GET /feed", 200, page)
	p.Click("#visit")
	p.Wait("the visit", "document.querySelector('#preview').hidden && document.activeElement.id === 'feed-title'")
	p.Click("#visit")
	eventually.True(t, "another visit has another key", func() bool { return len(slices.Compact(visits())) == 2 })
	if got := visits(); got[0] != got[1] || len(got[0]) != 32 { // the browser repeats requests of aborted connections itself
		t.Errorf("the keys of the visits are %q, want one key at least twice, and then another", got)
	}
}

// Typing searches users by the start of their ids.
func searchesUsers(t *testing.T, b *Browser) {
	d := newDesk()
	p := d.open(t, b, wide, "/")
	buttons := func(want ...string) {
		t.Helper()
		p.Wait(fmt.Sprintf("the users %q", want), "JSON.stringify([...document.querySelectorAll('#suggested button')].map((e) => e.textContent)) === "+quoted(quoted(want)))
	}
	p.Wait("users without a search", "document.querySelectorAll('#suggested button').length === 2")
	p.Wait("hostile ids as text", "document.querySelector('#suggested button').textContent === "+quoted(hostile))
	d.answers("GET /users", 200, map[string]any{"users": []string{"user:ada", "user:adam"}})
	p.Fill("#user", "user:ad")
	buttons("ada", "adam")
	p.Wait("options of the field", "[...document.querySelectorAll('#users option')].map((e) => e.value).join() === 'user:ada,user:adam'")
	got := d.queries("GET /users", "prefix")
	expect.Equal(t, got[len(got)-1], "user:ad", "last search")
	p.CheckAccessible("found users")
	d.answers("GET /users", 200, map[string]any{"users": []string{}})
	p.Fill("#user", "zoe")
	p.Wait("no user", says("#suggest-status", "No user starts with “zoe”."))
	announced(t, p, "#suggest-status")
	d.answers("GET /users", 503, map[string]any{"detail": "the owners are unavailable"})
	p.Fill("#user", "ada")
	p.Wait("the error", says("#suggest-status", "Cannot read the users: the owners are unavailable."))
	d.answers("GET /users", 200, map[string]any{"users": []string{"user:ada"}})
	p.Fill("#user", "ad")
	buttons("ada")
	p.Click("#suggested button")
	p.Wait("the feed of the user", "location.search.includes('user%3Aada') && document.activeElement.id === 'feed-title'")
	p.Go(Eval[string](p, "location.origin"))
	p.Wait("the user is a recent one", "document.querySelectorAll('#suggested button').length === 1")
}

// Scores have a term of the creation since 1970; the page shows them relative to now, with the stored value as tooltip.
func showsRelativeScores(t *testing.T, b *Browser) {
	halfLife := 16*time.Hour + 38*time.Minute + 8*time.Second
	now := math.Ln2 * float64(time.Now().Unix()) / halfLife.Seconds()
	d := newDesk()
	fresh, old := item(1, "fresh"), item(2, "old")
	fresh["score"], old["score"] = now+1.25, now-3.5
	d.answers("GET /feed", 200, map[string]any{"items": []any{fresh, old, item(3, "external")}, "next": nil, "degraded": []any{}})
	d.answers("GET /feed/why", 200, map[string]any{"user": "user:a", "pin": "pin:1", "feed": "home", "fate": "next", "by": []any{}, "shown": nil, "degraded": []any{}, "candidates": []any{
		map[string]any{"source": "following", "rank": 1, "edges": []any{}, "score": now + 1.25, "parts": map[string]any{"created": now - 0.75, "edge": 2}},
	}})
	p := d.open(t, b, wide, "/?user=user:a")
	p.Wait("scores relative to now, and a score without the term as it is", "[...document.querySelectorAll('.score')].map((e) => e.textContent).join() === '+1.25,−3.50,1.50'")
	p.Wait("the stored value", fmt.Sprintf("document.querySelector('.score').title.includes('stored: %.3f')", math.Trunc(1000*(now+1.25))/1000))
	p.Click(".card .why-button")
	p.Wait("the terms", "/^created−0.75[0-9]edge.2.000score.1.2[45][0-9]$/.test(document.querySelector('.why tbody').textContent)")
	d.answers("GET /pools", 200, map[string]any{"source": "following", "total": 1, "items": []any{
		map[string]any{"pin": "pin:1", "score": now + 1.25, "time": "2026-11-20T10:00:00Z", "author": "user:a", "board": nil, "interests": []string{}},
	}})
	Eval[string](p, "location.hash = 'pools'")
	p.Wait("the best candidate", "document.querySelector('.pool h2 span')?.textContent === ' 1 candidate, best +1.25'")
}

// Both pages are peeks. The view names what differs.
func comparesFeeds(t *testing.T, b *Browser) {
	d := newDesk()
	other := item(2, "two")
	other["source"], other["score"] = "interest", 2.5
	d.answers("GET /feed", 200, func(query []byte) any {
		values, _ := url.ParseQuery(string(query)) // otherwise there is no feed
		items := []any{item(1, "one"), item(2, "two"), item(3, hostile)}
		if values.Get("feed") == "plain" {
			items = []any{other, item(3, hostile), item(4, "four")}
		}
		return map[string]any{"items": items, "next": nil, "degraded": []string{"store"}[:len(values.Get("feed"))%2]}
	})
	p := d.open(t, b, View{Width: 390, Height: 844, Phone: true}, "/?user=user:a#compare")
	lines := func(side string) []string {
		return Eval[[]string](p, "[...document.querySelectorAll('#compare-"+side+"-items > li')].map((e) => [e.querySelector('strong').textContent, ...[...e.querySelectorAll('.difference')].map((d) => d.textContent)].join('|'))")
	}
	p.Wait("the summary", says("#compare-summary", "2 items in both, 2 of them at another position; 1 only in home, 1 only in plain."))
	want := []string{"one|only here", "two|1 lower|there from interest|score −1.00", hostile + "|1 lower"}
	expect.NoDiff(t, lines("a"), want, "the first feed")
	want = []string{"two|1 higher|there from following|score +1.00", hostile + "|1 higher", "four|only here"}
	expect.NoDiff(t, lines("b"), want, "the second feed")
	p.Wait("the degraded reasons of one side", says("#compare-b-status", "Unavailable: store.")+" && "+says("#compare-a-status", ""))
	p.CheckAccessible("two feeds")
	p.Shot("compare-phone")
	if peeks := d.queries("GET /feed", "peek"); slices.ContainsFunc(peeks, func(peek string) bool { return peek != "true" }) {
		t.Errorf("requested pages with peek %q, want only peeks", peeks)
	}
	d.answers("GET /feed", 503, map[string]any{"detail": "too full"})
	p.Click("#compare-refresh")
	p.Wait("the errors", says("#compare-a-status", "Cannot read the feed home: too full.")+" && "+says("#compare-b-status", "Cannot read the feed plain: too full."))
	p.Wait("no items and no summary", "document.querySelectorAll('.compared > li').length === 0 && "+says("#compare-summary", ""))
	s := status()
	s["shares"] = []any{map[string]any{"feed": "home", "arm": "calm", "source": "following", "target": 1, "items": 0}}
	d.answers("GET /status", 200, s)
	p.Wait("experiment arms", "[...document.querySelectorAll('#compare-b option')].map((e) => e.value).join() === 'home,plain,calm'")
	d.answers("GET /feed", 200, map[string]any{"items": []any{item(1, "one")}, "next": nil, "degraded": []any{}})
	p.Choose("#compare-b", "calm")
	p.Wait("no differences", says("#compare-summary", "1 item in both, 0 of them at another position; 0 only in home, 0 only in calm.")+" && !document.querySelector('.difference')")
}

// The graph has the followees by kind, the followers and the blocks; users lead to their graphs.
func showsGraph(t *testing.T, b *Browser) {
	d := newDesk()
	p := d.open(t, b, wide, "/?user=user:a#graph")
	p.Wait("the summary", says("#graph-summary", "1,234 followers. Follows 9 (the first 2 are shown), blocks 1."))
	panel := func(title, text string) {
		t.Helper()
		p.Wait(title, "[...document.querySelectorAll('#graph-panels section')].find((e) => e.getAttribute('aria-label') === '"+title+"')?.textContent === "+quoted(title+text))
	}
	panel("Users", "kaya1.5")
	panel("Boards", hostile+"1")
	panel("Interests", "Follows no interests.")
	panel("Blocks", hostile)
	p.CheckAccessible("a graph")
	p.Shot("graph-wide")
	d.answers("GET /graph", 503, map[string]any{"detail": "the owner is unavailable"})
	p.Wait("the error", says("#graph-status", "Cannot read the graph: the owner is unavailable."))
	announced(t, p, "#graph-status")
	panel("Boards", hostile+"1")
	d.answers("GET /graph", 200, map[string]any{"user": "user:kaya", "follows": []any{}, "following": 0, "blocks": []any{}, "blocking": 0, "followers": 1})
	p.Click("#graph-panels a")
	p.Wait("the graph of the followee", says("#graph-summary", "1 follower. Follows 0, blocks 0.")+" && new URLSearchParams(location.search).get('user') === 'user:kaya'")
}

// The view has every key, without markup, and finds keys and values.
func showsConfiguration(t *testing.T, b *Browser) {
	d := newDesk()
	all := d.said["GET /config"].body
	d.answers("GET /config", 200, func(query []byte) any {
		if strings.Contains(string(query), "changed=true") {
			return map[string]any{"odd": map[string]any{"key": hostile}}
		}
		return all
	})
	p := d.open(t, b, wide, "/#config")
	keys := func(want ...string) {
		t.Helper()
		p.Wait(fmt.Sprintf("the keys %q", want), "JSON.stringify([...document.querySelectorAll('#config-values tbody th')].map((e) => e.textContent)) === "+quoted(quoted(want)))
	}
	keys("fanout.score_half_life", "odd.key", "odd.list")
	p.Wait("values as text", row("#config-values", "odd.key")+" === "+quoted("odd.key|"+hostile+"changed")+" && "+row("#config-values", "odd.list")+" === 'odd.list|[1,2]'")
	p.Wait("the numbers", says("#config-status", "3 keys of 3; 1 differ from their defaults."))
	p.CheckAccessible("the configuration")
	p.Shot("config-wide")
	p.Fill("#config-filter", "16H")
	keys("fanout.score_half_life")
	p.Press(kb.Enter) // sends nothing
	p.Fill("#config-filter", "nothing")
	p.Wait("no key", says("#config-status", "No key of 3 matches."))
	p.Fill("#config-filter", "odd.")
	p.Click("#config-changed")
	keys("odd.key")
	d.answers("GET /config", 403, map[string]any{"detail": "requires the scope operate"})
	p.Excuse("403")
	p.Go(Eval[string](p, "location.href"))
	p.Wait("the error", says("#config-status", "Cannot read the configuration: requires the scope operate."))
}

// A control of a change is disabled, with the reason, if the service has no scope for it. All views remain readable.
func disablesChangesWithoutPermission(t *testing.T, b *Browser) {
	d := newDesk()
	linked := item(3, "three")
	linked["link"] = "https://pins.example/3"
	d.answers("GET /feed", 200, map[string]any{"items": []any{linked}, "next": nil, "degraded": []string{}})
	caller := func(scopes ...string) {
		d.answers("GET /caller", 200, map[string]any{"authentication": true, "subject": "service:console", "scopes": scopes})
	}
	caller("view")
	p := d.open(t, b, wide, "/")
	Eval[string](p, "sessionStorage.setItem('token', 'x'), ''")
	opened := func(permitted ...string) {
		t.Helper()
		p.Go(Eval[string](p, "location.origin") + "/?user=user:a")
		for view, controls := range map[string]string{
			"feed": "#visit, #fresh, [data-verb]", "interests": "#terms [type=submit]", "pipeline": "#dead-letters-retry, #kinds form button",
		} {
			Eval[string](p, "location.hash = '"+view+"'")
			p.Wait("the controls of "+view+" follow the scopes "+strings.Join(permitted, ", "), "((all) => all.length > 1 && all.every((e) => "+
				quoted(append([]string{}, permitted...))+".includes(e.dataset.scope) ? !e.disabled && !e.title : e.disabled && e.title === 'requires a token with the scope ' + e.dataset.scope))"+
				"([...document.querySelectorAll('"+controls+"')])")
		}
	}
	opened()
	p.Wait("the notice", says("#refused", "The token does not permit visits (scope feed), actions on pins (scope events:actions), retries, limits and decisions (scope operate)."))
	p.CheckAccessible("a console without permissions")
	Eval[string](p, "location.hash = 'feed'")
	p.Wait("the link", "document.querySelector('.card h2 a')")
	Eval[string](p, "((a) => { a.addEventListener('click', (event) => event.preventDefault()); a.click(); return ''; })(document.querySelector('.card h2 a'))")
	caller("view", "feed", "events")
	opened("feed", "events:actions")
	p.Wait("the notice of the rest", says("#refused", "The token does not permit retries, limits and decisions (scope operate)."))
	expect.Empty(t, d.bodies("POST /events"), "events that the console sent without permission")
	p.Check()
}
