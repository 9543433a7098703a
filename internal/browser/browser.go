// Package browser lets tests use pages as a person does, in a headless Chromium: it looks, clicks, types, and keeps what
// the page should not have said (errors on the console, broken policies, requests that came to nothing).
//
// Chromium is looked for on the PATH. Without one a test is skipped, unless SMARTFEED_TEST_BROWSER is set: then it fails,
// so that a gate cannot pass because nothing was looked at. What the variable holds, other than "1", is the program.
package browser

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

const (
	// Variable says that a browser must be there.
	Variable = "SMARTFEED_TEST_BROWSER"
	// Screenshots names the directory that Shot writes to; without it there are none.
	Screenshots = "SMARTFEED_SCREENSHOTS"
	// Patience is how long anything may take that a test waits for: the machine may be busy.
	Patience = 30 * time.Second
)

// Browser is a Chromium without a window, of one test.
type Browser struct{ ctx context.Context }

// Open starts a Chromium that ends with the test.
func Open(t testing.TB) *Browser {
	t.Helper()
	program := find(t)
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(program),
		chromedp.NoSandbox, // gates run as root, where Chromium refuses its sandbox
		chromedp.Flag("disable-dev-shm-usage", true),
		chromedp.Flag("lang", "en-GB"),
		chromedp.Env("TZ=UTC", "LANGUAGE=en_GB"),
		chromedp.UserDataDir(t.TempDir()),
	)
	ctx, stop := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(stop)
	ctx, end := chromedp.NewContext(ctx)
	t.Cleanup(end)
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("start %s: %v", program, err)
	}
	return &Browser{ctx}
}

func find(t testing.TB) string {
	t.Helper()
	wanted := os.Getenv(Variable)
	for _, name := range []string{wanted, "chromium", "chromium-browser", "google-chrome"} {
		if name == "" || name == "1" {
			continue
		}
		if program, err := exec.LookPath(name); err == nil {
			return program
		}
	}
	if wanted != "" {
		t.Fatalf("%s is set, and there is no Chromium on the PATH", Variable)
	}
	t.Skipf("there is no Chromium on the PATH: install the package chromium, or set %s to have this fail", Variable)
	return ""
}

// View is how a page is looked at.
type View struct {
	Width, Height int64 // in CSS pixels
	Dark          bool  // what the person prefers
	Phone         bool  // touched, not pointed at
}

// Page is one tab. Its methods fail the test that opened it, or the one that it was given to.
type Page struct {
	t   testing.TB
	ctx context.Context
	*heard
}

// heard is what a tab said.
type heard struct {
	mu       sync.Mutex
	problems []string
	excused  []string
}

// For returns the same tab for a part of the test.
func (p *Page) For(t testing.TB) *Page { return &Page{t, p.ctx, p.heard} }

// watch has a page keep the breaches of its policy, and the elements that hear of clicks, from its first script on.
const watch = `window.breaches = [];
document.addEventListener('securitypolicyviolation', (e) => window.breaches.push(e.violatedDirective + ' ' + e.blockedURI));
window.clicked = new Set();
{
  const hear = EventTarget.prototype.addEventListener;
  EventTarget.prototype.addEventListener = function (event, ...more) {
    if (this instanceof Element && /^(dbl)?click$|^(mouse|pointer)(down|up)$|^touch(start|end)$/.test(event)) window.clicked.add(this);
    return hear.call(this, event, ...more);
  };
}`

// Page opens a tab.
func (b *Browser) Page(t testing.TB, v View) *Page {
	t.Helper()
	ctx, end := chromedp.NewContext(b.ctx)
	t.Cleanup(end)
	p := &Page{t: t, ctx: ctx, heard: new(heard)}
	// The first action makes the tab, which lives as long as its context: that must not be one that ends early.
	err := chromedp.Do(ctx)
	if err == nil {
		err = chromedp.Listen(ctx, p.hear)
	}
	if err != nil {
		t.Fatalf("open a tab: %v", err)
	}
	p.do("look at the tab", chromedp.EmulateViewport(v.Width, v.Height, v.device), chromedp.Func(v.prefer))
	return p
}

func (v View) device(metrics *emulation.SetDeviceMetricsOverrideParams, touch *emulation.SetTouchEmulationEnabledParams) {
	metrics.Mobile, touch.Enabled = v.Phone, v.Phone
}

// prefer tells pages what the person prefers, and has them watch. Nothing moves.
func (v View) prefer(ctx context.Context, tab *chromedp.Target) error {
	scheme := "light"
	if v.Dark {
		scheme = "dark"
	}
	media := []*emulation.MediaFeature{
		{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"},
	}
	_, err := cdp.Call(ctx, tab, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: media})
	if err != nil {
		return err
	}
	_, err = cdp.Call(ctx, tab, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: watch})
	return err
}

// hear keeps what the page should not have said.
func (p *Page) hear(event any) {
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		p.note("exception: " + exception(e.ExceptionDetails))
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.ConsoleAPICalledTypeError || e.Type == runtime.ConsoleAPICalledTypeWarning {
			p.note(fmt.Sprintf("console %s: %s", e.Type, spelled(e.Args)))
		}
	case *log.EventEntryAdded:
		if e.Entry.Level == log.EntryLevelError || e.Entry.Level == log.EntryLevelWarning {
			p.note(fmt.Sprintf("%s %s: %s %s", e.Entry.Source, e.Entry.Level, e.Entry.Text, e.Entry.URL))
		}
	}
}

func exception(e *runtime.ExceptionDetails) string {
	if e.Exception != nil {
		return e.Text + " " + e.Exception.Description
	}
	return e.Text
}

func spelled(args []*runtime.RemoteObject) string {
	var parts []string
	for _, a := range args {
		parts = append(parts, strings.TrimSpace(a.Description+" "+string(a.Value)))
	}
	return strings.Join(parts, " ")
}

func (h *heard) note(problem string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.problems = append(h.problems, problem)
}

// Excuse has Check pass over problems that hold a text: those that the test brings about.
func (p *Page) Excuse(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.excused = append(p.excused, text)
}

// Check fails the test for each error on the console, request that came to nothing, or breach of the page's policy.
func (p *Page) Check() {
	p.t.Helper()
	for _, breach := range Eval[[]string](p, "window.breaches") {
		p.t.Errorf("the page broke its policy: %s", breach)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, problem := range p.problems {
		if !p.isExcused(problem) {
			p.t.Errorf("the page said: %s", problem)
		}
	}
}

func (p *Page) isExcused(problem string) bool {
	for _, text := range p.excused {
		if strings.Contains(problem, text) {
			return true
		}
	}
	return false
}

// do runs actions, within Patience.
func (p *Page) do(what string, actions ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	ctx, done := context.WithTimeout(p.ctx, Patience)
	defer done()
	if err := chromedp.Do(ctx, actions...); err != nil {
		p.t.Fatalf("%s: %v", what, err)
	}
}

// Go opens an address and waits until its scripts have run.
func (p *Page) Go(url string) {
	p.t.Helper()
	p.do("open "+url, chromedp.Navigate(url))
}

// value runs an action that has one, within Patience.
func value[T any](p *Page, what string, action chromedp.Action[T]) T {
	p.t.Helper()
	ctx, done := context.WithTimeout(p.ctx, Patience)
	defer done()
	v, err := chromedp.Run(ctx, action)
	if err != nil {
		p.t.Fatalf("%s: %v", what, err)
	}
	return v
}

// Eval returns the value of a JavaScript expression; what it promises is awaited.
func Eval[T any](p *Page, expression string) T {
	p.t.Helper()
	return value(p, expression, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
}

// Wait returns when a JavaScript expression is true; one that throws is not, such as that of an element that is not there
// yet. After Patience it fails the test, saying what was waited for.
func (p *Page) Wait(what, expression string) {
	p.t.Helper()
	look := "(async () => { try { return !!(await (" + expression + ")); } catch { return false; } })()"
	for end := time.Now().Add(Patience); !Eval[bool](p, look); {
		if time.Now().After(end) {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.t.Fatalf("%s: not so after %s: %s\nthe page said %q", what, Patience, expression, p.problems)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// Click waits until the one element that a selector names stands still, scrolls to it, and clicks in its middle: while a page is
// being filled, what is there a moment later may be another.
func (p *Page) Click(selector string) {
	p.t.Helper()
	p.Wait(selector+" stands still", fmt.Sprintf("(async () => { const e = document.querySelector(%s), at = () => JSON.stringify(e.getBoundingClientRect()); "+
		"const was = at(); await new Promise((done) => setTimeout(done, 50)); return was === at(); })()", quoted(selector)))
	p.do("click "+selector, chromedp.Click(chromedp.CSS(selector), chromedp.NodeVisible))
}

// Fill empties a field and types a text into it.
func (p *Page) Fill(selector, text string) {
	p.t.Helper()
	Eval[bool](p, fmt.Sprintf("(document.querySelector(%s).select(), true)", quoted(selector)))
	p.do("type into "+selector, chromedp.SendKeys(chromedp.CSS(selector), text))
}

// Press presses keys, one after the other; see package kb of chromedp for those without a letter.
func (p *Page) Press(keys string) {
	p.t.Helper()
	p.do("press keys", chromedp.KeyEvent(keys))
}

// Texts returns what stands in the elements that a selector names.
func (p *Page) Texts(selector string) []string {
	p.t.Helper()
	return Eval[[]string](p, fmt.Sprintf("[...document.querySelectorAll(%s)].map((e) => e.textContent)", quoted(selector)))
}

// Shot writes what the window shows to NAME.png in the directory that Screenshots names.
func (p *Page) Shot(name string) {
	p.t.Helper()
	dir := os.Getenv(Screenshots)
	if dir == "" {
		return
	}
	picture := value(p, "take a picture", chromedp.CaptureScreenshot())
	err := os.MkdirAll(dir, 0o755)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, name+".png"), picture, 0o644)
	}
	if err != nil {
		p.t.Fatalf("write screenshot: %v", err)
	}
}

func quoted(text string) string {
	q, _ := json.Marshal(text) // a text has JSON, which is JavaScript
	return string(q)
}
