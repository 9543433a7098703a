// Package reload applies changes of files while the process runs.
package reload

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"os"
	"sync/atomic"
	"time"
)

// Config describes a file and what it changes.
type Config struct {
	Contents string        // for logs and the status, such as "feature definitions"
	Path     string        // "": there is no file, and Run only waits
	Every    time.Duration // interval of the checks
	MaxBytes int64         // Apply gets at most one byte more
	// Apply puts the text of the file into effect, all of it or nothing. It returns the keys whose changes require a
	// restart, or the reason why the text is rejected.
	Apply  func(text []byte) (needsRestart []string, err error)
	Report func(State) // called after each Apply; nil: not called
	Log    *slog.Logger
}

// State is the result of the last reload.
type State struct {
	Contents     string     `json:"contents"`
	File         string     `json:"file"`
	Loaded       *time.Time `json:"loaded,omitempty"`        // when the contents in effect were read; absent: at the start
	Error        string     `json:"error,omitempty"`         // why the present text is rejected and previous contents stay in effect
	NeedsRestart []string   `json:"needs_restart,omitempty"` // changed keys that are not in effect
}

// File reloads a file when its text changes. It compares the text, because a mounted volume may set arbitrary file times.
type File struct {
	cfg   Config
	state atomic.Pointer[State]
}

// New returns a File. The caller must run Run.
func New(cfg Config) *File {
	f := &File{cfg: cfg}
	f.state.Store(&State{Contents: cfg.Contents, File: cfg.Path})
	return f
}

// State returns the result of the last reload.
func (f *File) State() State { return *f.state.Load() }

// Run checks the file periodically until ctx is done, and returns nil. If Apply rejects the text, or the file cannot be
// read, Run logs the reason once.
func (f *File) Run(ctx context.Context) error {
	if f.cfg.Path == "" {
		<-ctx.Done()
		return nil
	}
	tick := time.NewTicker(f.cfg.Every)
	defer tick.Stop()
	var seen []byte // nil: the text at the start is unknown
	for {
		seen = f.check(seen)
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// check applies the text of the file if it differs from seen. It returns the text it read.
func (f *File) check(seen []byte) []byte {
	text, err := Read(f.cfg.Path, f.cfg.MaxBytes)
	if err != nil {
		text = []byte("\x00" + err.Error()) // no file has a zero byte: the error is logged once, and a readable file counts as changed
	}
	if seen != nil && bytes.Equal(text, seen) {
		return seen
	}
	state := f.State()
	state.Error, state.NeedsRestart = "", nil
	if err == nil {
		state.NeedsRestart, err = f.cfg.Apply(text)
	}
	if err == nil && seen != nil {
		now := time.Now().UTC()
		state.Loaded = &now
	}
	f.report(state, err, seen != nil)
	return text
}

// report publishes the result of a reload. The first one only repeats the start, and is logged only if it failed.
func (f *File) report(s State, err error, log bool) {
	switch {
	case err != nil:
		s.Error = err.Error()
		f.cfg.Log.Error("cannot reload "+s.Contents+"; the previous ones stay in use", "file", s.File, "error", err)
	case len(s.NeedsRestart) > 0:
		f.cfg.Log.Warn("reloaded "+s.Contents+"; some changed keys need a restart", "file", s.File, "keys", s.NeedsRestart)
	case log:
		f.cfg.Log.Info("reloaded "+s.Contents, "file", s.File)
	}
	f.state.Store(&s)
	if f.cfg.Report != nil {
		f.cfg.Report(s)
	}
}

// Read reads a file, at most maxBytes plus one byte.
func Read(path string, maxBytes int64) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(io.LimitReader(file, maxBytes+1))
}
