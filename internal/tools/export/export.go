// Package export exports the log of visits as training data: one row per shown item, with the values that the model received
// and with labels from later actions.
//
//	in      visit-log, actions-enriched, users-deleted
//	out     DIR/day=2026-11-20/part-03-000000000120-000000004711.parquet
//
// Both topics have the user as key, so Run joins one partition after the other. It holds a batch of visits of one day in memory and
// reads the actions since the oldest of them.
//
// # Files
//
// A file contains the items of the visits at the offsets 120 to 4711 of one partition, on the UTC day of the visit. Run
// continues after the last offset in the files. Each item is in the files once, even after kills: a file gets its name when it is
// complete.
//
// In each partition, Run stops before the first visit with a window that has not ended. A later Run writes it.
//
// This holds for one directory, which one process writes at a time, one topic and one set of labels. The metadata of the files
// contain the topic and the labels, and Run refuses to add files with others.
package export

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/smartfeed/smartfeed/internal/command"
	"github.com/smartfeed/smartfeed/internal/durable"
	"github.com/smartfeed/smartfeed/internal/training"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// Config selects what Run writes.
type Config struct {
	Labels Labels // see ParseLabels
	Dir    string // is created if it does not exist
	// Since and Until bound the times of the visits. Visits before Since are skipped, and those before the oldest action. In each
	// partition, Run stops before the first visit at or after Until. A zero time is no bound.
	Since, Until time.Time
	Now          time.Time // Run stops, too, before the first visit with a window that ends now or later

	// MaxBatchBytes bounds the memory for a batch: the size of its encoded visits. The decoded visits take several times as much.
	MaxBatchBytes int
}

// DefaultConfig returns a configuration without labels.
func DefaultConfig() Config { return Config{MaxBatchBytes: 32 << 20} }

// end returns the time at which the visits to write end.
func (c Config) end() time.Time {
	ended := c.Now.Add(-c.Labels.longest()).UTC()
	if c.Until.IsZero() || ended.Before(c.Until) {
		return ended
	}
	return c.Until
}

// Summary counts what Run wrote.
type Summary struct {
	Visits int `json:"visits"`
	Items  int `json:"items"`
	Files  int `json:"files"`
	// Skipped is the number of visits before Config.Since or before the oldest action, and of deleted users.
	Skipped int       `json:"skipped"`
	Until   time.Time `json:"until"` // Run has stopped before the first visit at or after this time
}

// Text writes the summary as text.
func (s Summary) Text(out io.Writer) error {
	_, err := fmt.Fprintf(out, "wrote %s of %s before %s to %s; skipped %s\n", command.Count(s.Items, "item"),
		command.Count(s.Visits, "visit"), s.Until.Format(time.RFC3339), command.Count(s.Files, "file"), command.Count(s.Skipped, "visit"))
	return err
}

// ErrNoVisits is returned if the topic visit-log has never had a record.
var ErrNoVisits = errors.New("the topic visit-log is empty: set visit_log.share above 0, and wait for visits")

// Run writes the visits that are not in the files yet. First it waits until the groups have processed the actions that are
// published. It returns ErrNoVisits if there are none, and a *topics.ChangedTopicError if the files are of another topic.
func Run(ctx context.Context, s topics.Setup, cfg Config) (Summary, error) {
	e := &job{Config: cfg, files: durable.Parts{Dir: cfg.Dir, Key: "day", Ext: ".parquet"}, deleted: map[schemas.UserID]bool{}, total: Summary{Until: cfg.end()}}
	lock, err := e.files.Lock()
	if err != nil {
		return e.total, fmt.Errorf("out: %w", err)
	}
	defer func() { _ = lock.Unlock() }() // the end of the process unlocks it, too
	if e.Streams, err = s.Streams(ctx); err != nil {
		return e.total, err
	}
	if e.log, err = topics.NewLog(s.Kafka); err != nil {
		return e.total, err
	}
	defer e.log.Close()
	e.progress = s.Start("export visits", -1)
	defer e.progress.Done()
	err = e.run(ctx, s)
	if ctx.Err() != nil {
		err = fmt.Errorf("export stopped; run the same command to continue: %w", err)
	}
	return e.total, err
}

// job is one run of Run.
type job struct {
	Config
	*topics.Streams
	files        durable.Parts
	log          *topics.Log
	topic        string // id of the topic visit-log
	starts, ends topics.Offsets
	deleted      map[schemas.UserID]bool
	progress     topics.Progress
	total        Summary
}

func (e *job) run(ctx context.Context, s topics.Setup) error {
	from, err := e.resume(ctx, s.Kafka)
	if err != nil {
		return err
	}
	show := func(w topics.WaitState) { e.progress.Say("wait for " + w.String()) }
	if err := topics.Wait(ctx, s.Kafka, schemas.MicrosOf(e.Now), show, joiners()...); err != nil {
		return err
	}
	if err := e.bounds(ctx); err != nil {
		return err
	}
	err = e.log.ReadAll(ctx, e.UsersDeleted.Name, topics.Decoded(e.UsersDeleted, func(d *schemas.DeletedUser, _ *kgo.Record) error {
		e.deleted[d.User] = true
		return nil
	}))
	for partition := range int32(len(from)) {
		if err == nil {
			err = e.partition(ctx, partition, from[partition].Next)
		}
	}
	return err
}

// joiners returns the groups that write actions-enriched, and those before them.
func joiners() []topics.Reader {
	return slices.DeleteFunc(topics.ReadersOf(topics.Catalogue(topics.Profile{})), func(r topics.Reader) bool {
		return r.Group != topics.Objects && r.Group != topics.Actors
	})
}

// resume returns the offsets at which the files end. It checks that the files have the topic and the labels of this export.
func (e *job) resume(ctx context.Context, k topics.Kafka) (map[int32]topics.PartitionCheckpoint, error) {
	paths, next, err := e.files.List()
	if err != nil {
		return nil, err
	}
	name, written := e.VisitLog.Name, topics.Checkpoint{}
	for partition, offset := range next {
		written.Set(name, partition, topics.PartitionCheckpoint{Next: offset})
	}
	at, err := topics.Resume(ctx, k, []string{name}, written)
	if changed := new(topics.ChangedTopicError); errors.As(err, &changed) {
		return nil, fmt.Errorf("out: %w; choose another directory", err)
	}
	if err != nil {
		return nil, err
	}
	e.topic = at[name][0].Topic.String()
	if len(paths) > 0 {
		err = e.check(paths[0])
	}
	return at[name], err
}

// check returns an error if a file is not of this export.
func (e *job) check(path string) error {
	layout, err := training.LayoutOf(path)
	if want := e.Labels.texts(); err == nil && !maps.Equal(layout.Labels, want) {
		err = fmt.Errorf("out: %s has the labels %v, not %v: choose another directory", path, layout.Labels, want)
	}
	if err == nil && layout.Topic != e.topic {
		err = fmt.Errorf("out: %s is of a topic visit-log with another id: it was recreated since; choose another directory", path)
	}
	return err
}

// bounds reads the bounds of both topics, which must have the same number of partitions.
func (e *job) bounds(ctx context.Context) (err error) {
	names := []string{e.VisitLog.Name, e.ActionsEnriched.Name}
	if e.starts, err = e.log.Starts(ctx, names...); err != nil {
		return err
	}
	if e.ends, err = e.log.Ends(ctx, names...); err != nil {
		return err
	}
	visits, actions := e.ends[names[0]], e.ends[names[1]]
	if len(visits) != len(actions) {
		return fmt.Errorf("%s has %d partitions, and %s has %d: want the same number", names[0], len(visits), names[1], len(actions))
	}
	if slices.Max(slices.Collect(maps.Values(visits))) == 0 {
		return ErrNoVisits
	}
	return nil
}
