package client

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// streaming returns a client of a server that answers every request with a stream of text and then ends it.
func streaming(t *testing.T, text string) *Client {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, text)
	}))
	t.Cleanup(server.Close)
	return connected(t, Config{Address: server.URL})
}

// listened returns the counts and the error of the last pair.
func listened(ctx context.Context, c *Client) (got []int, last error) {
	for n, err := range c.WaitingStream(ctx, "user:a") {
		if err != nil {
			return got, err
		}
		got = append(got, n)
	}
	return got, nil
}

// The result is the counts of the events named new. Everything else in a stream is ignored.
func TestWaitingStream_ReadsEventsAsBrowsers(t *testing.T) {
	seven := "event: new\ndata: {\"count\":7}\n\n"
	for name, c := range map[string]struct {
		text string
		want []int
	}{
		"as the server writes":  {seven + ": keep-alive\n\n" + strings.ReplaceAll(seven, "7", "0"), []int{7, 0}},
		"other line ends":       {strings.ReplaceAll(seven, "\n", "\r\n"), []int{7}},
		"no space":              {"event:new\ndata:{\"count\":7}\n\n", []int{7}},
		"data of several lines": {"data: {\"count\":\ndata: 7}\nevent: new\n\n", []int{7}},
		"other fields":          {"id: 3\nretry: 5\nretry\n" + seven, []int{7}},
		"events of other names": {"event: old\ndata: x\n\ndata: y\n\n" + seven + "data: z\n\n", []int{7}},
		"an event without data": {"event: new\n\n" + seven, []int{7}},
		"an incomplete event":   {seven + "event: new\ndata: {\"count\":8}\n", []int{7}},
		"nothing":               {"", nil},
	} {
		got, err := listened(t.Context(), streaming(t, c.text))
		if !slices.Equal(got, c.want) || !errors.Is(err, io.EOF) {
			t.Errorf("%s: got %v, %v, want %v and the end", name, got, err, c.want)
		}
	}
}

func TestWaitingStream_RejectsInvalidEvents(t *testing.T) {
	space := strings.Repeat(" ", 1<<10)
	for name, c := range map[string]struct {
		text string
		long bool
	}{
		"no JSON":        {"event: new\ndata: seven\n\n", false},
		"a long line":    {"event: new\ndata: {\"count\":7}" + strings.Repeat(space, 1<<7) + "\n\n", true},
		"a long event":   {"event: new\ndata: {\"count\":7}\n" + strings.Repeat("data:"+space+"\n", 1<<7) + "\n", true},
		"a long comment": {":" + strings.Repeat(space, 1<<7) + "\n\n", true},
	} {
		got, err := listened(t.Context(), streaming(t, c.text))
		if got != nil || err == nil || errors.Is(err, io.EOF) || errors.Is(err, bufio.ErrTooLong) != c.long {
			t.Errorf("%s: got %v, %v, want an error, of its length: %v", name, got, err, c.long)
		}
	}
}

func TestWaitingStream_ReturnsProblem(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got := r.Method + " " + r.RequestURI + " " + r.Header.Get("Authorization")
		if want := "GET /v1/users/user:a/feed/events Bearer t-1"; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		if r.Header.Get("Accept") != "text/event-stream" {
			t.Errorf("Accept is %q", r.Header.Get("Accept"))
		}
		w.Header().Set("Content-Type", "application/problem+json")
		w.Header().Set("Retry-After", "2")
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = io.WriteString(w, `{"status":503,"title":"Service Unavailable","detail":"too many streams"}`)
	}))
	defer server.Close()
	got, err := listened(t.Context(), connected(t, Config{Address: server.URL, Token: "t-1"}))
	var refused *Error
	if got != nil || !errors.As(err, &refused) || refused.Detail != "too many streams" || refused.RetryAfter != 2 {
		t.Errorf("got %v, %v, want the problem of the server", got, err)
	}

	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "<p>")
	}))
	defer page.Close()
	got, err = listened(t.Context(), connected(t, Config{Address: page.URL}))
	if got != nil || err == nil || !strings.Contains(err.Error(), "text/html") {
		t.Errorf("a page: got %v, %v, want an error that names its type", got, err)
	}
}

// When the client leaves the loop or ends its context, the server releases the stream's slot.
func TestWaitingStream_EndsWithReader(t *testing.T) {
	left := make(chan struct{}, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "event: new\ndata: {\"count\":7}\n\n")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
		left <- struct{}{}
	}))
	defer server.Close()
	c := connected(t, Config{Address: server.URL})
	for range c.WaitingStream(t.Context(), "user:a") {
		break
	}
	<-left

	why := errors.New("enough")
	ctx, end := context.WithCancelCause(t.Context())
	defer end(nil)
	var got []int
	var last error
	for n, err := range c.WaitingStream(ctx, "user:a") {
		got, last = append(got, n), err
		end(why)
	}
	if !slices.Equal(got, []int{7, 0}) || !errors.Is(last, why) {
		t.Errorf("got %v, %v, want 7 and then the cause of the context", got, last)
	}
	<-left
}

// answering is a server without a network: it answers with a stream that the function writes.
type answering func(ctx context.Context, write func(text string))

func (a answering) RoundTrip(r *http.Request) (*http.Response, error) {
	body, in := io.Pipe()
	context.AfterFunc(r.Context(), func() { _ = in.CloseWithError(r.Context().Err()) })
	go a(r.Context(), func(text string) { _, _ = io.WriteString(in, text) })
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: body, Request: r,
	}, nil
}

// A stream may last much longer than the timeout of a call, and its reader may take as long between events. A server that
// sends nothing at all counts as lost.
func TestWaitingStream_EndsAfterSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := connected(t, Config{Address: "a.example"})
		c.http.Transport = answering(func(_ context.Context, write func(string)) {
			for range 20 {
				time.Sleep(15 * time.Second)
				write(": keep-alive\n\n")
			}
			write("event: new\ndata: {\"count\":7}\n\n")
			write("event: new\ndata: {\"count\":8}\n\n")
		})
		began := time.Now()
		var got []int
		var last error
		for n, err := range c.WaitingStream(t.Context(), "user:a") {
			got, last = append(got, n), err
			if err == nil {
				time.Sleep(2 * maxSilence)
			}
		}
		if !slices.Equal(got, []int{7, 8, 0}) || !errors.Is(last, errSilent) {
			t.Errorf("got %v, %v, want 7, 8 and errSilent", got, last)
		}
		if took, want := time.Since(began), 20*15*time.Second+5*maxSilence; took != want {
			t.Errorf("it took %s, want %s", took, want)
		}
	})
}

// never is a server that does not answer.
type never struct{}

func (never) RoundTrip(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

func TestWaitingStream_TimesOutBeforeStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := connected(t, Config{Address: "a.example", Timeout: time.Second})
		c.http.Transport = never{}
		began := time.Now()
		got, err := listened(t.Context(), c)
		if took := time.Since(began); got != nil || !errors.Is(err, errSilent) || took != time.Second {
			t.Errorf("got %v, %v after %s, want errSilent for a second", got, err, took)
		}
	})
}
