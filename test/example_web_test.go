package test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/smartfeed/smartfeed/app"
	"github.com/smartfeed/smartfeed/internal/testkit/child"
	"github.com/smartfeed/smartfeed/internal/testkit/eventually"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/topics"
)

// examplesVariable names the variable with the directory of the tools that `make test-examples` installs: a virtual environment
// for Python, and jars for Java.
const examplesVariable = "SMARTFEED_TEST_EXAMPLES"

// exampleTools returns the directory of the tools, or skips the test.
func exampleTools(t *testing.T) string {
	t.Helper()
	dir := os.Getenv(examplesVariable)
	if dir == "" {
		t.Skipf("%s is not set: make test-examples tests the examples", examplesVariable)
	}
	return dir
}

// startWeb runs examples/web in front of a product until the test ends, and returns its URL.
func startWeb(t *testing.T, p *product) string {
	t.Helper()
	program, address := filepath.Join(t.TempDir(), "web"), child.FreeAddress(t)
	if out, err := exec.Command("go", "build", "-o", program, "./examples/web").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	cmd := exec.Command(program, "-http", address, "-smartfeed", p.url(""))
	must.OK(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // reports the kill
	})
	eventually.True(t, "the page is served", func() bool {
		res, err := http.Get("http://" + address)
		if err == nil {
			res.Body.Close()
		}
		return err == nil
	})
	return "http://" + address
}

// createPins makes user:bob create pins.
func (p *product) createPins(first, pins int, title, link string) {
	p.t.Helper()
	var events []map[string]any
	for i := range pins {
		id := fmt.Sprint("pin:", first+i)
		events = append(events, map[string]any{"stream": "pins", "id": id, "time": time.Now().Format(time.RFC3339Nano),
			"actor": "user:bob", "verb": "create", "object": id, "title": title, "link": link})
	}
	p.publish(events...)
	p.wait()
}

// actionsOf returns the last actions of a user in JSON.
func (p *product) actionsOf(user string) string {
	p.t.Helper()
	res := must.Get(http.Post(p.url("/v1/features"), "application/json",
		strings.NewReader(`{"features":["last_actions"],"users":["`+user+`"]}`)))(p.t)
	defer res.Body.Close()
	return string(must.Get(io.ReadAll(res.Body))(p.t))
}

func TestExample_WebPageShowsFeedAndReportsActions(t *testing.T) {
	exampleTools(t)
	p := start(t, app.Dev, testConfig(t))
	site := startWeb(t, p)
	p.publish(map[string]any{"stream": "follows", "id": "f", "time": time.Now().Format(time.RFC3339Nano),
		"actor": "user:web", "verb": "follow", "object": "user:bob"})
	const hostile = `<img src=x onerror="window.hacked = true">"'&amp;`
	p.createPins(100, 24, hostile, "javascript:window.hacked=true")

	// Earlier visits have shown the pins, so that the page scrolls through older items.
	eventually.True(t, "the feed has all pins", func() bool {
		return len(get[pinList](p, "/v1/users/user:web/feed?limit=100").Items) == 24
	})

	page := openBrowser(t).Page(t, View{Width: 600, Height: 900})
	page.Go(site + "/?user=user:web")
	page.Wait("the visit shows pins", "document.querySelectorAll('article').length >= 10")
	for _, title := range page.Texts("article h2") {
		expect.Equal(t, title, hostile, "title")
	}
	if Eval[bool](page, "!!window.hacked || document.querySelectorAll('main img, main a:not([hidden])').length > 0") {
		t.Error("the page runs scripts of titles or links")
	}
	page.Wait("scrolling shows all pins", "(scrollTo(0, document.body.scrollHeight), document.querySelectorAll('article').length === 24)")
	if ids := Eval[[]string](page, "[...document.querySelectorAll('article')].map((a) => a.dataset.pin)"); len(slices.Compact(slices.Sorted(slices.Values(ids)))) != 24 {
		t.Errorf("pins are shown twice: %q", ids)
	}

	p.createPins(200, 1, "Tea", "https://tea.example/")
	page.Wait("the page announces the new pin", "document.querySelector('#new').textContent === '1 new' && !document.querySelector('#new').hidden")
	page.Click("#new")
	page.Wait("the new pin is on top", "document.querySelector('article').dataset.pin === 'pin:200'")
	expect.NoDiff(t, page.Texts("article:first-child h2, article:first-child a"), []string{"Tea", "Open"}, "the new pin shows")
	page.Click("article:first-child [data-verb=save]")
	page.Click("article:nth-child(2) [data-verb=hide]")
	page.Wait("the hidden pin disappears", "document.querySelectorAll('article').length === 24")
	eventually.True(t, "the save and the hide are in the features of the user", func() bool {
		got := p.actionsOf("user:web")
		return strings.Contains(got, `"object":"pin:200","verb":"save"`) && strings.Contains(got, `"verb":"hide"`)
	})
	p.awaitImpression("pin:200")
	for name, value := range map[string]string{"Host": "evil.example", "Sec-Fetch-Site": "cross-site"} {
		expect.Equal(t, visitStatus(t, site, name, value), http.StatusForbidden, "status of a visit with %s %s", name, value)
	}
	page.Check()
	page.Shot("example-web")
}

// The page must stay an example that can be read in minutes.
func TestExample_WebPageIsShort(t *testing.T) {
	expect.AtMost(t, strings.Count(readText(t, "examples/web/index.html"), "\n"), 200, "lines of examples/web/index.html")
}

// visitStatus returns the status of a visit with a header, through the server of the page.
func visitStatus(t *testing.T, site, header, value string) int {
	t.Helper()
	req := must.Get(http.NewRequest(http.MethodPost, site+"/v1/users/user:web/visits", http.NoBody))(t)
	req.Header.Set(header, value)
	if header == "Host" {
		req.Host = value
	}
	res := must.Get(http.DefaultClient.Do(req))(t)
	res.Body.Close()
	return res.StatusCode
}

// awaitImpression waits until a record of client-impressions has the pin.
func (p *product) awaitImpression(pin string) {
	p.t.Helper()
	client := must.Get(kgo.NewClient(kgo.SeedBrokers(p.Brokers()...), kgo.ConsumeTopics(topics.ClientImpressions)))(p.t)
	defer client.Close()
	ctx, cancel := context.WithTimeout(p.t.Context(), processingTimeout)
	defer cancel()
	for found := false; !found; {
		fetched := client.PollFetches(ctx)
		must.OK(p.t, fetched.Err())
		fetched.EachRecord(func(r *kgo.Record) { found = found || bytes.Contains(r.Value, []byte(pin)) })
	}
}
