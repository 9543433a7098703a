package feature

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/smartfeed/smartfeed/internal/periodic"
)

// Reloader reloads the definitions of a Service when their file changes. It compares the text of the file, because a
// mounted volume may set arbitrary file times.
type Reloader struct {
	Path    string // of the file; "": the built-in definitions, which do not change
	Every   time.Duration
	Service *Service
	Metrics *Metrics
	Log     *slog.Logger
}

// Run checks the file periodically until ctx is done, and returns nil. If the file has mistakes or cannot be read, Run
// logs them and keeps the present definitions.
func (r Reloader) Run(ctx context.Context) error {
	if r.Path == "" {
		<-ctx.Done()
		return nil
	}
	var seen []byte // nil: the text of the service's initial definitions is unknown
	return periodic.Run(ctx, r.Every, func() error {
		seen = r.check(seen)
		return nil
	})
}

// check reloads the definitions if the text of the file differs from seen. It returns the text it read.
func (r Reloader) check(seen []byte) []byte {
	text, err := readDefinitions(r.Path)
	if err != nil {
		text = []byte("\x00" + err.Error()) // no file has a zero byte: the error is logged once, and a readable file counts as changed
	}
	if seen != nil && bytes.Equal(text, seen) {
		return seen
	}
	var defs []Definition
	if err == nil {
		defs, err = Parse(r.Path, text)
	}
	if err == nil {
		err = r.Service.Replace(defs)
	}
	if err != nil {
		r.Metrics.stale.Set(1)
		r.Log.Error("cannot reload feature definitions; the previous ones stay in use", "file", r.Path, "error", err)
		return text
	}
	r.Metrics.stale.Set(0)
	if seen != nil {
		r.Log.Info("reloaded feature definitions", "file", r.Path, "features", len(defs))
	}
	return text
}

// readDefinitions reads a definitions file, at most MaxFileBytes plus one byte.
func readDefinitions(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read feature definitions: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, MaxFileBytes+1))
	if err != nil {
		return nil, fmt.Errorf("read feature definitions: %w", err)
	}
	return text, nil
}
