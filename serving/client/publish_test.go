package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
)

// answer is an answer of a scripted server. A status of 0 is a connection that ends before the answer.
type answer struct {
	status     int
	retryAfter string
	body       string
}

var acceptedAll = answer{status: http.StatusAccepted, body: `{"accepted":1}`}

// scripted is a server without a network. It returns the answers in turn, and then accepts everything.
type scripted struct {
	answers  []answer
	requests [][]Event
	times    []time.Time
}

func (s *scripted) RoundTrip(r *http.Request) (*http.Response, error) {
	var events []Event
	for dec := json.NewDecoder(r.Body); ; {
		var e Event
		if err := dec.Decode(&e); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		events = append(events, e)
	}
	s.requests, s.times = append(s.requests, events), append(s.times, time.Now())
	a := acceptedAll
	if len(s.answers) > 0 {
		a, s.answers = s.answers[0], s.answers[1:]
	}
	if a.status == 0 {
		return nil, io.ErrUnexpectedEOF
	}
	header := http.Header{"Content-Type": {"application/problem+json"}, "Retry-After": {a.retryAfter}}
	return &http.Response{StatusCode: a.status, Header: header, Body: io.NopCloser(strings.NewReader(a.body)), Request: r}, nil
}

// published sends pins of these names through PublishAll, closes the channel, and returns the rejected events.
func published(t *testing.T, s *scripted, o PublishOptions, names ...string) (rejected []Rejection) {
	t.Helper()
	c := connected(t, Config{Address: "a.example"})
	c.http.Transport = s
	events := make(chan Event, len(names))
	for _, name := range names {
		events <- Event{Stream: "pins", Object: "pin:" + name}
	}
	close(events)
	must.OK(t, c.PublishAll(t.Context(), events, func(r Rejection) { rejected = append(rejected, r) }, o))
	return rejected
}

// objects returns the pins of each request.
func (s *scripted) objects() (all []string) {
	for _, events := range s.requests {
		var names []string
		for _, e := range events {
			names = append(names, strings.TrimPrefix(e.Object, "pin:"))
		}
		all = append(all, strings.Join(names, " "))
	}
	return all
}

func TestPublishAll_LimitsRequests(t *testing.T) {
	for name, c := range map[string]struct {
		options PublishOptions
		want    []string
	}{
		"default": {PublishOptions{}, []string{"a b c d e"}},
		"events":  {PublishOptions{MaxEvents: 2}, []string{"a b", "c d", "e"}},
		"bytes":   {PublishOptions{MaxBytes: 150}, []string{"a b", "c d", "e"}},
	} {
		s := &scripted{}
		if rejected := published(t, s, c.options, "a", "b", "c", "d", "e"); rejected != nil || !slices.Equal(s.objects(), c.want) {
			t.Errorf("%s: got %q and the rejections %v, want %q", name, s.objects(), rejected, c.want)
		}
		var ids []string
		for _, e := range slices.Concat(s.requests...) {
			ids = append(ids, e.ID)
			if e.ID == "" || time.Since(e.Time).Abs() > time.Minute {
				t.Errorf("%s: got the id %q and the time %s, want an id and now", name, e.ID, e.Time)
			}
		}
		slices.Sort(ids)
		expect.Equal(t, len(slices.Compact(ids)), 5, "%s: different ids in %q", name, ids)
	}
}

func TestPublishAll_WaitsForLinger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{}
		c := connected(t, Config{Address: "a.example"})
		c.http.Transport = s
		events, done := make(chan Event), make(chan error)
		began := time.Now()
		go func() { done <- c.PublishAll(t.Context(), events, nil, PublishOptions{Linger: time.Second}) }()
		events <- Event{ID: "1"}
		time.Sleep(999 * time.Millisecond)
		events <- Event{ID: "2"}
		time.Sleep(2 * time.Millisecond)
		events <- Event{ID: "3"}
		close(events)
		must.OK(t, <-done)
		if len(s.requests) != 2 || len(s.requests[0]) != 2 || s.times[0].Sub(began) != time.Second {
			t.Errorf("got the requests %v at %v, want two events after a second, and one", s.requests, s.times)
		}
	})
}

// A request without an answer may have been accepted, so it must be repeated with the same ids.
func TestPublishAll_RepeatsRequestsWithTheSameIDs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{answers: []answer{{}, {status: 503}, {status: 429, retryAfter: "7"}, {status: 502}, {status: 504}, {status: 408}}}
		if rejected := published(t, s, PublishOptions{MaxEvents: 2}, "a", "b", "c"); rejected != nil {
			t.Errorf("got the rejections %v, want none", rejected)
		}
		expect.NoDiff(t, s.objects(), append(slices.Repeat([]string{"a b"}, 7), "c"), "objects")
		for i, events := range s.requests[:7] {
			expect.Equal(t, [2]string{events[0].ID, events[1].ID}, [2]string{s.requests[0][0].ID, s.requests[0][1].ID}, "ids of request %d", i)
			if i == 0 {
				continue
			}
			least, most := 50*time.Millisecond<<(i-1), 100*time.Millisecond<<(i-1)
			if i == 3 {
				least, most = 7*time.Second, 7*time.Second
			}
			expect.Between(t, s.times[i].Sub(s.times[i-1]), least, most, "time until request %d", i)
		}
	})
}

func TestPublishAll_RejectsEventsWithTheirReasons(t *testing.T) {
	others := errOthers.Error()
	for name, c := range map[string]struct {
		answer answer
		want   []string
	}{
		"invalid lines": {
			answer{status: 400, body: `{"status":400,"title":"Bad Request","errors":["line 1: verb: \"x\" is unknown","line 3"]}`},
			[]string{`a true line 1: verb: "x" is unknown`, "b false " + others, "c true line 3"},
		},
		"other problem": {answer{status: 403}, []string{"a false … 403 Forbidden", "b false … 403 Forbidden", "c false … 403 Forbidden"}},
		"server error":  {answer{status: 500}, []string{"a false … 500 Internal Server Error", "b false … 500 Internal Server Error", "c false … 500 Internal Server Error"}},
	} {
		s := &scripted{answers: []answer{c.answer}}
		var got []string
		for _, r := range published(t, s, PublishOptions{}, "a", "b", "c") {
			reason := r.Reason.Error()
			if _, problem, wrapped := strings.Cut(reason, "/v1/events: "); wrapped {
				reason = "… " + problem
			}
			got = append(got, fmt.Sprint(strings.TrimPrefix(r.Event.Object, "pin:"), " ", r.Invalid, " ", reason))
		}
		expect.NoDiff(t, got, c.want, "%s", name)
		expect.Equal(t, len(s.requests), 1, "%s: requests", name)
	}
}

func TestPublishAll_RejectsEventsWithoutJSON(t *testing.T) {
	c := connected(t, Config{Address: "a.example"})
	s := &scripted{}
	c.http.Transport = s
	events := make(chan Event, 2)
	events <- Event{ID: "1", Candidates: []Candidate{{Score: math.NaN()}}}
	events <- Event{ID: "2"}
	close(events)
	var rejected []Rejection
	err := c.PublishAll(t.Context(), events, func(r Rejection) { rejected = append(rejected, r) }, PublishOptions{})
	if err != nil || len(rejected) != 1 || rejected[0].Event.ID != "1" || !rejected[0].Invalid || len(s.requests) != 1 {
		t.Errorf("got %v, the rejections %v and the requests %v, want one of each", err, rejected, s.requests)
	}
}

func TestPublishAll_StopsRepeating(t *testing.T) {
	for name, c := range map[string]struct {
		retryFor, cancel, want time.Duration
	}{
		"after RetryFor": {time.Minute, time.Hour, time.Minute},
		"with ctx":       {time.Minute, time.Second, time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &scripted{answers: slices.Repeat([]answer{{status: 503}}, 1000)}
			client := connected(t, Config{Address: "a.example"})
			client.http.Transport = s
			why := errors.New("enough")
			ctx, cancel := context.WithCancelCause(t.Context())
			time.AfterFunc(c.cancel, func() { cancel(why) })
			defer cancel(nil)
			events := make(chan Event, 2)
			events <- Event{ID: "1"}
			close(events)
			began := time.Now()
			var rejected []Rejection
			err := client.PublishAll(ctx, events, func(r Rejection) { rejected = append(rejected, r) }, PublishOptions{RetryFor: c.retryFor})
			var refused *Error
			if len(rejected) != 1 || !errors.As(rejected[0].Reason, &refused) || refused.Status != 503 || rejected[0].Invalid {
				t.Errorf("%s: got the rejections %v, want the event with its last error", name, rejected)
			}
			if took := time.Since(began); took != c.want || errors.Is(err, why) != (c.cancel < c.retryFor) {
				t.Errorf("%s: got %v after %s, want the end after %s", name, err, took, c.want)
			}
		})
	}
}

// Feed reads until the page without a cursor. It visits once, and leaves the rest unread if the loop ends.
func TestFeed_ReadsAllPages(t *testing.T) {
	var requests []string
	pages := map[string]string{
		"feed=plain&limit=2":  `{"items":[{"pin":"pin:1"},{"pin":"pin:2"}],"next":"x"}`,
		"cursor=x&limit=2":    `{"items":[],"next":"y"}`,
		"cursor=y&limit=2":    `{"items":[{"pin":"pin:3"}],"next":null}`,
		"feed=broken&limit=2": `{"items":[{"pin":"pin:1"}],"next":"z"}`,
	}
	c := connected(t, Config{Address: "a.example"})
	c.http.Transport = answered(func(r *http.Request) (int, string) {
		requests = append(requests, r.URL.RawQuery)
		if page, ok := pages[r.URL.RawQuery]; ok {
			return http.StatusOK, page
		}
		return http.StatusServiceUnavailable, ""
	})
	for _, test := range []struct {
		feed     string
		most     int
		want     []string
		requests []string
		failed   bool
	}{
		{"plain", 9, []string{"pin:1", "pin:2", "pin:3"}, []string{"feed=plain&limit=2", "cursor=x&limit=2", "cursor=y&limit=2"}, false},
		{"plain", 1, []string{"pin:1"}, []string{"feed=plain&limit=2"}, false},
		{"broken", 9, []string{"pin:1", ""}, []string{"feed=broken&limit=2", "cursor=z&limit=2"}, true},
	} {
		requests = nil
		var got []string
		var last error
		for item, err := range c.Feed(t.Context(), "user:a", VisitOptions{test.feed, 2}) {
			if got, last = append(got, item.ID), err; len(got) == test.most {
				break
			}
		}
		if !slices.Equal(got, test.want) || !slices.Equal(requests, test.requests) || (last != nil) != test.failed {
			t.Errorf("%s: got %q, %v and the requests %q, want %q and %q", test.feed, got, last, requests, test.want, test.requests)
		}
	}
}

// answered is a server without a network.
type answered func(r *http.Request) (status int, body string)

func (a answered) RoundTrip(r *http.Request) (*http.Response, error) {
	status, body := a(r)
	return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
}
