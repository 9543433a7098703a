package topics_test

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

func TestOpenBindsEveryStream(t *testing.T) {
	w := newWire(t)
	names := map[string]bool{}
	v := reflect.ValueOf(*w.streams)
	for i := range v.NumField() {
		name := v.Field(i).FieldByName("Name").String()
		if name == "" || v.Field(i).FieldByName("serde").IsNil() {
			t.Errorf("stream %s is not bound", v.Type().Field(i).Name)
		}
		names[name] = true
	}
	for _, topic := range topics.Catalogue(topics.Profile{}) {
		if topic.Record != "" && !names[topic.Name] {
			t.Errorf("topic %s carries %s and has no stream", topic.Name, topic.Record)
		}
	}
}

func TestStreamRoundTrip(t *testing.T) {
	w := newWire(t)
	want := &schemas.Edge{User: "user:a", Other: "board:b", Kind: schemas.FollowEdge, Live: true, Time: 7}
	value, err := w.streams.Edges.Encode(want)
	if err != nil {
		t.Fatal(err)
	}
	got, err := w.streams.Edges.Decode(value)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("decoded (-want +got):\n%s", d)
	}
}

// brokenRegistry refuses some subjects.
type brokenRegistry struct{ refused []string }

var errRefused = errors.New("incompatible")

func (r brokenRegistry) Register(_ context.Context, subject, _ string) (int, error) {
	for _, s := range r.refused {
		if s == subject {
			return 0, errRefused
		}
	}
	return 1, nil
}

func (r brokenRegistry) SchemaByID(context.Context, int) (string, error) {
	return "", schemas.ErrNoSchema
}

func TestOpenReportsEveryProblem(t *testing.T) {
	_, err := topics.Open(t.Context(), brokenRegistry{[]string{"pins-value", "edges-value"}})
	if !errors.Is(err, errRefused) || strings.Count(err.Error(), "incompatible") != 2 {
		t.Errorf("Open = %v, want both refused subjects", err)
	}
}
