package settings

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
)

type example struct {
	Dir    string        `yaml:"dir" default:"rows"`
	Sync   bool          `yaml:"sync" default:"true"`
	Keep   int           `yaml:"keep" default:"50" range:"1..1000"`
	Offer  int           `yaml:"offer" default:"10" range:"0..keep"`
	Band   float64       `yaml:"band" default:"0.2" range:"0..0.9"`
	Every  time.Duration `yaml:"every" default:"90s" range:"1s..1h"`
	Expiry time.Duration `yaml:"expiry" range:"0|1m.."`
	Size   Bytes         `yaml:"size" default:"64MiB" range:"1KiB..1GiB"`
	Least  int32         `yaml:"least,omitempty" default:"2" range:"..3"`
	Inner  struct {
		Wait time.Duration `yaml:"wait" default:"3s"`
	} `yaml:"inner"`
	Other []string `yaml:"other"`
}

func TestDefaults_ReadsEveryKindOfField(t *testing.T) {
	got := Defaults[example]()
	want := example{Dir: "rows", Sync: true, Keep: 50, Offer: 10, Band: 0.2, Every: 90 * time.Second, Size: 64 << 20, Least: 2}
	want.Inner.Wait = 3 * time.Second
	expect.NoDiff(t, got, want, "defaults")
	must.OK(t, Validate(got))
}

func TestValidate_ReportsEveryFieldOutOfRange(t *testing.T) {
	tests := map[string]struct {
		change func(*example)
		want   string
	}{
		"bounds are included": {func(e *example) { e.Keep, e.Offer, e.Band, e.Every = 1000, 1000, 0.9, time.Hour }, ""},
		"below":               {func(e *example) { e.Keep, e.Offer = 0, 0 }, "keep: 0: want 1 to 1000"},
		"above":               {func(e *example) { e.Every = time.Hour + 1 }, "every: 1h0m0.000000001s: want 1s to 1h"},
		"bound of a field":    {func(e *example) { e.Offer = 51 }, "offer: 51: want 0 to 50"},
		"NaN":                 {func(e *example) { e.Band = math.NaN() }, "band: NaN: want 0 to 0.9"},
		"zero or more":        {func(e *example) { e.Expiry = time.Second }, "expiry: 1s: want at least 1m, or 0"},
		"negative":            {func(e *example) { e.Expiry = -time.Hour }, "expiry: -1h: want at least 1m, or 0"},
		"no low bound":        {func(e *example) { e.Least = 4 }, "least: 4: want at most 3"},
		"bytes":               {func(e *example) { e.Size = 1 }, "size: 1: want 1KiB to 1GiB"},
		"several":             {func(e *example) { e.Keep, e.Offer, e.Size = 0, -1, 0 }, "keep: 0: want 1 to 1000\noffer: -1: want 0 to 0\nsize: 0: want 1KiB to 1GiB"},
	}
	for name, tt := range tests {
		e := Defaults[example]()
		tt.change(&e)
		got := ""
		if err := Validate(&e); err != nil {
			got = err.Error()
		}
		expect.Equal(t, got, tt.want, "%s", name)
	}
}

// A malformed tag is a programming error, which the tests of each configuration find.
func TestTags_PanicIfMalformed(t *testing.T) {
	tests := map[string]func(){
		"default": func() {
			Defaults[struct {
				N int `default:"many"`
			}]()
		},
		"overflow": func() {
			Defaults[struct {
				N Bytes `default:"9223372036854775807GiB"`
			}]()
		},
		"kind": func() {
			Defaults[struct {
				N []int `default:"1"`
			}]()
		},
		"no dots": func() {
			_ = Validate(struct {
				N int `range:"1"`
			}{})
		},
		"bound": func() {
			_ = Validate(struct {
				N int `range:"a..b"`
			}{})
		},
	}
	for name, f := range tests {
		func() {
			defer func() {
				if r := recover(); r == nil || !strings.Contains(r.(string), "N: ") {
					t.Errorf("%s: recovered %v, want a text that names the field", name, r)
				}
			}()
			f()
		}()
	}
}

func TestUnder_PrefixesEachProblem(t *testing.T) {
	err := Under("pools", errors.Join(errors.New("cap 0: at least 1"), errors.New("half_life -1s: must be positive")))
	expect.Equal(t, err.Error(), "pools.cap 0: at least 1\npools.half_life -1s: must be positive", "problems")
	expect.Error(t, Under("pools", nil), "", "no problem")
}

func TestRangeText(t *testing.T) {
	want := map[string]string{
		"dir": "", "keep": "1 to 1000", "offer": "0 to keep", "expiry": "at least 1m, or 0", "least": "at most 3", "size": "1KiB to 1GiB",
	}
	for i := range reflect.TypeFor[example]().NumField() {
		f := reflect.TypeFor[example]().Field(i)
		if text, ok := want[Name(f)]; ok && RangeText(f) != text {
			t.Errorf("%s: got %q, want %q", Name(f), RangeText(f), text)
		}
	}
}

// inner has one problem.
type inner struct{ Text string }

func (i inner) Validate() error { return errors.New(i.Text + ": is wrong") }

func TestNested_NamesTheStructOfEachProblem(t *testing.T) {
	outer := struct {
		Inline inner `yaml:",inline"`
		Pools  inner `yaml:"pools"`
		Dir    string
		None   struct{ Dir string } `yaml:"none"`
	}{Inline: inner{"dir"}, Pools: inner{"cap"}}
	expect.Equal(t, fmt.Sprint(Nested(&outer)), "dir: is wrong\npools.cap: is wrong", "problems")
}

func TestProblems_ListsUnmetConditionsAndErrors(t *testing.T) {
	var none, all Problems
	none.Want(true, "unused")
	none.Add(nil)
	must.OK(t, none.Err())
	broken := errors.New("broken")
	all.Want(false, "keep: %d: want at least %d", 1, 2)
	all.Add(nil, broken)
	if err := all.Err(); !errors.Is(err, broken) || err.Error() != "keep: 1: want at least 2\nbroken" {
		t.Errorf("got %v, want both problems", err)
	}
}

func TestWithin(t *testing.T) {
	tests := map[string]struct {
		err  error
		want string // "": none
	}{
		"lowest":             {Within("n", 10, 10, 20), ""},
		"highest":            {Within("n", 20, 10, 20), ""},
		"below":              {Within("pools.max_candidates", 5, 10, 1_000_000), "pools.max_candidates: 5: want 10 to 1000000"},
		"above":              {Within("n", int64(21), 10, 20), "n: 21: want 10 to 20"},
		"no number":          {Within("share", math.NaN(), 0, 0.5), "share: NaN: want 0 to 0.5"},
		"a duration":         {Within("gap", 90*time.Minute, 0, time.Hour), "gap: 1h30m: want 0s to 1h"},
		"short durations":    {Within("wait", time.Nanosecond, 100*time.Microsecond, time.Minute), "wait: 1ns: want 100µs to 1m"},
		"tens in a duration": {Within("wait", 20*time.Hour+10*time.Minute+10*time.Second, 0, 10*time.Minute), "wait: 20h10m10s: want 0s to 10m"},
	}
	for name, tt := range tests {
		got := ""
		if tt.err != nil {
			got = tt.err.Error()
		}
		expect.Equal(t, got, tt.want, "%s", name)
	}
}

func TestShort(t *testing.T) {
	tests := map[time.Duration]string{
		24 * time.Hour: "24h", 90 * time.Minute: "1h30m", 2 * time.Minute: "2m", 10 * time.Second: "10s",
		time.Millisecond: "1ms", time.Hour + time.Second: "1h0m1s", 10 * time.Minute: "10m",
	}
	for d, want := range tests {
		expect.Equal(t, Short(d), want, "%v", d)
	}
}
