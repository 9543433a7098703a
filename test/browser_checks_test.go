package test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
)

// recorded records the errors of a test.
type recorded struct {
	testing.TB
	said []string
}

func (r *recorded) Helper() {}
func (r *recorded) Errorf(format string, args ...any) {
	r.said = append(r.said, fmt.Sprintf(format, args...))
}

// The page violates its content security policy, throws, logs an error and requests a missing file.
func TestBrowser_ReportsProblemsOfPage(t *testing.T) {
	const script = `
		console.error('a complaint');
		fetch('/nothing').then(() => { window.asked = true; });
		const s = document.createElement('script'); s.textContent = 'window.ran = true'; document.body.append(s);
		document.querySelector('button').addEventListener('click', () => { document.title = document.querySelector('input').value; });
		setTimeout(() => { throw new Error('a surprise'); });`
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Security-Policy", "default-src 'self'; img-src data:")
		switch r.URL.Path {
		case "/":
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprint(w, `<!doctype html><link rel="icon" href="data:,"><input value="old"><button>go</button><script src="/script.js"></script>`)
		case "/script.js":
			w.Header().Set("Content-Type", "text/javascript")
			fmt.Fprint(w, script)
		default:
			http.NotFound(w, r)
		}
	}))
	defer site.Close()
	p := openBrowser(t).Page(t, View{Width: 800, Height: 600, Dark: true})
	p.Go(site.URL)
	p.Wait("the script ran", "document.querySelector('script:not([src])')")
	p.Fill("input", "new")
	p.Click("button")
	p.Wait("the button was clicked", "document.title === 'new'")
	p.Wait("the color scheme is dark", "matchMedia('(prefers-color-scheme: dark)').matches")
	p.Wait("the page has violated its policy", "window.breaches.length")
	expect.False(t, Eval[bool](p, "'ran' in window"), "a script ran that the policy forbids")
	r := &recorded{TB: t}
	p.t = r
	p.Wait("the last event has arrived", "window.asked") // events arrive in order
	p.Check()
	for _, want := range []string{"script-src", "a complaint", "404", "a surprise"} {
		expect.True(t, slices.ContainsFunc(r.said, func(s string) bool { return strings.Contains(s, want) }), "%s is among %q", want, r.said)
	}
	p.Excuse("a complaint", "404", "a surprise", "script", "Content Security")
	r.said = nil
	p.Check()
	if len(r.said) != 1 || !strings.Contains(r.said[0], "violated its policy") {
		t.Errorf("got %q, want only the policy violation: the rest is excused", r.said)
	}
}

// The page has violations for blind users, users with low vision, and touch users.
func TestBrowser_ReportsAccessibilityProblems(t *testing.T) {
	const bad = `<!doctype html><html><link rel="icon" href="data:,"><title>Bad</title><body style="background:#fff">
		<main><h1>One</h1><h3 id="twice">Three</h3><p id="twice" style="color:#999">pale</p>
		<button style="width:60px;height:30px"></button><button style="width:10px;height:10px;padding:0">small</button>
		<input tabindex="3" aria-describedby="unknown" style="width:60px;height:30px"><img width="30" height="30" src="data:image/gif;base64,R0lGODlhAQABAAAAACw=">
		<div id="pressed" role="button">press</div><a id="passed" href="/" tabindex="-1">pass</a><p id="inline" onclick="1">on</p><p id="heard">hear</p>
		<script>document.querySelector('#heard').addEventListener('click', () => {})</script>
		<table><tr><td>x</td></tr></table><div style="width:2000px">wide</div>
		<svg width="60" height="30"><rect width="60" height="30" fill="#000"/><text x="5" y="20" fill="#333">dark</text></svg></main>`
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, bad)
	}))
	defer site.Close()
	p := openBrowser(t).Page(t, View{Width: 800, Height: 600})
	p.Go(site.URL)
	r := &recorded{TB: t}
	p.t = r
	p.CheckAccessible("bad")
	for _, want := range []string{
		"no language", "no nav", "skips from level 1", "2 elements are #twice", "pale”: contrast 2.85", "dark”: contrast 1.6", "positive tabindex",
		"#pressed “press” is a button without keyboard access", "#passed “pass” is not in the tab order", "#inline “on” has a click listener", "#heard “hear” has a click listener",
		"refers to the unknown id #unknown", "no caption", "no headings", "10 by 10 pixels", "pixels wide", "a button has no name", "a image has no name", "a textbox has no name",
	} {
		expect.True(t, slices.ContainsFunc(r.said, func(s string) bool { return strings.Contains(s, want) }), "%q is among %q", want, r.said)
	}
}
