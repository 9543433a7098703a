package client_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/smartfeed/smartfeed/internal/testkit/eventually"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/serving/client"
)

// dev is the address of a running `smartfeed dev`. `make test-clients` sets it.
func dev(t *testing.T) string {
	t.Helper()
	address := os.Getenv("SMARTFEED_TEST_CLIENTS")
	if address == "" {
		t.Skip("SMARTFEED_TEST_CLIENTS, the address of a running `smartfeed dev`, is not set")
	}
	return address
}

// losing is a proxy that forwards every request to the server, and replaces the first answer by a 503.
func losing(t *testing.T, address string) (proxy *httptest.Server, requests *atomic.Int32) {
	t.Helper()
	to := must.Get(url.Parse(address))(t)
	requests = &atomic.Int32{}
	forward := httputil.NewSingleHostReverseProxy(to)
	forward.ModifyResponse = func(res *http.Response) error {
		if requests.Add(1) == 1 {
			res.StatusCode = http.StatusServiceUnavailable
		}
		return nil
	}
	proxy = httptest.NewServer(forward)
	t.Cleanup(proxy.Close)
	return proxy, requests
}

// The server accepts a batch, and the client does not learn it: each pin is in the feed once, and each save counts once.
func TestDev_RepeatedBatchHasOneEffect(t *testing.T) {
	address := dev(t)
	proxy, requests := losing(t, address)
	c := must.Get(client.New(client.Config{Address: proxy.URL}))(t)
	defer c.Close()
	run := fmt.Sprint(time.Now().UnixNano())
	reader, author := "user:go-reader-"+run, "user:go-author-"+run
	events := make(chan client.Event, 100)
	events <- client.Event{Stream: "follows", Actor: reader, Verb: "follow", Object: author}
	var want []string
	for i := range 5 {
		pin := fmt.Sprintf("pin:go-%s-%d", run, i)
		want = append(want, pin)
		events <- client.Event{Stream: "pins", Actor: author, Verb: "create", Object: pin, Title: "Tea", Interests: []string{"interest:tea"}}
		events <- client.Event{Stream: "actions", Actor: reader, Verb: "save", Object: pin, Surface: "test"}
	}
	close(events)
	must.OK(t, c.PublishAll(t.Context(), events, func(r client.Rejection) { t.Errorf("rejected: %+v", r) }, client.PublishOptions{}))
	expect.Equal(t, requests.Load(), 2, "requests of the batch")

	eventually.True(t, "five new pins", func() bool { n, err := c.Waiting(t.Context(), reader); return err == nil && n == 5 })
	page := must.Get(c.Visit(t.Context(), reader, client.VisitOptions{}))(t)
	expect.Equal(t, len(page.Items), 5, "items")
	var got []string
	for item, err := range c.Feed(t.Context(), reader, client.VisitOptions{Limit: 2}) {
		must.OK(t, err)
		got = append(got, item.ID)
	}
	slices.Sort(got)
	expect.NoDiff(t, got, want, "feed")
	page = must.Get(c.Visit(t.Context(), reader, client.VisitOptions{Limit: 2}))(t)
	refused := must.As[*client.Error](t, expect.ErrorOf(c.Older(t.Context(), author, *page.Next, 0)))
	expect.Equal(t, refused.Status, http.StatusBadRequest, "status of the cursor of another user")
	eventually.True(t, "five saves in a feature", func() bool {
		answer, err := c.Features(t.Context(), client.FeaturesRequest{Features: []string{"interests_24h"}, Users: []string{reader}})
		return err == nil && string(answer.Values[reader]["interests_24h"]) == `{"interest:tea":5}`
	})
}

func TestDev_RejectsInvalidEventsAndTimesOut(t *testing.T) {
	c := must.Get(client.New(client.Config{Address: dev(t)}))(t)
	defer c.Close()
	events := make(chan client.Event, 2)
	events <- client.Event{Stream: "pins", Actor: "user:a", Verb: "create", Object: "pin:valid"}
	events <- client.Event{Stream: "pins", Actor: "user:a", Verb: "bake", Object: "pin:invalid"}
	close(events)
	var got []bool
	must.OK(t, c.PublishAll(t.Context(), events, func(r client.Rejection) { got = append(got, r.Invalid) }, client.PublishOptions{}))
	expect.NoDiff(t, got, []bool{false, true}, "rejections")

	ctx, cancel := context.WithTimeout(t.Context(), time.Nanosecond)
	defer cancel()
	expect.Is(t, expect.ErrorOf(c.Visit(ctx, "user:a", client.VisitOptions{})), context.DeadlineExceeded, "Visit")
}
