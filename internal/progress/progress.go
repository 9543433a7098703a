// Package progress shows the progress of a long task: a bar on a terminal, and otherwise a line every five seconds and
// one at the end.
package progress

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// Unknown is the total of a task of unknown size.
const Unknown = -1

const (
	plainEvery = 5 * time.Second
	barEvery   = 100 * time.Millisecond
)

// Reporter writes the progress of one task after another.
type Reporter struct {
	out      io.Writer
	terminal bool
	now      func() time.Time
}

// To returns a reporter that writes to w. If w is a terminal that can move its cursor, it draws bars, without colors.
func To(w io.Writer) *Reporter {
	f, isFile := w.(*os.File)
	return &Reporter{out: w, terminal: isFile && term.IsTerminal(int(f.Fd())) && os.Getenv("TERM") != "dumb", now: time.Now}
}

// Terminal reports whether progress is shown by bars.
func (r *Reporter) Terminal() bool { return r.terminal }

// Task is a task in progress. It is safe for concurrent use until Done.
type Task struct {
	r       *Reporter
	what    string
	total   int
	started time.Time
	bar     *progressbar.ProgressBar // nil if the output is not a terminal

	mu    sync.Mutex
	done  int
	state string
	told  time.Time
}

// Start starts a task with a name and a total number of steps, or Unknown.
func (r *Reporter) Start(what string, total int) *Task {
	t := &Task{r: r, what: what, total: total, started: r.now(), told: r.now()}
	if r.terminal {
		t.bar = progressbar.NewOptions(total,
			progressbar.OptionSetWriter(r.out),
			progressbar.OptionSetDescription(what),
			progressbar.OptionThrottle(barEvery),
			progressbar.OptionShowCount(),
			progressbar.OptionFullWidth(),
			progressbar.OptionSetSpinnerChangeInterval(0), // no goroutine: Say moves the spinner
			progressbar.OptionClearOnFinish(),
		)
	}
	return t
}

// Add adds n finished steps.
func (t *Task) Add(n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.done += n
	t.update(func() error { return t.bar.Add(n) })
}

// Say sets the state of a task whose steps are not counted.
func (t *Task) Say(state string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.state = state
	t.update(func() error {
		t.bar.Describe(t.what + ": " + state)
		return t.bar.Add(1)
	})
}

// Done ends the task and returns its duration.
func (t *Task) Done() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	took := t.r.now().Sub(t.started)
	if t.bar != nil {
		_ = t.bar.Finish() // ignore errors of a closed terminal
	}
	t.state = ""
	fmt.Fprintf(t.r.out, "%s, %s\n", t.line(), took.Round(time.Millisecond))
	return took
}

// update moves the bar, or writes a line if the last one is old.
func (t *Task) update(move func() error) {
	if t.bar != nil {
		_ = move() // ignore errors, see Done
		return
	}
	if now := t.r.now(); now.Sub(t.told) >= plainEvery {
		t.told = now
		fmt.Fprintln(t.r.out, t.line())
	}
}

func (t *Task) line() string {
	line := t.what
	switch {
	case t.total != Unknown:
		line += fmt.Sprintf(": %d of %d", t.done, t.total)
	case t.done > 0:
		line += fmt.Sprintf(": %d", t.done)
	}
	if t.state != "" {
		line += ": " + t.state
	}
	return line
}
