package feature

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"
)

// Reloader has a Service answer what the file of definitions says, without a restart. It looks at the file's text and
// not at its times, which a mounted volume may set as it likes.
type Reloader struct {
	Path    string // of the file; "": the built-in definitions, which do not change
	Every   time.Duration
	Service *Service
	Metrics *Metrics
	Log     *slog.Logger
}

// Run looks at the file ever again until ctx ends; it returns nil. A file with mistakes, all of which are logged, and one
// that cannot be read change nothing: the definitions before stay until the file is in order.
func (r Reloader) Run(ctx context.Context) error {
	if r.Path == "" {
		<-ctx.Done()
		return nil
	}
	var seen []byte // nil: the text that the service was made from is not known
	tick := time.NewTicker(r.Every)
	defer tick.Stop()
	for {
		seen = r.look(seen)
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// look takes the file's definitions over if its text is another one than that seen, and returns what it saw.
func (r Reloader) look(seen []byte) []byte {
	text, err := readDefinitions(r.Path)
	if err != nil {
		text = []byte("\x00" + err.Error()) // no text has a zero byte: said once, and the file's return is a change
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
		r.Log.Error("feature definitions: those before stay", "file", r.Path, "error", err)
		return text
	}
	r.Metrics.stale.Set(0)
	if seen != nil {
		r.Log.Info("feature definitions: changed", "file", r.Path, "features", len(defs))
	}
	return text
}

// readDefinitions reads a file of definitions, and a byte more than MaxFileBytes of a larger one.
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
