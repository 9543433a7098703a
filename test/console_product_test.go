package test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/smartfeed/smartfeed/app"
	"github.com/smartfeed/smartfeed/internal/testkit/eventually"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/processors/rules"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// consoleEvents returns a reader who follows an author of sixty pins, a user whose pool has low scores except for the best,
// and users who acted on many days.
func consoleEvents(now time.Time) []map[string]any {
	var events []map[string]any
	event := func(stream, verb, actor, object string, at time.Time, more map[string]any) {
		e := map[string]any{
			"stream": stream, "verb": verb, "actor": actor, "object": object, "id": fmt.Sprint("console-", len(events)), "time": at.Format(time.RFC3339Nano),
		}
		maps.Copy(e, more)
		events = append(events, e)
	}
	pin := func(author, id string, at time.Time) {
		event("pins", "create", author, id, at, map[string]any{"title": "About " + id, "interests": []string{"interest:tea"}, "link": "https://pins.example/" + id})
	}
	event("follows", "follow", "user:reader", "user:author", now.Add(-time.Hour), nil)
	event("follows", "follow", "user:keeper", "user:old", now.Add(-time.Hour), nil)
	for i := range 60 {
		pin("user:author", fmt.Sprintf("pin:r%02d", i), now.Add(-time.Duration(60-i)*time.Minute))
	}
	pin("user:old", "pin:fresh", now.Add(-time.Minute))
	for i := range 5 {
		pin("user:old", fmt.Sprint("pin:old", i), now.AddDate(-1, 0, -i))
	}
	chance := rand.New(rand.NewPCG(1, 2))
	for person := range 90 {
		first, user := chance.IntN(40), fmt.Sprint("user:past", person)
		for day := first; day >= 0; day-- {
			if day != first && chance.IntN(100) > 55-first {
				continue
			}
			at := now.AddDate(0, 0, -day).Add(-time.Duration(chance.IntN(8*60)) * time.Minute)
			for step, verb := range []string{"view", "click", "save"}[:1+chance.IntN(3)] {
				event("actions", verb, user, fmt.Sprintf("pin:r%02d", chance.IntN(60)), at.Add(time.Duration(step)*time.Second), nil)
			}
		}
	}
	return events
}

type pinList struct{ Items []struct{ Pin string } }

func (l pinList) pins() []string {
	var pins []string
	for _, i := range l.Items {
		pins = append(pins, i.Pin)
	}
	return pins
}

// stateBody contains the fields of feed/state that the console reads.
type stateBody struct {
	Affinities []struct{ Facet string }
	Deferred   []struct{ Pin, Reason string }
}

// visitor is a user of the console.
type visitor struct {
	*Page
	t *testing.T
	s *product
}

// cards returns the pins on the page, in order.
func (v *visitor) cards() []string {
	return Eval[[]string](v.Page, "[...document.querySelectorAll('.card')].map((c) => c.dataset.pin)")
}

// view follows the link to a view.
func (v *visitor) view(name string) {
	v.t.Helper()
	v.Click(`nav a[href="#` + name + `"]`)
	v.Wait(name+" is shown", "!document.querySelector('#view-"+name+"').hidden")
}

// The page must show the data of the API, and the user's actions must take effect.
func TestBrowser_ConsoleMatchesAPI(t *testing.T) {
	chromium := openBrowser(t)
	cfg := testConfig(t)
	home := cfg.Generator.Feeds[rules.Home]
	home.Defer.Margin, home.Defer.Budget, home.Fill = 3, 0, nil // no popular pins in place of deferred ones
	cfg.Generator.Feeds[rules.Home] = home
	s := start(t, app.Dev, cfg)
	s.publish(consoleEvents(time.Now())...)
	s.wait()
	v := &visitor{Page: chromium.Page(t, View{Width: 1280, Height: 900}), t: t, s: s}
	v.Go(s.url("/"))
	for _, step := range []struct {
		name string
		do   func(*visitor)
	}{
		{"reads the feed in the order of the API to its end", (*visitor).readsAll},
		{"opens an explanation", (*visitor).opensExplanation},
		{"announces a new pin and shows it on top", (*visitor).receivesNewPin},
		{"a save changes affinities and features", (*visitor).saves},
		{"shows the pools of the API and deferred candidates", (*visitor).readsPools},
		{"tries a definition", (*visitor).triesDefinition},
		{"shows every group", (*visitor).readsPipeline},
		{"shows insights as plots and tables", (*visitor).readsInsights},
		{"shows the HTTP reference", (*visitor).readsReference},
	} {
		if !t.Run(step.name, func(t *testing.T) { step.do(&visitor{v.Page.For(t), t, s}) }) {
			break // the next step depends on this one
		}
	}
	v.Check()
}

func (v *visitor) readsAll() {
	first := get[pinList](v.s, "/v1/users/user:reader/feed?limit=50").pins()
	must.Equal(v.t, len(first), 50, "new pins of the visit")
	v.Wait("the form for a user", "!document.querySelector('#suggest').hidden")
	v.Fill("#user", "reader")
	v.Click("#feed-form button")
	v.Wait("a page", "document.querySelectorAll('.card').length === 24")
	for _, page := range []struct{ first, last int }{{25, 48}, {49, 60}} {
		v.Click("#more")
		v.Wait(fmt.Sprint(page.last, " items are shown"), fmt.Sprintf("document.querySelectorAll('.card').length === %d", page.last))
		v.Wait("the first older item has the focus", fmt.Sprintf("document.activeElement.id === 'title-%d'", page.first))
	}
	v.Wait("the end of the feed", "document.querySelector('#more').hidden && !document.querySelector('#end').hidden")
	all := get[pinList](v.s, "/v1/users/user:reader/feed?limit=100").pins() // without new items
	expect.NoDiff(v.t, v.cards(), all, "cards of the page (-api +page)")
	expect.Equal(v.t, len(all), 60, "pins")
	expect.NoDiff(v.t, v.cards()[10:], first, "old items")
}

func (v *visitor) opensExplanation() {
	pin := v.cards()[0]
	type explanation struct {
		Fate  string
		Shown struct{ Position int }
	}
	var why explanation
	eventually.True(v.t, "the visit that shows the pin is recorded", func() bool {
		why = get[explanation](v.s, "/v1/users/user:reader/feed/why?pin="+pin)
		return why.Fate == "shown"
	})
	v.Click(".card .why-button")
	v.Wait("the explanation", "document.querySelector('.card .why .fate')")
	expect.Contains(v.t, v.Texts(".card .why .fate")[0], fmt.Sprintf("at position %d", why.Shown.Position), "explanation")
	v.CheckAccessible("an open explanation")
	v.Click(".card .why-button")
	v.Wait("the explanation is closed", "document.querySelector('.card .why').hidden")
}

func (v *visitor) receivesNewPin() {
	v.Wait("no new items are announced", "document.querySelector('#fresh').hidden")
	v.s.publish(map[string]any{
		"stream": "pins", "verb": "create", "actor": "user:author", "object": "pin:newest", "id": "newest", "time": time.Now().Format(time.RFC3339Nano), "title": "The newest",
		"interests": []string{"interest:tea"}, "board": "board:new",
	})
	v.Wait("the new item is announced", "!document.querySelector('#fresh').hidden && document.querySelector('#fresh').textContent === 'Visit: 1 new item'")
	waiting := "[...document.querySelectorAll('#rail-pools li')].filter((e) => e.querySelector('.label').textContent === 'following').map((e) => e.querySelector('.value').textContent)[0]"
	v.Wait("the pool next to the feed has the pin", waiting+" === '1'")
	v.Click("#fresh")
	v.Wait("the new pin is on top", "document.querySelector('.card').dataset.pin === 'pin:newest'")
	v.Wait("only the new pin is new", "document.querySelectorAll('.tile .new').length === 1 && document.querySelector('.divide')")
	v.Wait("the pool does not have the pin", waiting+" === undefined")
	for i, want := range []string{"1", "2"} {
		v.s.publish(map[string]any{
			"stream": "pins", "verb": "create", "actor": "user:author", "object": fmt.Sprint("pin:later", i), "id": fmt.Sprint("later", i), "time": time.Now().Format(time.RFC3339Nano),
			"interests": []string{"interest:tea"},
		})
		v.Wait("the pool grows automatically to "+want, waiting+" === '"+want+"'")
	}
	v.Click("#fresh")
	v.Wait("the pool is empty after a visit", waiting+" === undefined")
}

func (v *visitor) saves() {
	labels := "[...document.querySelectorAll('#rail-%s .label')].some((e) => e.textContent === '%s')"
	v.Wait("features", "document.querySelector('#rail-features .feature')")
	if Eval[bool](v.Page, fmt.Sprintf(labels, "affinities", "tea")) {
		v.t.Fatal("the reader has an affinity for tea before any action")
	}
	v.Click(".card [data-verb=save]")
	v.Wait("the button is pressed", "document.querySelector('.card [data-verb=save]').getAttribute('aria-pressed') === 'true'")
	v.Wait("the affinities change", fmt.Sprintf(labels, "affinities", "tea"))
	v.Wait("the features change", fmt.Sprintf(labels, "features", "tea"))
	v.s.wait()
	for _, a := range get[stateBody](v.s, "/v1/users/user:reader/feed/state").Affinities {
		_, name, _ := strings.Cut(a.Facet, ":")
		v.Wait("affinity "+name+" is shown", fmt.Sprintf(labels, "affinities", name))
	}
	v.Click(".card [data-verb=hide]")
	v.Wait("the hidden card is dimmed", "document.querySelector('.card').classList.contains('hidden-by-user')")
	v.CheckAccessible("a card is hidden")
}

func (v *visitor) readsPools() {
	must.Equal(v.t, len(get[pinList](v.s, "/v1/users/user:keeper/feed").Items), 1, "new pins of the visit: only the one that is not weak")
	v.s.wait()
	v.view("pools")
	v.Fill("#user", "user:keeper")
	v.Click("#feed-form button")
	v.Wait("the pool", "document.querySelectorAll('.pool.source-following ol > li').length === 5")
	lines := "[...document.querySelectorAll('.pool.source-following ol > li')].map((e) => e.dataset.key)"
	want := get[pinList](v.s, "/v1/users/user:keeper/pools?source=following").pins()
	expect.NoDiff(v.t, Eval[[]string](v.Page, lines), want, "bars of the API and of the page")
	widths := Eval[[]float64](v.Page, "[...document.querySelectorAll('.pool.source-following ol > li')].map((e) => parseFloat(e.style.getPropertyValue('--part')))")
	if !slices.IsSortedFunc(widths, func(a, b float64) int { return int(b - a) }) || widths[0] != 100 {
		v.t.Errorf("got bar widths %v, want the best at 100, then decreasing", widths)
	}
	held := get[stateBody](v.s, "/v1/users/user:keeper/feed/state").Deferred
	if len(held) != 5 || held[0].Reason != "deferred_earlier" {
		v.t.Fatalf("got %+v, want five deferred candidates", held)
	}
	v.Wait("deferred candidates", "document.querySelectorAll('#deferred li').length === 5 && document.querySelectorAll('.pool li.deferred').length === 5")
	v.Click("#deferred li .plain")
	v.Wait("the reason", "document.querySelector('#deferred .why .fate').textContent.includes('Deferred to a later session')")
	v.CheckAccessible("pools with deferred candidates")
}

func (v *visitor) triesDefinition() {
	v.view("features")
	v.Wait("features", "document.querySelectorAll('#features .feature').length > 5")
	v.Fill("#try-definition", "name: teas\nentity: user\nwindow: 97h\naggregate: count\n")
	v.Fill("#try-users", "user:reader")
	v.Click("#try button")
	v.Excuse("status of 400")
	v.Wait("the error of the definition", "document.querySelector('#try-problems').textContent.includes('96h')")
	v.CheckAccessible("an invalid definition")
	v.Fill("#try-definition", "name: teas\nentity: user\nverbs: [save]\nwindow: 6h\ngroup_by: objectAttributes.interests\naggregate: count\n")
	v.Click("#try button")
	v.Wait("the values", "document.querySelector('#try-answer table')")
	if got := v.Texts("#try-answer td"); len(got) != 1 || strings.TrimSpace(got[0]) != "tea 1" {
		v.t.Errorf("the definition returns %q, want one save of tea", got)
	}
	v.CheckAccessible("a definition with its values")
	v.Fill("#pin", "pin:r01")
	v.Click("#pin-form button")
	v.Wait("features of the pin and of the pair", "['of the pin', 'of the user and the pin'].every((of) => "+
		"[...document.querySelectorAll('#of-pin .feature')].some((e) => e.querySelector('h3 span').textContent.startsWith(of)))")
	v.Fill("#try-definition", "- {name: acts, entity: pin, verbs: [click, save], group_by: verb, aggregate: count}\n- {name: author, entity: pair, group_by: objectAttributes.author, aggregate: count}\n")
	v.Fill("#try-pins", "pin:later0\npin:later1")
	v.Fill("#try-pairs", "user:reader pin:r01")
	v.Click("#try button")
	v.Wait("values of a pin and a pair", "document.querySelectorAll('#try-answer table').length === 2 && [...document.querySelectorAll('#try-answer td')].some((e) => e.textContent === 'save 1')")
	v.CheckAccessible("definitions of a pin and a pair with their values")
	v.Wait("no error", "!document.querySelector('#try-problems').textContent")
}

func (v *visitor) readsPipeline() {
	v.view("pipeline")
	names := append(topics.RowGroups(), topics.Materialize, topics.Features, topics.Insights, topics.FeatureFiles, topics.Producers, topics.Serving)
	v.Wait("every group is in the diagram", fmt.Sprintf("%s.every((n) => [...document.querySelectorAll('.node-name')].some((e) => e.textContent === n))", quoted(names)))
	v.Wait("no box is in the color of errors", "document.querySelectorAll('.node.unhealthy').length === 0")
	v.Wait("no boxes overlap", `(() => {
		const at = [...document.querySelectorAll('.node rect')].map((e) => e.getBoundingClientRect());
		return at.every((a, i) => at.slice(i + 1).every((b) => a.right <= b.left || b.right <= a.left || a.bottom <= b.top || b.bottom <= a.top));
	})()`)
	v.Wait("no dead letters", "document.querySelector('#dead-letters-status').textContent.includes('None')")
}

func (v *visitor) readsInsights() {
	v.view("insights")
	v.Wait("every plot", "document.querySelectorAll('#plots figure').length >= 6 && document.querySelectorAll('#plots svg').length >= 5")
	expect.Empty(v.t, v.Texts("#plots .notice"), "notices of missing plots")
	figures := "[...document.querySelectorAll('#plots figure')]"
	if n := Eval[int](v.Page, figures+".filter((f) => f.querySelectorAll('table tbody tr').length === 0).length"); n > 0 {
		v.t.Errorf("%d plots have no table", n)
	}
	if n := Eval[int](v.Page, figures+".filter((f) => f.querySelector('svg') && !f.querySelector('svg[role=img][aria-label]')).length"); n > 0 {
		v.t.Errorf("%d plots have no text alternative", n)
	}
	v.Fill("#funnel-steps", "view click save")
	v.Click("#funnel-form button")
	answer := get[struct{ Steps []struct{ Users int } }](v.s, "/v1/insights/funnel?steps=view,click,save")
	v.Wait("the request of the funnel", "document.querySelectorAll('#plot-funnel tbody tr').length === 3")
	for i, got := range v.Texts("#plot-funnel tbody td:nth-child(2)") {
		expect.Equal(v.t, got, fmt.Sprint(answer.Steps[i].Users), "users of step %d", i)
	}
}

// readsReference checks that the reference has every call, schema and property of the document.
func (v *visitor) readsReference() {
	type schema struct{ Properties map[string]json.RawMessage }
	doc := get[struct {
		Paths      map[string]map[string]struct{ OperationID string }
		Components struct{ Schemas map[string]schema }
	}](v.s, "/v1/openapi.json")
	var ids, properties []string
	for _, methods := range doc.Paths {
		for _, op := range methods {
			ids = append(ids, op.OperationID)
		}
	}
	for name, s := range doc.Components.Schemas {
		ids = append(ids, "schema-"+name)
		for property := range s.Properties {
			properties = append(properties, property)
		}
	}
	v.Go(v.s.url("/docs"))
	v.Wait("every call and schema", quoted(ids)+".every((id) => document.getElementById(id))")
	cells := "new Set([...document.querySelectorAll('#docs-body td code, #docs-body th code')].map((e) => e.textContent))"
	v.Wait("every property", "((all) => "+quoted(properties)+".every((p) => all.has(p)))("+cells+")")
	v.Wait("properties of objects without a name", "((all) => ['sources[].waiting', 'follows[].weight', 'pins{}.author'].every((p) => all.has(p)))("+cells+")")
	v.Wait("links lead to schemas", "[...document.querySelectorAll('#docs-body a')].every((a) => document.getElementById(a.hash.slice(1)))")
	v.CheckAccessible("the HTTP reference")
	v.Shot("docs-wide")
}

// The test checks the accessibility of every view, wide and on a phone, in light and dark mode, while users act. With
// SMARTFEED_SCREENSHOTS it saves screenshots.
func TestBrowser_ConsoleIsAccessible(t *testing.T) {
	chromium := openBrowser(t)
	cfg := testConfig(t)
	home := cfg.Generator.Feeds[rules.Home]
	home.Defer.Margin, home.Defer.Budget = 4, 20
	cfg.Generator.Feeds[rules.Home] = home
	s := start(t, app.Dev, cfg)
	s.simulate()
	s.publish(consoleEvents(time.Now())...)
	for _, look := range []struct {
		name string
		View
	}{
		{"wide", View{Width: 1280, Height: 900}},
		{"wide-dark", View{Width: 1280, Height: 900, Dark: true}},
		{"phone", View{Width: 390, Height: 844, Phone: true}},
		{"phone-dark", View{Width: 390, Height: 844, Phone: true, Dark: true}},
	} {
		t.Run(look.name, func(t *testing.T) {
			p := chromium.Page(t, look.View)
			p.Go(s.url("/?user=user:ada"))
			p.Click("#visit")
			p.Wait("impressions of the first page", "/shown [1-9]/.test(document.querySelector('#rail-pools').textContent)")
			for _, at := range []struct{ view, there string }{
				{"feed", "#rail-affinities li"}, {"compare", "#compare-b-items li"}, {"graph", "#graph-panels li"}, {"config", "#config-values td"}, {"pools", "#pools li"}, {"features", "#features .feature li"},
				{"interests", "#user-interests-list li"}, {"pipeline", ".flow:not(.idle)"}, {"insights", "#plot-popularity figure svg"}, {"experiments", "#experiments td"},
			} {
				Eval[string](p, "location.hash = '"+at.view+"'")
				p.Wait(at.view+" is shown", "document.querySelector('"+at.there+"')")
				p.CheckAccessible(at.view)
				p.Shot(at.view + "-" + look.name)
			}
			p.Check()
		})
	}
}

// An operator rejects a term in the console and reverts the decision.
func TestBrowser_ConsoleDecidesOnTerms(t *testing.T) {
	chromium := openBrowser(t)
	s := start(t, app.Dev, testConfig(t))
	s.simulate()
	p := chromium.Page(t, View{Width: 1280, Height: 900})
	p.Go(s.url("/?user=user:ada#interests"))
	p.Wait("candidates", "document.querySelector('#terms li')")
	term := p.Texts("#terms li strong")[0]
	states := func(state schemas.TermState) []string {
		var terms []string
		for _, d := range get[struct{ Terms []struct{ Term string } }](s, "/v1/dictionary?limit=1000&state="+string(state)).Terms {
			terms = append(terms, d.Term)
		}
		return terms
	}
	first := "[...document.querySelectorAll('#terms strong')].some((e) => e.textContent === '" + term + "')"
	p.Click("#terms li summary")
	p.Choose("#terms li select", "rejected")
	p.Fill("#terms li input", "says nothing")
	p.Click("#terms li button")
	p.Wait("the term is not a candidate", "!"+first)
	eventually.True(t, term+" is rejected", func() bool { return slices.Contains(states(schemas.TermRejected), term) })
	p.Choose("#terms-state", "rejected")
	p.Wait("the term is among the rejected", first+" && document.querySelector('#terms .fact').textContent.includes('says nothing')")
	p.Click("#terms li summary")
	p.Click("#terms li button")
	p.Wait("the term is no longer rejected", "!"+first)
	eventually.True(t, term+" is a candidate again", func() bool { return slices.Contains(states(schemas.TermCandidate), term) })
	p.Check()
}
