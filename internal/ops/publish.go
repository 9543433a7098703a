package ops

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/smartfeed/smartfeed/internal/command"
	"github.com/smartfeed/smartfeed/internal/tools/load"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// Published is the result of publish.
type Published struct {
	Events  int            `json:"events"`  // acknowledged events
	Streams map[string]int `json:"streams"` // the same, by stream
	Bad     int            `json:"bad"`     // bad lines, which were skipped
	Seconds float64        `json:"seconds"`
}

// String returns the result as one line of text.
func (p Published) String() string {
	var parts []string
	for _, stream := range schemas.InputStreams() {
		if n := p.Streams[stream]; n > 0 {
			parts = append(parts, command.Count(n, strings.TrimSuffix(stream, "s")))
		}
	}
	s := "published " + command.Count(p.Events, "event")
	if len(parts) > 0 {
		s += ": " + strings.Join(parts, ", ")
	}
	if p.Bad > 0 {
		s += "; " + command.Count(p.Bad, "bad line") + " skipped"
	}
	return s
}

// PublishOptions configure Publish.
type PublishOptions struct {
	Files    []string  // "-": Stdin; none: only Stdin
	Stdin    io.Reader // copied to a temporary file
	SkipBad  bool      // publish the good lines even if there are bad ones
	Problems io.Writer // receives a line for each bad line: file:line: problem
}

// Publish publishes the events of files, one JSON object per line, in the order of the files. It checks all lines before
// it publishes any. If some are bad, it publishes nothing and returns an error, unless o.SkipBad is set. If the brokers
// acknowledge only some events, the error is a *topics.PublishError.
func Publish(ctx context.Context, s topics.Setup, o PublishOptions) (Published, error) {
	if s.Verbs == nil {
		s.Verbs = schemas.DefaultVerbs()
	}
	files, err := openFiles(o.Files, o.Stdin)
	defer closeFiles(files)
	if err != nil {
		return Published{}, err
	}
	arrival := schemas.MicrosOf(time.Now())
	check := func(l schemas.Line) error { return l.Validate(arrival, s.Verbs) }
	good, bad, err := checkFiles(ctx, files, check, o.Problems)
	if err != nil {
		return Published{}, err
	}
	if bad > 0 && !o.SkipBad {
		return Published{}, fmt.Errorf("publish: %s: nothing was published", command.Count(bad, "bad line"))
	}
	done, err := sendFiles(ctx, s, files, check, good)
	done.Bad = bad
	return done, err
}

// source is a file that can be read twice.
type source struct {
	*os.File
	name string
	temp bool
}

// openFiles opens every file, and copies standard input to a temporary one. The caller must close the result even after
// an error.
func openFiles(names []string, stdin io.Reader) ([]source, error) {
	if len(names) == 0 {
		names = []string{"-"}
	}
	var files []source
	for _, name := range names {
		f, err := openFile(name, stdin)
		if err != nil {
			return files, fmt.Errorf("publish: %w", err)
		}
		files = append(files, f)
	}
	return files, nil
}

func openFile(name string, stdin io.Reader) (source, error) {
	if name != "-" {
		f, err := os.Open(name)
		return source{File: f, name: name}, err
	}
	f, err := os.CreateTemp("", "smartfeed-publish-*")
	if err != nil {
		return source{}, fmt.Errorf("create a temporary file for standard input: %w", err)
	}
	s := source{File: f, name: "standard input", temp: true}
	if _, err := io.Copy(f, stdin); err != nil {
		closeFiles([]source{s})
		return source{}, fmt.Errorf("read standard input: %w", err)
	}
	return s, nil
}

func closeFiles(files []source) {
	for _, f := range files {
		_ = f.Close() // opened only for reading
		if f.temp {
			_ = os.Remove(f.Name()) // after an error, the system cleans up its temporary directory
		}
	}
}

// checkFiles counts good and bad lines, and prints the bad ones to problems.
func checkFiles(ctx context.Context, files []source, check func(schemas.Line) error, problems io.Writer) (good, bad int, err error) {
	for _, f := range files {
		err := f.lines(ctx, func(number int, l schemas.Line, err error) error {
			if err == nil {
				err = check(l)
			}
			if err == nil {
				good++
				return nil
			}
			bad++
			_, err = fmt.Fprintf(problems, "%s:%d: %v\n", f.name, number, err)
			return err
		})
		if err != nil {
			return good, bad, err
		}
	}
	return good, bad, nil
}

// lines calls visit for every line that is not empty, with the parsed line or the syntax error.
func (f source) lines(ctx context.Context, visit func(number int, l schemas.Line, err error) error) error {
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return fmt.Errorf("rewind %s (pass a pipe as standard input): %w", f.name, err)
	}
	in := schemas.NewLineReader(f, 64<<10)
	for number := 1; ctx.Err() == nil; number++ {
		text, err := in.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil && !errors.Is(err, schemas.ErrLongLine) {
			return fmt.Errorf("read %s: %w", f.name, err)
		}
		var l schemas.Line
		if err == nil {
			if len(text) == 0 {
				continue
			}
			l, err = schemas.ParseLine(text)
		}
		if err := visit(number, l, err); err != nil {
			return err
		}
	}
	return context.Cause(ctx)
}

// sendFiles publishes the good lines and counts the acknowledged ones. It stops at the first error.
func sendFiles(ctx context.Context, s topics.Setup, files []source, check func(schemas.Line) error, good int) (Published, error) {
	p, err := load.Open(ctx, s)
	if err != nil {
		return Published{}, err
	}
	defer p.Close()
	p.Operator = command.Operator("")
	task := s.Start("publish", good)
	defer task.Done()
	var mu sync.Mutex
	started, streams := time.Now(), map[string]int{}
	events := &goodLines{files: files, check: check}
	err = errors.Join(load.All(ctx, p, events.all(ctx), func(l schemas.Line) {
		mu.Lock()
		defer mu.Unlock()
		streams[l.Stream]++
		task.Add(1)
	}), events.err)
	mu.Lock()
	defer mu.Unlock()
	done := Published{Streams: maps.Clone(streams), Seconds: time.Since(started).Seconds()} // after an error, others may still be acknowledged
	for _, n := range streams {
		done.Events += n
	}
	if err != nil {
		err = &topics.PublishError{Acknowledged: done.Events, Events: good, Err: err}
	}
	return done, err
}

// goodLines reads the good lines of files.
type goodLines struct {
	files []source
	check func(schemas.Line) error
	err   error // of a file
}

var errStopped = errors.New("stopped")

func (g *goodLines) all(ctx context.Context) iter.Seq[schemas.Line] {
	return func(yield func(schemas.Line) bool) {
		for _, f := range g.files {
			err := f.lines(ctx, func(_ int, l schemas.Line, err error) error {
				if err == nil && g.check(l) == nil && !yield(l) { // checkFiles has reported the others
					return errStopped
				}
				return nil
			})
			if errors.Is(err, errStopped) {
				return
			}
			if g.err = err; err != nil {
				return
			}
		}
	}
}
