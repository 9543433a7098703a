package topics_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// A field of Streams without a row in the registry would never be bound, and its topic would not be created.
func TestOpen_BindsEveryStream(t *testing.T) {
	w := newWire(t)
	v := reflect.ValueOf(*w.Streams)
	for i := range v.NumField() {
		if field := v.Type().Field(i); field.IsExported() && (v.Field(i).FieldByName("Name").String() == "" || v.Field(i).FieldByName("serde").IsNil()) {
			t.Errorf("stream %s is not bound", field.Name)
		}
	}
}

// The two registries, of input streams and of topics, must agree on names and types.
func TestPublisher_EncodesEveryInputStream(t *testing.T) {
	w := newWire(t)
	p := w.Publisher()
	inputs := map[string]bool{}
	for _, topic := range topics.Catalogue(topics.Profile{}) {
		inputs[topic.Name] = topic.Input
		expect.False(t, topic.Input && !slices.Contains(topic.Writers, topics.Producers), "producers may not write %s", topic.Name)
	}
	for _, stream := range schemas.InputStreams() {
		expect.True(t, inputs[stream], "%s is an input topic of the catalogue", stream)
		expect.Error(t, p.Publish(t.Context(), []schemas.Line{schemas.NewLine(schemas.NewInput(stream))}), "", "%s", stream)
	}
	expect.Fails(t, p.Publish(t.Context(), []schemas.Line{{Stream: topics.Pins, Event: &schemas.FollowEvent{}}}), "follow on the stream pins")
}

// brokenRegistry rejects some subjects.
type brokenRegistry struct{ refused []string }

var errRefused = errors.New("incompatible")

func (r brokenRegistry) Register(_ context.Context, subject, _ string) (int, error) {
	if slices.Contains(r.refused, subject) {
		return 0, errRefused
	}
	return 1, nil
}

func (r brokenRegistry) SchemaByID(context.Context, int) (string, error) {
	return "", schemas.ErrNoSchema
}

func TestOpen_ReportsEveryProblem(t *testing.T) {
	_, err := topics.Open(t.Context(), brokenRegistry{[]string{"pins-value", "edges-value"}})
	expect.Is(t, err, errRefused, "Open")
	expect.Equal(t, strings.Count(err.Error(), "incompatible"), 2, "rejected subjects in %v", err)
}

// An unavailable registry is reported once, and receives one request instead of thirty.
func TestOpen_ReportsUnavailableRegistryOnce(t *testing.T) {
	requests := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		requests++
		w.WriteHeader(http.StatusUnauthorized)
	}))
	defer server.Close()
	for name, c := range map[string]struct{ at, want string }{
		"no server":    {"127.0.0.1:1", "refused"},
		"unauthorized": {server.URL, "status 401"},
	} {
		registry := must.Get(schemas.NewRegistry(c.at))(t)
		_, err := topics.Open(t.Context(), registry)
		if !errors.Is(err, schemas.ErrRegistryUnavailable) || !strings.Contains(err.Error(), c.want) || strings.Count(err.Error(), "look up") != 1 {
			t.Errorf("%s: got %v, want %q, once", name, err, c.want)
		}
	}
	expect.Equal(t, requests, 1, "requests")
}
