package progress

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
)

// clock is a time that only the test changes.
type clock struct{ at time.Time }

func (c *clock) now() time.Time { return c.at }

func TestReporter_PrintsLinesWithoutTerminal(t *testing.T) {
	var out bytes.Buffer
	var c clock
	r := To(&out)
	r.now = c.now
	counted := r.Start("pins", 30)
	counted.Add(10)
	c.at = c.at.Add(plainEvery)
	counted.Add(10) // the only reported call
	counted.Add(10)
	c.at = c.at.Add(1500 * time.Millisecond)
	expect.Equal(t, counted.Done(), plainEvery+1500*time.Millisecond, "took")
	endless := r.Start("events", Unknown)
	endless.Add(7)
	endless.Done()
	waited := r.Start("waiting", Unknown)
	waited.Say("never told")
	c.at = c.at.Add(plainEvery)
	waited.Say("fanout: 3 of publications")
	waited.Done()
	want := "pins: 20 of 30\npins: 30 of 30, 6.5s\nevents: 7, 0s\nwaiting: fanout: 3 of publications\nwaiting, 5s\n"
	expect.Equal(t, out.String(), want, "printed")
}

func TestReporter_DrawsBarsOnTerminal(t *testing.T) {
	var out bytes.Buffer
	r := &Reporter{out: &out, terminal: true, now: time.Now}
	counted := r.Start("pins", 2)
	counted.Add(1)
	counted.Add(1)
	counted.Done()
	waited := r.Start("waiting", Unknown)
	waited.Say("fanout: 3 of publications")
	waited.Done()
	for _, want := range []string{"pins", "1/2", "pins: 2 of 2, ", "fanout: 3 of publications"} {
		expect.Contains(t, out.String(), want, "printed")
	}
}

// A bar has no colors or other escape sequences, so NO_COLOR has nothing to remove.
func TestReporter_DrawsBarsWithoutColors(t *testing.T) {
	var out bytes.Buffer
	r := To(&out)
	r.terminal = true
	task := r.Start("pins", 3)
	task.Add(2)
	task.Say("on the way")
	task.Done()
	if got := out.String(); !strings.Contains(got, "pins") || strings.Contains(got, "\x1b[3") || strings.Contains(got, "\x1b[9") {
		t.Errorf("got the bar %q, want no escape sequence", got)
	}
}

func TestTo_PrintsLinesToFile(t *testing.T) {
	f := must.Get(os.Create(filepath.Join(t.TempDir(), "log")))(t)
	defer f.Close()
	expect.False(t, To(f).Terminal(), "a file is treated as a terminal")
	task := To(f).Start("pins", 3)
	task.Add(3)
	task.Done()
	got, err := os.ReadFile(f.Name())
	if err != nil || !strings.HasPrefix(string(got), "pins: 3 of 3, ") || strings.ContainsAny(string(got), "\r\x1b") {
		t.Errorf("got %q, %v in the file, want a line", got, err)
	}
}
