package test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
)

// says returns the expression that a visible element has a text, or, for "", that the element is not visible.
func says(selector, text string) string {
	return "((e) => (e.checkVisibility() ? e.textContent : ''))(document.querySelector('" + selector + "')) === " + quoted(text)
}

// announced fails the test unless screen readers announce changes of an element.
func announced(t *testing.T, p *Page, selector string) {
	t.Helper()
	expect.True(t, Eval[bool](p, "document.querySelector('"+selector+"')?.getAttribute('role') === 'status'"), "%s is announced", selector)
}

// feature returns the expression that a feature is displayed with its value and its note.
func feature(place, name, want string) string {
	section := "[...document.querySelectorAll('" + place + " .feature')].find((e) => e.dataset.key === '" + name + "')"
	return "[..." + section + ".querySelectorAll('.is, .incomplete:not([hidden])')].map((e) => e.textContent).join('|') === '" + want + "'"
}

// featuresOf makes a desk define features of users, and answer with values of user:a.
func featuresOf(d *desk, values map[string]any, missing map[string]string, degraded ...string) {
	var defined []any
	for name := range values {
		defined = append(defined, definition(name, "user"))
	}
	var list []any
	for name, reason := range missing {
		list = append(list, map[string]any{"entity": "user:a", "feature": name, "reason": reason})
	}
	d.answers("GET /features", 200, map[string]any{"features": defined})
	answer := map[string]any{
		"values": map[string]any{"user:a": values}, "missing": orNone(list), "degraded": orNone(degraded),
		"as_of": "2026-11-20T10:00:00Z", "fresh": nil,
	}
	d.answers("POST /features", 200, answer)
	tried := maps.Clone(answer)
	tried["definitions"] = defined
	d.answers("POST /features/try", 200, tried)
}

func orNone[T any](list []T) []T { return append([]T{}, list...) }

// If the store is unavailable, the page shows features as unknown with the degraded reasons, and not as empty.
func distinguishesUnknownFeatures(t *testing.T, b *Browser) {
	d := newDesk()
	values := map[string]any{"saves": nil, "groups": nil, "mean": nil, "capped": 5, "partly": map[string]any{}, "none": map[string]any{}}
	missing := map[string]string{"saves": "store", "groups": "deadline", "mean": "empty", "capped": "cap", "partly": "window"}
	featuresOf(d, values, missing, "deadline", "store")
	p := d.open(t, b, wide, "/?user=user:a#features")
	p.Wait("the degraded reasons", says("#features-degraded", "Unavailable: deadline, store."))
	for name, want := range map[string]string{
		"saves": "unknown|the store could not be read", "groups": "unknown|not evaluated in time", "mean": "nothing yet",
		"capped": "5|covers only the newest actions", "partly": "nothing yet|covers only the kept part of the window", "none": "nothing yet",
	} {
		p.Wait(name+" is "+want, feature("#features", name, want))
	}
	announced(t, p, "#features-degraded")
	p.CheckAccessible("features without a store")
	p.Shot("features-away-wide")
	p.Click("#try button")
	p.Wait("the tried values are unknown, too", "document.querySelector('#try-answer table tbody tr').textContent.includes('unknown')")
	cells := "document.querySelector('#try-answer tbody tr').children"
	p.Wait("empty tried values are not unknown",
		"[..."+cells+"].filter((c, i) => document.querySelectorAll('#try-answer th')[i].textContent === 'mean')[0].textContent === 'nothing'")

	Eval[string](p, "location.hash = 'feed'")
	p.Wait("the rail shows the degraded reasons", says("#rail-features-degraded", "Unavailable: deadline, store."))
	p.Wait("the rail shows the capped value", feature("#rail-features", "capped", "5|covers only the newest actions"))
	announced(t, p, "#rail-features-degraded")
	p.CheckAccessible("the rail without a store")
	d.answers("POST /features", 503, map[string]any{"detail": "too full"})
	p.Wait("the error of the rail", says("#rail-features-degraded", "Cannot read the features: too full."))
	Eval[string](p, "location.hash = 'features'")
	p.Wait("the error", says("#features-degraded", "Cannot read the features: too full."))
	p.Wait("the previous values stay", feature("#features", "capped", "5|covers only the newest actions"))

	featuresOf(d, map[string]any{"saves": 3, "groups": map[string]any{}, "mean": 1.5, "capped": 5, "partly": 0, "none": []any{}}, nil)
	p.Wait("no degraded reasons", says("#features-degraded", ""))
	p.Wait("the values", feature("#features", "saves", "3")+" && "+feature("#features", "groups", "nothing yet"))
}

// The page requests all features of users, in as many requests as the maximum size needs.
func requestsAllFeatures(t *testing.T, b *Browser) {
	const defined, atOnce = 150, 100
	d := newDesk()
	list := []any{definition("of_a_pin", "pin")}
	for n := range defined {
		list = append(list, definition(fmt.Sprint("f", n), "user"))
	}
	d.answers("GET /features", 200, map[string]any{"features": list})
	d.answers("POST /features", 200, func(asked []byte) any {
		var q struct{ Features []string }
		_ = json.Unmarshal(asked, &q) // otherwise there is no value
		values, missing, degraded, asOf := map[string]any{}, []any{}, []string{}, "2026-11-20T10:00:02Z"
		for _, name := range q.Features {
			values[name] = len(name)
			if name == "f149" {
				values[name], degraded, asOf = nil, []string{"deadline"}, "2026-11-20T10:00:01.5Z"
				missing = append(missing, map[string]any{"entity": "user:a", "feature": name, "reason": "deadline"})
			}
		}
		return map[string]any{"values": map[string]any{"user:a": values}, "missing": missing, "degraded": degraded, "as_of": asOf}
	})
	p := d.open(t, b, wide, "/?user=user:a#features")
	p.Wait("all features", fmt.Sprintf("document.querySelectorAll('#features .feature').length === %d", defined))
	for _, name := range []string{"f0", "f99", "f100", "f148"} {
		p.Wait(name+" has its value", feature("#features", name, fmt.Sprint(len(name))))
	}
	p.Wait("the reason of a missing value", feature("#features", "f149", "unknown|not evaluated in time"))
	p.Wait("the degraded reasons above the list", says("#features-degraded", "Unavailable: deadline."))
	p.Wait("the oldest time of the responses", says("#features-as-of", " at 10:00:01"))
	var all []string
	for _, body := range d.bodies("POST /features")[:2] {
		var q struct{ Features, Users []string }
		if err := json.Unmarshal([]byte(body), &q); err != nil || len(q.Features) > atOnce || !slices.Equal(q.Users, []string{"user:a"}) {
			t.Errorf("requested %d features of %q, %v; want at most %d of user:a", len(q.Features), q.Users, err, atOnce)
		}
		all = append(all, q.Features...)
	}
	if slices.Sort(all); len(slices.Compact(all)) != defined || slices.Contains(all, "of_a_pin") {
		t.Errorf("the first two requests are for %d features: %q, want %d, only of users", len(all), all, defined)
	}
}

// ofAllKinds returns a feature of each kind of entity.
func ofAllKinds() []any {
	return []any{definition("of_user", "user"), definition("of_pin", "pin"), definition("of_pair", "pair")}
}

// asked holds the entities and features of a request.
type asked struct {
	Features, Users, Pins []string
	Pairs                 [][]string
}

// evaluated returns a response like the API: each feature for the entities of its kind, which are users, pins, or pairs.
func evaluated(definitions []any, missing ...any) func([]byte) any {
	return func(body []byte) any {
		var q asked
		_ = json.Unmarshal(body, &q) // otherwise there is no value
		values := map[string]any{}
		for _, u := range q.Users {
			values[u] = map[string]any{"of_user": 1}
		}
		for _, p := range q.Pins {
			values[p] = map[string]any{"of_pin": 22}
		}
		for _, p := range q.Pairs {
			values[strings.Join(p, "|")] = map[string]any{"of_pair": nil}
		}
		return map[string]any{
			"definitions": definitions, "values": values, "missing": orNone(missing), "degraded": []any{}, "as_of": "2026-11-20T10:00:00Z", "fresh": nil,
		}
	}
}

// The page shows features of pins, and of pairs of a user and a pin, for the entered pin.
func showsFeaturesOfPinsAndPairs(t *testing.T, b *Browser) {
	d := newDesk()
	d.answers("GET /features", 200, map[string]any{"features": ofAllKinds()})
	lack := map[string]any{"entity": "user:a|pin:7", "feature": "of_pair", "reason": "pin"}
	d.answers("POST /features", 200, evaluated(nil, lack))
	p := d.open(t, b, View{Width: 390, Height: 844, Phone: true}, "/?user=user:a#features", "400")
	p.Wait("the feature of the user", feature("#features", "of_user", "1"))
	p.Wait("the hint for features of pins and pairs", says("#of-pin-status", "2 features of pins or pairs. Choose a pin to see their values."))
	announced(t, p, "#of-pin-status")
	p.Fill("#pin", "7")
	p.Press(kb.Enter)
	p.Wait("the feature of the pin", feature("#of-pin", "of_pin", "22"))
	p.Wait("the feature of the pair", feature("#of-pin", "of_pair", "unknown|the pin is unknown or deleted"))
	p.Wait("the entities of the features", "[...document.querySelectorAll('#of-pin h3 span')].map((e) => e.textContent).join('|') === 'of the pin, 24h|of the user and the pin, 24h'")
	p.CheckAccessible("features of a pin")
	p.Shot("features-of-pin-phone")
	d.answers("POST /features", 400, map[string]any{"detail": "pins: it is none"})
	p.Fill("#pin", "user:b")
	p.Press(kb.Enter)
	p.Wait("the error instead of features", says("#of-pin-status", "Cannot read the features of user:b: pins: it is none.")+" && document.querySelectorAll('#of-pin .feature').length === 0")
	d.answers("POST /features", 200, evaluated(nil))
	p.Wait("the feature after the error", feature("#of-pin", "of_pin", "22"))
	p.Fill("#user", "user:c")
	p.Press(kb.Enter)
	p.Wait("the same pin for another user", "location.search.includes('user%3Ac') && "+feature("#of-pin", "of_pin", "22"))
	bodies := d.bodies("POST /features")
	if !slices.ContainsFunc(bodies, func(body string) bool {
		var q asked
		return json.Unmarshal([]byte(body), &q) == nil && slices.Equal(q.Features, []string{"of_pin", "of_pair"}) && slices.Equal(q.Pins, []string{"pin:7"}) &&
			len(q.Pairs) == 1 && slices.Equal(q.Pairs[0], []string{"user:a", "pin:7"}) && q.Users == nil
	}) {
		t.Errorf("got requests %q, want one for pin:7 and for the pair of user:a and pin:7", bodies)
	}
}

// The page tries a definition for the entered entities of its kind. If there are none, it says so.
func triesFeaturesOfPinsAndPairs(t *testing.T, b *Browser) {
	d := newDesk()
	d.answers("POST /features/try", 200, evaluated(ofAllKinds()[1:], map[string]any{"entity": "user:a|pin:2", "feature": "of_pair", "reason": "attribute"}))
	p := d.open(t, b, wide, "/?user=user:a#features", "400")
	p.Wait("the form", "document.querySelector('#try-users').value === 'user:a'")
	p.Click("#try button")
	p.Wait("the missing entities", "[...document.querySelectorAll('#try-answer .notice')].map((e) => e.textContent).join('|') === "+
		"'of_pin: features of pins. Enter pins to evaluate them.|of_pair: features of pairs of a user and a pin. Enter pairs of a user and a pin to evaluate them.'")
	expect.Empty(t, p.Texts("#try-answer table"), "tables without definitions for users")
	p.Fill("#try-pins", "pin:1\npin:2")
	p.Fill("#try-pairs", "user:a pin:1\nuser:a|pin:2")
	p.Click("#try button")
	p.Wait("the pins' values", "document.querySelectorAll('#try-answer table').length === 2 && "+row("#try-answer", "pin:2")+" === 'pin:2|22'")
	p.Wait("the pairs' values", row("#try-answer", "user:a|pin:1")+" === 'user:a|pin:1|nothing' && "+row("#try-answer", "user:a|pin:2")+" === 'user:a|pin:2|unknown'")
	p.Wait("the reason of an unknown value", "document.querySelector('#try-answer > ul').textContent === 'of_pair of user:a|pin:2: the pin lacks the attribute'")
	p.CheckAccessible("values of pins and pairs")
	p.Shot("features-tried-wide")
	var q asked
	sent := d.bodies("POST /features/try")
	if err := json.Unmarshal([]byte(sent[len(sent)-1]), &q); err != nil || !slices.Equal(q.Users, []string{"user:a"}) || !slices.Equal(q.Pins, []string{"pin:1", "pin:2"}) ||
		fmt.Sprint(q.Pairs) != "[[user:a pin:1] [user:a pin:2]]" {
		t.Errorf("sent %s (%v), want a user, two pins and two pairs", sent[len(sent)-1], err)
	}
	d.answers("POST /features/try", 400, map[string]any{"detail": "one", "errors": []string{"pairs: it is none"}})
	p.Click("#try button")
	p.Wait("the invalid field", "[...document.querySelectorAll('#try [aria-invalid]')].map((e) => e.id).join() === 'try-pairs'")
}

func stateOf(held []any, degraded ...string) map[string]any {
	return map[string]any{
		"feed": "home", "sources": []any{map[string]any{"source": "following", "waiting": 2, "target": 1, "shown": 3}},
		"deferred": orNone(held), "affinities": []any{}, "degraded": orNone(degraded),
	}
}

// The page shows the degraded reasons of a feed's state next to the feed and above the pools, where missing data may hide
// deferred candidates.
func showsDegradedPools(t *testing.T, b *Browser) {
	const lacking, unread = "Unavailable: items, affinities.", "Cannot read the pools: the rows are unavailable."
	d := newDesk()
	d.answers("GET /feed/state", 200, stateOf(nil, "items", "affinities"))
	p := d.open(t, b, wide, "/?user=user:a")
	p.Wait("the rail shows the reason", says("#rail-degraded", lacking))
	announced(t, p, "#rail-degraded")
	Eval[string](p, "location.hash = 'pools'")
	p.Wait("the view shows the reason", says("#pools-degraded", lacking)+" && document.querySelectorAll('#pools li').length === 2")
	p.Wait("deferred candidates are unknown", says("#deferred-none", "Deferred pins are unknown."))
	announced(t, p, "#pools-degraded")
	p.CheckAccessible("pools without items")
	p.Shot("pools-away-wide")
	d.answers("GET /feed/state", 200, stateOf(nil))
	p.Wait("no degraded reasons", says("#pools-degraded", ""))
	const none = "No pin is deferred: no candidate is too far below the best."
	p.Wait("no deferred candidates", says("#deferred-none", none))

	d.answers("GET /feed/state", 503, map[string]any{"detail": "the rows are unavailable"})
	p.Wait("the error", says("#pools-degraded", unread))
	p.Wait("the previous values stay", says("#deferred-none", none)+" && document.querySelectorAll('#pools li').length === 2")
	p.Fill("#user", "user:b")
	p.Press(kb.Enter)
	p.Wait("the error for another user", "location.search.includes('user%3Ab') && "+says("#pools-degraded", unread))
	p.Wait("no text about deferred candidates", says("#deferred-none", "")+" && document.querySelectorAll('#pools li').length === 0")
	Eval[string](p, "location.hash = 'feed'")
	p.Wait("the rail shows the reason", says("#rail-degraded", "Cannot read affinities and pools: the rows are unavailable."))
}

// A feed without items is empty only if all sources were read and there is no next page.
func distinguishesEmptyFeedFromUnreadable(t *testing.T, b *Browser) {
	d := newDesk()
	page := func(next any, items []any, degraded ...string) {
		d.answers("GET /feed", 200, map[string]any{"items": orNone(items), "next": next, "degraded": orNone(degraded)})
	}
	page("c1", nil, "generator", "store")
	p := d.open(t, b, wide, "/?user=user:a")
	const lacking = "Unavailable: generator, store."
	p.Wait("the degraded reasons", says("#degraded", lacking))
	p.Wait("the feed may be incomplete", says("#empty", "No items for a, but parts of the feed were unavailable. New items are announced here."))
	announced(t, p, "#degraded")
	page(nil, []any{item(2, "one")})
	p.Click("#more")
	p.Wait("an older page below the unchanged reasons", "document.querySelectorAll('.card').length === 1 && "+says("#degraded", lacking))
	page("c1", nil)
	p.Click("#feed-form button")
	p.Wait("older items may exist", says("#empty", "The newest items are hidden. Load older items to continue."))
	p.Wait("no degraded reasons", says("#degraded", ""))
	page(nil, nil)
	p.Click("#feed-form button")
	p.Wait("the empty feed", says("#empty", "No items for a yet. New items are announced here."))
}

// Without a response of the broker, topics are unknown and not empty. Shares exclude processes that did not respond.
func showsUnknownPipelineValues(t *testing.T, b *Browser) {
	s := status()
	delete(s, "flows")
	s["components"].([]any)[0].(map[string]any)["restarts"] = 0
	s["unavailable"] = []any{map[string]any{"source": "gone:1", "reason": "no response"}}
	s["shares"] = []any{map[string]any{"feed": "home", "source": "following", "target": 1, "items": 0}}
	d := newDesk()
	d.answers("GET /status", 200, s)
	p := d.open(t, b, wide, "/#pipeline", "500")
	p.Wait("the broker does not respond",
		says("#topics-unknown", "The brokers did not answer: rates and lags of the topics are unknown."))
	p.Wait("unknown topics", says("#topics", "unknown"))
	p.Wait("unknown lag", row("#groups", "pools")+" === 'pools|1|unknown|–|0|1|waiting'")
	node := "[...document.querySelectorAll('.node')].find((n) => n.querySelector('.node-name').textContent === "
	p.Wait("unknown rate of producers", node+"'producers').querySelector('.node-rate').textContent === '–'")
	p.Wait("the rate of the group", node+"'pools').querySelector('.node-rate').textContent === '1.0/s'")
	p.Wait("unknown lag of the group", node+"'pools').querySelector('.node-lag').textContent === 'lag unknown'")
	announced(t, p, "#topics-unknown")
	p.CheckAccessible("a pipeline without a broker")
	p.Shot("pipeline-away-wide")

	Eval[string](p, "location.hash = 'insights'")
	p.Wait("shares without a process",
		"[...document.querySelectorAll('#plot-shares .notice')].map((e) => e.textContent).join() === 'Missing: gone:1: no response.,"+
			"No visits on the processes that answered: no shares to compare.'")
	Eval[string](p, "location.hash = 'pipeline'")
	d.answers("GET /status", 200, status())
	p.Wait("known topics", says("#topics-unknown", "")+" && "+row("#topics", "served")+" === 'served|user|serving|pools|9|0|5,000'")
	d.answers("GET /status", 500, map[string]any{"detail": "it broke"})
	p.Wait("the error of the status", says("#topics-unknown", "Cannot read the status: it broke."))
	p.Wait("the previous values stay", row("#topics", "served")+" === 'served|user|serving|pools|9|0|5,000'")
}
