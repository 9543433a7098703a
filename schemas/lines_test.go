package schemas

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
)

// cutAll returns the lines of a body, "!" for one that is too long.
func cutAll(t interface{ Fatal(...any) }, body io.Reader, buffer int) []string {
	r := NewLineReader(body, buffer)
	lines := []string{}
	for {
		line, err := r.Next()
		switch {
		case errors.Is(err, io.EOF):
			return lines
		case errors.Is(err, ErrLongLine):
			line = []byte("!")
		case err != nil:
			t.Fatal(err)
		}
		lines = append(lines, string(line))
	}
}

// splitAll does the same with the whole body in memory.
func splitAll(body string) []string {
	lines := strings.Split(body, "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	for i, l := range lines {
		short := strings.Trim(l, " \t\r")
		if lines[i] = short; len(short) > MaxLineBytes || len(l) > MaxLineBytes+1 {
			lines[i] = "!"
		}
	}
	return lines
}

// The lines of a body do not depend on how it arrives or where a buffer ends.
func TestLineReader_SplitsLines(t *testing.T) {
	const most = MaxLineBytes
	rapid.Check(t, func(t *rapid.T) {
		line := rapid.OneOf(
			rapid.StringMatching(`[a \t\r]{0,20}`),
			rapid.Map(rapid.IntRange(15, 35), func(n int) string { return strings.Repeat("x", n) }),
			rapid.Map(rapid.IntRange(most-2, most+3), func(n int) string { return strings.Repeat("x", n) }))
		body := strings.Join(rapid.SliceOfN(line, 0, 5).Draw(t, "lines"), "\n") + rapid.SampledFrom([]string{"", "\n", "\r\n"}).Draw(t, "end")
		want := splitAll(body)
		for name, in := range map[string]io.Reader{
			"whole": strings.NewReader(body), "halves": iotest.HalfReader(strings.NewReader(body)),
			"end with the last bytes": iotest.DataErrReader(strings.NewReader(body)),
		} {
			got := cutAll(t, in, rapid.SampledFrom([]int{16, 4096}).Draw(t, "buffer"))
			if strings.Join(got, "\n") != strings.Join(want, "\n") || len(got) != len(want) {
				t.Fatalf("%s: got %d lines, want %d of %.200q", name, len(got), len(want), body)
			}
		}
	})
}

// An error in the middle of a line is not the end of the body.
func TestLineReader_ReturnsErrorOfReader(t *testing.T) {
	r := NewLineReader(io.MultiReader(strings.NewReader("whole\nhalf"), iotest.ErrReader(io.ErrUnexpectedEOF)), 4096)
	expect.Equal(t, string(must.Get(r.Next())(t)), "whole", "line")
	expect.Is(t, expect.ErrorOf(r.Next()), io.ErrUnexpectedEOF, "the next line")
}

// Of a line that is too long, the reader keeps only enough to detect it.
func TestLineReader_SkipsLongLines(t *testing.T) {
	r := NewLineReader(strings.NewReader(strings.Repeat("x", 8<<20)), 4096)
	expect.Is(t, expect.ErrorOf(r.Next()), ErrLongLine, "error")
	expect.AtMost(t, len(r.line), MaxLineBytes+3, "kept bytes")
}
