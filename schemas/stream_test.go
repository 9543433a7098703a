package schemas

import (
	"encoding/json"
	"maps"
	"slices"
	"testing"

	"github.com/smartfeed/smartfeed/internal/testkit/must"
)

// A field that an event does not visit would be missing in JSON lines, unchecked and undocumented.
func TestInput_VisitsEveryFieldOfItsSchema(t *testing.T) {
	all, err := JSONSchemas()
	must.OK(t, err)
	for _, stream := range InputStreams() {
		event := NewInput(stream)
		text, err := schemaText(event)
		must.OK(t, err)
		avro, err := parseReader(text)
		must.OK(t, err)
		want := []string{"stream"}
		for _, f := range avro.fields {
			want = append(want, f.name)
		}
		slices.Sort(want)
		schema := all[recordName(event)].(map[string]any)
		got := slices.Sorted(maps.Keys(schema["properties"].(map[string]any)))
		if !slices.Equal(got, want) {
			t.Errorf("%s: fields %v, want %v", stream, got, want)
		}
	}
	if _, err := json.Marshal(all); err != nil {
		t.Error(err)
	}
}

func TestNewLine_SetsStreamAndKey(t *testing.T) {
	for _, stream := range InputStreams() {
		if got := NewLine(NewInput(stream)); got.Stream != stream || got.Key != "" || got.User() != "" {
			t.Errorf("%s: got %+v", stream, got)
		}
	}
	e := &FollowEvent{goodEvent(Follow, "board:1")}
	if got := NewLine(e); got.Key != "board:1" || got.User() != "user:7" {
		t.Errorf("got key %q and user %q, want board:1 and user:7", got.Key, got.User())
	}
	if got := NewLine(&Offer{User: "user:7"}); got.Key != "user:7" || got.User() != "user:7" {
		t.Errorf("got key %q and user %q, want user:7 for both", got.Key, got.User())
	}
}
