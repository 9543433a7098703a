package settings

import (
	"math"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
)

func TestBytes_TextForm(t *testing.T) {
	for b, want := range map[Bytes]string{
		0: "0", 1: "1", 1023: "1023", 1024: "1KiB", 1 << 20: "1MiB", 384 << 20: "384MiB", 1536 << 20: "1536MiB", 20 << 30: "20GiB",
		1 << 40: "1TiB", -1 << 20: "-1MiB", math.MaxInt64: "9223372036854775807",
	} {
		got, err := ParseBytes(b.String())
		if b.String() != want || got != b || err != nil {
			t.Errorf("%d: text %q is read as %d, %v; want %q", int64(b), b, got, err, want)
		}
	}
}

func TestBytes_UnmarshalYAML(t *testing.T) {
	for text, want := range map[string]Bytes{"0": 0, "1_000": 1000, "0x10": 16, "64MiB": 64 << 20, "\"64MiB\"": 64 << 20, "-1": -1} {
		var got Bytes
		must.OK(t, yaml.Unmarshal([]byte(text), &got))
		expect.Equal(t, got, want, "%s", text)
	}
	for _, text := range []string{"64MB", "64 MiB", "1.5GiB", "many", "[1]", "8388608TiB", "-8388609TiB", "1.5"} {
		var got struct{ Size, Other Bytes }
		err := yaml.Unmarshal([]byte("size: "+text+"\nother: 1KiB"), &got)
		if err == nil || !strings.Contains(err.Error(), "line 1: ") || !strings.Contains(err.Error(), "want a size such as 64MiB") || got.Other != 1<<10 {
			t.Errorf("%s: got %+v, %v, want an error with the line, and the other value", text, got, err)
		}
	}
}

func TestBytes_MarshalYAML(t *testing.T) {
	text := must.Get(yaml.Marshal(map[string]Bytes{"limit": 64 << 20, "none": 0, "odd": 1000}))(t)
	expect.Equal(t, string(text), "limit: 64MiB\nnone: 0\nodd: 1000\n", "text")
}
