package app

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
)

// httpAPI sends requests to a running process.
type httpAPI struct {
	t    testing.TB
	base string // http://host:port
}

func (s *started) api() httpAPI { return httpAPI{s.t, s.url("")} }

// send requests a path, with POST if there is a body, and returns the status code and the body of the response. header has
// names and values in turn.
func (s httpAPI) send(path, body string, header ...string) (int, string) {
	s.t.Helper()
	method, kind := http.MethodGet, "application/json"
	if body != "" {
		method = http.MethodPost
	}
	if path == "/v1/events" {
		method, kind = http.MethodPost, "application/x-ndjson"
	}
	req := must.Get(http.NewRequest(method, s.base+path, strings.NewReader(body)))(s.t)
	req.Header.Set("Content-Type", kind)
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res := must.Get(http.DefaultClient.Do(req))(s.t)
	defer res.Body.Close()
	return res.StatusCode, string(must.Get(io.ReadAll(res.Body))(s.t))
}

// answers checks the status code of the response to a request, and that its body contains text.
func (s httpAPI) answers(want int, text, path, body string) {
	s.t.Helper()
	status, got := s.send(path, body)
	expect.Equal(s.t, status, want, "status of %s with %.200s: %.200s", path, body, got)
	expect.Contains(s.t, got, text, "body of %s with %.200s", path, body)
}

// get returns the body of a response.
func (s httpAPI) get(path string) string {
	s.t.Helper()
	status, text := s.send(path, "")
	if status != http.StatusOK {
		s.t.Fatalf("%s: %d: %s", path, status, text)
	}
	return text
}

// get decodes a response of the API.
func get[T any](s httpAPI, path string) T {
	s.t.Helper()
	return post[T](s, path, "")
}

// post sends JSON, if there is any, and decodes the response.
func post[T any](s httpAPI, path, body string) (answer T) {
	s.t.Helper()
	status, text := s.send(path, body)
	if err := json.Unmarshal([]byte(text), &answer); err != nil || status != http.StatusOK {
		s.t.Fatalf("%s: %d %s, %v", path, status, text, err)
	}
	return answer
}

// jsonText returns a value as JSON.
func jsonText(t testing.TB, v any) string {
	t.Helper()
	return string(must.Get(json.Marshal(v))(t))
}

// lines returns events as lines of JSON.
func lines(t testing.TB, events ...map[string]any) string {
	t.Helper()
	var text strings.Builder
	for _, e := range events {
		text.WriteString(jsonText(t, e) + "\n")
	}
	return text.String()
}

type pinList struct{ Items []struct{ Pin string } }

// event returns an event. more are its other fields, if any.
func event(at time.Time, id, stream, actor, verb, object string, more map[string]any) map[string]any {
	e := map[string]any{
		"stream": stream, "id": id, "time": at.Format(time.RFC3339Nano), "actor": actor, "verb": verb, "object": object,
	}
	maps.Copy(e, more)
	return e
}

// story collects events.
type story struct {
	prefix string // of the ids; unique in a test
	now    time.Time
	events []map[string]any
}

// add adds an event, a millisecond after the previous one.
func (s *story) add(stream, actor, verb, object string, more map[string]any) {
	s.addAt(s.now.Add(time.Duration(len(s.events))*time.Millisecond), stream, actor, verb, object, more)
}

// addAt adds an event with another time.
func (s *story) addAt(at time.Time, stream, actor, verb, object string, more map[string]any) {
	s.events = append(s.events, event(at, fmt.Sprint("story-", s.prefix, len(s.events)), stream, actor, verb, object, more))
}
