package app

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// The data of BenchmarkSizing.
const (
	sizingReaders   = 1000
	sizingAuthors   = 200
	sizingFollowed  = 20 // authors of each reader: every author has a hundred followers
	sizingPins      = 1000
	sizingActions   = 20_000
	sizingOffered   = 10 // candidates in a record
	sizingVisits    = 2  // of each reader
	sizingFollowers = sizingReaders * sizingFollowed / sizingAuthors
)

// sized holds the bytes and the CPU time that the process has used so far.
type sized struct {
	kept    int64 // bytes of topics that are kept forever
	tables  int64 // of compacted topics, before compaction
	passing int64 // of topics with a retention time
	feed    int64 // of the embedded feed store, not yet compressed
	actions int64 // of the embedded feature store, not yet compressed
	cpu     time.Duration
}

func (p *benchProduct) sized() (s sized) {
	s.cpu = usedCPU(p.b.(*testing.B))
	for _, t := range topics.Catalogue(topics.Profile{}) {
		n := p.bytesBelow("broker", "partitions", t.Name+"-[0-9]*")
		switch {
		case t.Compact:
			s.tables += n
		case t.Retention == 0:
			s.kept += n
		default:
			s.passing += n
		}
	}
	s.feed, s.actions = p.bytesBelow("feed"), p.bytesBelow("features")
	return s
}

// bytesBelow returns the total size of the files below a directory of the process.
func (p *benchProduct) bytesBelow(path ...string) (n int64) {
	dirs := must.Get(filepath.Glob(filepath.Join(append([]string{p.cfg.Dir}, path...)...)))(p.b)
	for _, dir := range dirs {
		err := filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() {
				return err
			}
			info, err := e.Info()
			if err == nil {
				n += info.Size()
			}
			return err
		})
		must.OK(p.b, err)
	}
	return n
}

// measured runs do, which performs an operation n times, and reports the cost of one operation.
func (p *benchProduct) measured(b *testing.B, unit string, n int, do func()) {
	before := p.sized()
	do()
	must.OK(b, topics.Wait(b.Context(), p.kafka, schemas.MicrosOf(time.Now()), nil))
	after := p.sized()
	each := func(before, after int64) float64 { return float64(after-before) / float64(n) }
	b.Logf("%-32s %7d times: %7.0f B kept, %7.0f B tables, %7.0f B passing, %6.0f B feed store, %6.0f B feature store, %7.0f µs", unit, n,
		each(before.kept, after.kept), each(before.tables, after.tables), each(before.passing, after.passing),
		each(before.feed, after.feed), each(before.actions, after.actions), each(before.cpu.Microseconds(), after.cpu.Microseconds()))
}

func (p *benchProduct) send(lines []schemas.Line) {
	must.OK(p.b, p.publisher.Publish(p.b.Context(), lines))
}

// BenchmarkSizing reports the bytes in topics and stores, and the CPU time, of a follow, pin, delivery, candidate, action
// and visit, with all roles in one process. docs/design/cost-model.md uses the results.
func BenchmarkSizing(b *testing.B) {
	p := startBench(b)
	reader := func(i int) schemas.UserID { return schemas.UserID(fmt.Sprint("user:reader-", i%sizingReaders)) }
	author := func(i int) schemas.UserID { return schemas.UserID(fmt.Sprint("user:author-", i%sizingAuthors)) }
	at := time.Now().Add(-time.Hour)

	p.measured(b, "a follow", sizingReaders*sizingFollowed, func() {
		var lines []schemas.Line
		for i := range sizingReaders * sizingFollowed {
			e := &schemas.FollowEvent{Event: p.event(reader(i/sizingFollowed), schemas.Follow, string(author(i)), at)}
			lines = append(lines, schemas.NewLine(e))
		}
		p.send(lines)
	})
	pins := func(name string, by func(int) schemas.UserID) func() {
		return func() {
			var lines []schemas.Line
			for i := range sizingPins {
				e := &schemas.PinEvent{
					Event:     p.event(by(i), schemas.Create, fmt.Sprint("pin:", name, "-", i), at.Add(time.Duration(i)*time.Millisecond)),
					Interests: []schemas.InterestID{schemas.InterestID(fmt.Sprint("interest:", i%50)), "interest:all"},
					Title:     fmt.Sprint("A title of some words, number ", i), Link: fmt.Sprint("https://example.org/articles/", i),
				}
				lines = append(lines, schemas.NewLine(e))
			}
			p.send(lines)
		}
	}
	p.measured(b, "a pin without followers", sizingPins, pins("alone", func(int) schemas.UserID { return "user:alone" }))
	p.measured(b, fmt.Sprintf("a pin with %d followers", sizingFollowers), sizingPins, pins("followed", author))
	p.measured(b, fmt.Sprintf("a record of %d candidates", sizingOffered), sizingReaders, func() {
		var lines []schemas.Line
		for i := range sizingReaders {
			lines = append(lines, p.offer(reader(i), i, at))
		}
		p.send(lines)
	})
	p.measured(b, "an action", sizingActions, func() {
		var lines []schemas.Line
		for i := range sizingActions {
			l := p.action(reader(i), i, at)
			e := l.Event.(*schemas.ActionEvent)
			e.Object = schemas.ID(fmt.Sprint("pin:followed-", i%sizingPins))
			l.Key = e.Key()
			lines = append(lines, l)
		}
		p.send(lines)
	})
	p.measured(b, "a visit of 25 items", sizingReaders*sizingVisits, func() {
		var visits errgroup.Group
		visits.SetLimit(8)
		for i := range sizingReaders * sizingVisits {
			visits.Go(func() error { return p.visit(reader(i)) })
		}
		must.OK(b, visits.Wait())
	})
}

func (p *benchProduct) offer(user schemas.UserID, i int, at time.Time) schemas.Line {
	o := &schemas.Offer{ID: fmt.Sprint("offer-", i), Time: schemas.MicrosOf(at), User: user, Source: "editors"}
	for j := range sizingOffered {
		o.Candidates = append(o.Candidates, schemas.Candidate{
			Pin: schemas.PinID(fmt.Sprint("pin:offered-", i, "-", j)), Facets: schemas.Facets{Author: "user:editor"},
			Created: schemas.MicrosOf(at), PoolScore: schemas.PoolScore(j),
		})
	}
	return schemas.NewLine(o)
}

// visit returns an error if the visit has no new item.
func (p *benchProduct) visit(user schemas.UserID) error {
	res, err := p.client.Get("http://" + p.server.Addr() + "/v1/users/" + string(user) + "/feed?limit=25")
	if err != nil {
		return err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK || !bytes.Contains(text, []byte(`"new":true`)) {
		return fmt.Errorf("visit of %s: %d %.300s (%w)", user, res.StatusCode, text, err)
	}
	return nil
}
