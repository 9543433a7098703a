package schemas

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/smartfeed/smartfeed/internal/testkit/must"
)

func TestFileWriter_RoundTrip(t *testing.T) {
	var file bytes.Buffer
	w := must.Get(NewFileWriter(&file, []byte("id")))(t)
	number := 2.5
	var want []*FiledFeatures
	for i := range 6 {
		rec := &FiledFeatures{
			LoggedFeatures: LoggedFeatures{Answer: "a", Entity: fmt.Sprint("user:", i), AsOf: 5, Logged: 6, Share: 0.5, Values: []FeatureValue{
				{Feature: "n", Number: &number}, {Feature: "none", Reasons: []string{"empty"}},
				{Feature: "g", Groups: map[string]float64{"x": 1}}, {Feature: "v", Vector: []float64{1, 2}},
				{Feature: "l", Last: []LoggedAction{{"pin:1", "save", 7}}}, {Feature: "t", Top: []LoggedCount{{"x", 3}}},
			}},
			Partition: 3, Offset: int64(10 * i),
		}
		want = append(want, rec)
		must.OK(t, w.Encode(rec))
	}
	must.OK(t, w.Close())
	var got []*FiledFeatures
	topic, err := ReadFiled(&file, func(rec *FiledFeatures) error { got = append(got, rec); return nil })
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); err != nil || string(topic) != "id" || diff != "" {
		t.Errorf("topic %q, error %v, records (-want +got):\n%s", topic, err, diff)
	}
}
