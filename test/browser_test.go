// Browser controls pages in a headless Chromium: a test can read, click and type. It records problems of the page: errors on
// the console, policy violations, and failed requests.
//
// It looks for Chromium on the PATH, and skips the test if there is none. If SMARTFEED_TEST_BROWSER is set, the test fails
// instead, so CI cannot pass without the browser tests. A value other than "1" is the program.
package test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
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

	"github.com/smartfeed/smartfeed/internal/testkit/must"
)

const (
	// Variable is the environment variable that requires a browser.
	Variable = "SMARTFEED_TEST_BROWSER"
	// Screenshots is the environment variable with the directory of Shot; without it there are no screenshots.
	Screenshots = "SMARTFEED_SCREENSHOTS"
	// Patience is the timeout of all waits. It is long, for busy machines.
	Patience = 30 * time.Second
)

// Browser is a headless Chromium of one test.
type Browser struct{ ctx context.Context }

// Open starts a Chromium that stops with the test.
func openBrowser(t testing.TB) *Browser {
	t.Helper()
	program := find(t)
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(program),
		chromedp.NoSandbox, // CI runs as root, and Chromium refuses to use its sandbox as root
		chromedp.Flag("disable-dev-shm-usage", true),
		chromedp.Flag("lang", "en-GB"),
		chromedp.Env("TZ=UTC", "LANGUAGE=en_GB"),
		chromedp.UserDataDir(t.TempDir()),
	)
	ctx, stop := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(stop)
	ctx, end := chromedp.NewContext(ctx)
	t.Cleanup(end)
	must.OK(t, chromedp.Do(ctx))
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
		t.Fatalf("%s is set, but there is no Chromium on the PATH", Variable)
	}
	t.Skipf("there is no Chromium on the PATH: install the package chromium, or set %s to have this fail", Variable)
	return ""
}

// View is the size and the display mode of a page.
type View struct {
	Width, Height int64 // in CSS pixels
	Dark          bool  // preferred color scheme
	Phone         bool  // touch instead of a pointer
}

// Page is one tab. Its methods fail the test that opened it, or the one that was passed to For.
type Page struct {
	t   testing.TB
	ctx context.Context
	*heard
}

// heard records the problems of a tab.
type heard struct {
	mu       sync.Mutex
	problems []string
	excused  []string
}

// For returns the same tab for a subtest.
func (p *Page) For(t testing.TB) *Page { return &Page{t, p.ctx, p.heard} }

// watch records policy violations and elements with click listeners, from before the first script of a page.
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
	// The first action creates the tab, and the end of its context closes the tab.
	err := chromedp.Do(ctx)
	if err == nil {
		err = chromedp.Listen(ctx, p.hear)
	}
	must.OK(t, err)
	p.do("look at the tab", chromedp.EmulateViewport(v.Width, v.Height, v.device), chromedp.Func(v.prefer))
	return p
}

func (v View) device(metrics *emulation.SetDeviceMetricsOverrideParams, touch *emulation.SetTouchEmulationEnabledParams) {
	metrics.Mobile, touch.Enabled = v.Phone, v.Phone
}

// prefer sets the user's preferences, with reduced motion, and installs watch.
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

// hear records problems of the page.
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

// Excuse makes Check ignore problems that contain one of the texts, because the test causes them.
func (p *Page) Excuse(texts ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.excused = append(p.excused, texts...)
}

// Check fails the test for each error on the console, failed request, or policy violation.
func (p *Page) Check() {
	p.t.Helper()
	for _, breach := range Eval[[]string](p, "window.breaches") {
		p.t.Errorf("the page violated its policy: %s", breach)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, problem := range p.problems {
		if !slices.ContainsFunc(p.excused, func(text string) bool { return strings.Contains(problem, text) }) {
			p.t.Errorf("the page logged: %s", problem)
		}
	}
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

// Go opens a URL and waits until its scripts have run.
func (p *Page) Go(url string) {
	p.t.Helper()
	p.do("open "+url, chromedp.Navigate(url))
}

// value runs an action with a result, within Patience.
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

// Eval returns the value of a JavaScript expression. It awaits promises.
func Eval[T any](p *Page, expression string) T {
	p.t.Helper()
	return value(p, expression, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
}

// Wait returns when a JavaScript expression is true. An expression that throws counts as false, for example because an
// element does not exist yet. After Patience, Wait fails the test and reports what.
func (p *Page) Wait(what, expression string) {
	p.t.Helper()
	look := "(async () => { try { return !!(await (" + expression + ")); } catch { return false; } })()"
	for end := time.Now().Add(Patience); !Eval[bool](p, look); {
		if time.Now().After(end) {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.t.Fatalf("%s: timed out after %s: %s\nthe page logged %q", what, Patience, expression, p.problems)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// Click waits until the only element of a selector stops moving, scrolls to it, and clicks in its middle. While a page is
// loading, elements move.
func (p *Page) Click(selector string) {
	p.t.Helper()
	p.Wait(selector+" does not move", fmt.Sprintf("(async () => { const e = document.querySelector(%s), at = () => JSON.stringify(e.getBoundingClientRect()); "+
		"const was = at(); await new Promise((done) => setTimeout(done, 50)); return was === at(); })()", quoted(selector)))
	p.do("click "+selector, chromedp.Click(chromedp.CSS(selector), chromedp.NodeVisible))
}

// Fill clears a field and types a text into it.
func (p *Page) Fill(selector, text string) {
	p.t.Helper()
	Eval[bool](p, fmt.Sprintf("(document.querySelector(%s).select(), true)", quoted(selector)))
	p.do("type into "+selector, chromedp.SendKeys(chromedp.CSS(selector), text))
}

// Choose selects a value of a list.
func (p *Page) Choose(selector, value string) {
	p.t.Helper()
	Eval[bool](p, fmt.Sprintf("((e) => { e.value = %s; e.dispatchEvent(new Event('change')); return true; })(document.querySelector(%s))",
		quoted(value), quoted(selector)))
}

// Press presses keys in sequence; see package kb of chromedp for keys without a letter.
func (p *Page) Press(keys string) {
	p.t.Helper()
	p.do("press keys", chromedp.KeyEvent(keys))
}

// Texts returns the texts of the elements of a selector.
func (p *Page) Texts(selector string) []string {
	p.t.Helper()
	return Eval[[]string](p, fmt.Sprintf("[...document.querySelectorAll(%s)].map((e) => e.textContent)", quoted(selector)))
}

// Shot writes a screenshot to NAME.png in the directory of Screenshots.
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

// quoted returns a string, or a list of strings, in JavaScript.
func quoted(v any) string {
	q, _ := json.Marshal(v) // encoding strings cannot fail, and JSON is valid JavaScript
	return string(q)
}
