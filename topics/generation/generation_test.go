package generation

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
)

// Each state allows exactly the steps of the diagram, with the next states of the diagram.
func TestRecord_TakesOnlyAllowedSteps(t *testing.T) {
	stable := Record{Group: "pools", Active: 3}
	building := Record{Group: "pools", Active: 3, Building: 5, Command: "replay", Token: "t"}
	cuttingOver := building
	cuttingOver.CuttingOver = true
	steps := map[Step]func(Record) (Record, error){
		Start: func(r Record) (Record, error) {
			next, err := r.Start(5, "replay")
			expect.False(t, next.Token == "" && err == nil, "Start sets no token")
			next.Token = "t"
			return next, err
		},
		Abort: Record.Abort, CutOver: Record.CutOver, Finish: Record.Finish,
	}
	for from, want := range map[Record]map[Step]Record{
		stable:      {Start: building},
		building:    {Abort: stable, CutOver: cuttingOver},
		cuttingOver: {CutOver: cuttingOver, Finish: {Group: "pools", Active: 5}},
	} {
		for step, take := range steps {
			next, allowed := want[step]
			got, err := take(from)
			expect.True(t, allowed || err != nil && got == from, "%s while %s = %+v, %v, want an error", step, from.State(), got, err)
			expect.True(t, !allowed || err == nil && got == next, "%s while %s = %+v, %v, want %+v", step, from.State(), got, err, next)
		}
	}
	expect.NoDiff(t, [][]int{stable.Numbers(), cuttingOver.Numbers()}, [][]int{{3}, {3, 5}}, "numbers")
}

func TestRecord_StartRejectsNumberZero(t *testing.T) {
	expect.Fails(t, expect.ErrorOf((Record{Group: "pools", Active: 1}).Start(0, "")), "Start(0)")
}

func TestNumber_ParsesNames(t *testing.T) {
	for _, number := range []int{1, 2, 10} {
		if name := Name("pools", number); Number("pools", name) != number || GroupOf(name) != "pools" {
			t.Errorf("%s is number %d of %s", name, Number("pools", name), GroupOf(name))
		}
	}
	for _, name := range []string{"pools.1", "pools.02", "pools.x", "pools.-2", "pools.", "poolside", "objects", ""} {
		expect.Equal(t, Number("pools", name), 0, "%q is number", name)
	}
}

// Only a record without content is a mark. A record that a producer published with the header is processed.
func TestIsMark_RejectsRecordWithContent(t *testing.T) {
	mark := []kgo.RecordHeader{{Key: MarkHeader, Value: Mark{Group: "pools", Number: 2, Token: "t"}.Value()}}
	for name, c := range map[string]struct {
		record kgo.Record
		want   bool
	}{
		"mark":         {kgo.Record{Headers: mark}, true},
		"with a key":   {kgo.Record{Headers: mark, Key: []byte("user:1")}, false},
		"with a value": {kgo.Record{Headers: mark, Value: []byte{}}, false},
		"no header":    {kgo.Record{}, false},
	} {
		expect.Equal(t, IsMark(&c.record), c.want, "%s", name)
	}
}

func TestParseMark_RoundTrip(t *testing.T) {
	for _, want := range []Mark{{"pools", 2, "secret"}, {"pools", 3, ""}} {
		if got, ok := ParseMark(want.Value()); !ok || got != want {
			t.Errorf("got %+v, %v, want %+v", got, ok, want)
		}
	}
	for _, bad := range []string{"", "pools", "pools/", "pools/2", "pools/x/secret", "2"} {
		if got, ok := ParseMark([]byte(bad)); ok {
			t.Errorf("%q was parsed as %+v", bad, got)
		}
	}
}
