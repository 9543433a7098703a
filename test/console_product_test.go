package test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/smartfeed/smartfeed/app"
	"github.com/smartfeed/smartfeed/internal/testkit/eventually"
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
		for k, v := range more {
			e[k] = v
		}
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
		{"clicks on a card are actions", (*visitor).clicks},
		{"shows the pools of the API and deferred candidates", (*visitor).readsPools},
		{"tries a definition", (*visitor).triesDefinition},
		{"inspects, stops and retries a dead letter", (*visitor).retriesDeadLetter},
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
	if len(first) != 50 {
		v.t.Fatalf("the visit has %d new pins, want 50", len(first))
	}
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
	if diff := cmp.Diff(all, v.cards()); diff != "" || len(all) != 60 {
		v.t.Errorf("%d pins; the page differs from the API (-api +page):\n%s", len(all), diff)
	}
	if got := v.cards()[10:]; !slices.Equal(got, first) {
		v.t.Errorf("got old items %v, want %v", got, first)
	}
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
	if got, want := v.Texts(".card .why .fate")[0], fmt.Sprintf("at position %d", why.Shown.Position); !strings.Contains(got, want) {
		v.t.Errorf("got explanation %q, want %q in it", got, want)
	}
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

// clicks acts with the button of a card and with the link of its title.
func (v *visitor) clicks() {
	linked := Eval[[]string](v.Page, "[...document.querySelectorAll('.card')].filter((c) => c.querySelector('h2 a')).map((c) => c.dataset.pin)")
	first, second := linked[0], linked[1]
	Eval[bool](v.Page, "(document.addEventListener('click', (e) => { if (e.target.closest('a[target=_blank]')) e.preventDefault(); }), true)") // the targets do not exist
	v.Click(".card[data-pin='" + first + "'] [data-verb=click]")
	v.Wait("the button is pressed", "document.querySelector('.card[data-pin=\""+first+"\"] [data-verb=click]').getAttribute('aria-pressed') === 'true'")
	v.Click(".card[data-pin='" + second + "'] h2 a")
	v.Wait("a click on the link is an action", "document.querySelector('.card[data-pin=\""+second+"\"] [data-verb=click]').getAttribute('aria-pressed') === 'true'")
	v.s.wait()
	out := run(v.t, "query", "features", "last_actions", "--user", "user:reader", "--http", v.s.Addr())
	if !strings.Contains(out, "click "+first+" ") || !strings.Contains(out, "click "+second+" ") {
		v.t.Errorf("the last actions are %s, want clicks on %s and %s", out, first, second)
	}
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
	if n := len(get[pinList](v.s, "/v1/users/user:keeper/feed").Items); n != 1 {
		v.t.Fatalf("the visit has %d new pins, want only the one that is not weak", n)
	}
	v.s.wait()
	v.view("pools")
	v.Fill("#user", "user:keeper")
	v.Click("#feed-form button")
	v.Wait("the pool", "document.querySelectorAll('.pool.source-following ol > li').length === 5")
	lines := "[...document.querySelectorAll('.pool.source-following ol > li')].map((e) => e.dataset.key)"
	want := get[pinList](v.s, "/v1/users/user:keeper/pools?source=following").pins()
	if diff := cmp.Diff(want, Eval[[]string](v.Page, lines)); diff != "" {
		v.t.Errorf("bars (-api +page):\n%s", diff)
	}
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

func (v *visitor) retriesDeadLetter() {
	v.view("pipeline")
	names := append(topics.RowGroups(), topics.Materialize, topics.Features, topics.Insights, topics.FeatureFiles, topics.Producers, topics.Serving)
	v.Wait("every group is in the diagram", fmt.Sprintf("%s.every((n) => [...document.querySelectorAll('.node-name')].some((e) => e.textContent === n))", quotedList(names)))
	v.Wait("no box is in the color of errors", "document.querySelectorAll('.node.unhealthy').length === 0")
	v.Wait("no boxes overlap", `(() => {
		const at = [...document.querySelectorAll('.node rect')].map((e) => e.getBoundingClientRect());
		return at.every((a, i) => at.slice(i + 1).every((b) => a.right <= b.left || b.right <= a.left || a.bottom <= b.top || b.bottom <= a.top));
	})()`)
	v.Wait("no dead letters", "document.querySelector('#dead-letters-status').textContent.includes('None')")
	client, err := kgo.NewClient(kgo.SeedBrokers(v.s.Brokers()...))
	if err != nil {
		v.t.Fatal(err)
	}
	defer client.Close()
	bad := &kgo.Record{Topic: topics.Actions, Key: []byte("pin:r01"), Value: []byte("not <b>avro</b> at all")}
	if err := client.ProduceSync(v.t.Context(), bad).FirstErr(); err != nil {
		v.t.Fatal(err)
	}
	fate := "document.querySelector('#dead-letters .fate')?.textContent"
	v.Wait("a waiting dead letter", "document.querySelectorAll('#dead-letters li.open').length === 1 && "+fate+" === 'waiting'")
	v.Wait("the time of the next retry", "document.querySelector('#dead-letters .next').textContent.startsWith('next in ')")
	v.Click("#dead-letters summary")
	v.Wait("its value", "document.querySelector('#dead-letters pre').textContent.includes('not <b>avro</b>')")
	v.CheckAccessible("an open dead letter")
	v.stopsKind()
	v.Click("#dead-letters-retry")
	v.Wait("the immediate retry", "document.querySelector('#dead-letters-result').textContent === '1 dead letter is retried.'")
	v.Wait("it waits at rate 0 of its kind", fate+" === 'waiting' && !document.querySelector('#dead-letters .next').textContent.startsWith('next in ')")
	if n := v.deadLetters(); n != 1 {
		v.t.Errorf("%d dead letters of a stopped kind, want 1", n)
	}
	v.Click("#kinds button[type=button]")
	v.Wait("the kind has a rate again", "document.querySelector('#kinds [data-of=rate]').textContent.startsWith('10/s')")
	v.Wait("the line shows the failed retry", "document.querySelectorAll('#dead-letters li').length === 1 && "+fate+" === 'waiting' && document.querySelector('#dead-letters .next').textContent.startsWith('1 retry · next in ')")
	if n := v.deadLetters(); n != 2 {
		v.t.Errorf("%d dead letters, want the first and that of its retry", n)
	}
}

// stopsKind sets the rate of the only kind to zero.
func (v *visitor) stopsKind() {
	v.t.Helper()
	v.Wait("its kind", "document.querySelectorAll('#kinds tr').length === 1 && document.querySelector('#kinds [data-of=waiting]').textContent === '1'")
	v.Fill("#kinds input[name=rate]", "0")
	v.Click("#kinds button[type=submit]")
	v.Wait("the new limit", "document.querySelector('#kinds-result').textContent.endsWith('no retries, priority 0.')")
	v.Wait("the kind is stopped, with the operator", "document.querySelector('#kinds [data-of=rate]').textContent === 'stopped by anonymous@127.0.0.1'")
	for _, k := range get[struct{ Kinds []schemas.RetryKind }](v.s, "/v1/dead-letters/kinds").Kinds {
		if k.Rate != 0 || k.States[schemas.RetryWaiting] != 1 {
			v.t.Errorf("kind %+v: want one waiting dead letter and the rate 0", k)
		}
	}
}

// deadLetters returns the number of dead letters in their topic.
func (v *visitor) deadLetters() int {
	return len(get[struct {
		DeadLetters []struct{ Retried bool } `json:"dead_letters"`
	}](v.s, "/v1/dead-letters").DeadLetters)
}

func quotedList(list []string) string {
	text, _ := json.Marshal(list) // encoding a string cannot fail
	return string(text)
}

func (v *visitor) readsInsights() {
	v.view("insights")
	v.Wait("every plot", "document.querySelectorAll('#plots figure').length >= 6 && document.querySelectorAll('#plots svg').length >= 5")
	if missing := v.Texts("#plots .notice"); len(missing) > 0 {
		v.t.Errorf("missing: %q", missing)
	}
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
		if want := fmt.Sprint(answer.Steps[i].Users); got != want {
			v.t.Errorf("step %d: %s users, want %s", i, got, want)
		}
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
	v.Wait("every call and schema", quotedList(ids)+".every((id) => document.getElementById(id))")
	cells := "new Set([...document.querySelectorAll('#docs-body td code, #docs-body th code')].map((e) => e.textContent))"
	v.Wait("every property", "((all) => "+quotedList(properties)+".every((p) => all.has(p)))("+cells+")")
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

// If authentication is enabled, the console requests a token. With a user's token it shows the user's feed, and reports the
// views that need another token. With a token that only views, it disables the visit.
func TestBrowser_ConsoleSendsTokens(t *testing.T) {
	chromium := openBrowser(t)
	secret := filepath.Join(t.TempDir(), "token.secret")
	reader := token(t, secret, "--user", "user:reader")
	operator := token(t, secret, "--service", "ops", "--scope", "feed,features,events,operate")
	viewer := token(t, secret, "--service", "viewer", "--scope", "view")
	cfg := testConfig(t)
	cfg.Auth.SecretFile = secret
	s := start(t, app.Dev, cfg)
	for _, c := range []struct{ name, token, wants string }{
		{"of the user", reader, "document.querySelector('#state-text').textContent.includes('scope operate')"},
		{"of an operator", operator, "document.querySelector('#state-text').textContent === 'ready' && !document.querySelector('#visit').disabled"},
		{"of a viewer", viewer, "document.querySelector('#state-text').textContent === 'ready' && document.querySelector('#visit').disabled"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := chromium.Page(t, View{Width: 1280, Height: 900})
			p.Go(s.url("/?user=user:reader"))
			p.Wait("the token dialog", "document.querySelector('#token-dialog').open")
			p.Fill("#token", c.token)
			p.Click("#token-dialog .main")
			p.Wait("the feed", "!document.querySelector('#empty').hidden")
			p.Wait("the state", c.wants)
			p.Excuse("status of 401", "status of 403")
			p.Check()
		})
	}
}

// The console also works with separate processes: it shows the groups and the chosen items of all processes.
func TestBrowser_ConsoleMergesProcesses(t *testing.T) {
	chromium := openBrowser(t)
	broker := startBroker(t)
	role := func(role app.Role) *product {
		cfg := testConfig(t)
		cfg.Kafka, cfg.Registry = broker.Kafka(0).Brokers, broker.RegistryURL()
		return start(t, role, cfg)
	}
	first, second, front := role(app.Process), role(app.Process), role(app.Serve)
	front.publish(consoleEvents(time.Now())...)
	eventually.True(t, "the new owner of the partition builds chunks", func() bool {
		return len(get[pinList](front, "/v1/users/user:reader/feed?limit=24").Items) == 24
	})
	p := chromium.Page(t, View{Width: 1280, Height: 900})
	p.Go(front.url("/?user=user:reader"))
	p.Wait("a peek", "document.querySelectorAll('.card').length === 24")
	p.Click("#visit")
	p.Wait("a visit", "document.querySelector('#preview').hidden")
	Eval[string](p, "location.hash = 'pipeline'")
	for _, group := range topics.RowGroups() {
		p.Wait(group+" is whole", "((c) => c && c[3] === '"+fmt.Sprint(topics.EmbeddedPartitions)+"' && c[4] === '0' && c[5] === '0' && c[6] === 'running in 2')("+row("#groups", group)+"?.split('|'))")
	}
	for _, s := range []*product{first, second, front} {
		p.Wait("the process", row("#processes", s.cfg.HTTP)+"?.split('|')[2] === 'ready'")
	}
	p.CheckAccessible("a pipeline of several processes")
	Eval[string](p, "location.hash = 'insights'")
	p.Wait("the chosen items", "document.querySelector('#plot-shares figure')?.textContent.includes('of 48 items chosen')")
	p.Check()
}

// token returns a token that the command creates.
func token(t *testing.T, secret string, args ...string) string {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(run(t, append([]string{"token", "--auth.secret_file", secret}, args...)...)), "\n")
	return lines[len(lines)-1] // earlier lines report that a secret was created
}
