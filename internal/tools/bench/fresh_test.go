package bench

import (
	"fmt"
	"math"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/processors/pools"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// crowd has authors with one to a thousand followers each: as many authors have one to ten followers as ten to a hundred, and
// a hundred to a thousand.
type crowd struct {
	*pipeline
	authors   []schemas.UserID
	followers []int // by author: the number of followers, who are the first of its readers
}

func newCrowd(b *testing.B, authors int) *crowd {
	c := &crowd{pipeline: newPipeline(b, pushed(), pools.DefaultConfig())}
	for n := range authors {
		author := schemas.UserID(fmt.Sprintf("user:author-%d", n))
		followers := int(math.Pow(10, 3*float64(n)/float64(authors-1)))
		c.authors, c.followers = append(c.authors, author), append(c.followers, followers)
		for i := range followers {
			c.follow(c.reader(n, i), author)
		}
	}
	must.OK(b, c.publisher.Flush(b.Context()))
	c.wait()
	return c
}

func (c *crowd) reader(author, n int) schemas.UserID {
	return schemas.UserID(fmt.Sprintf("user:reader-%d-%d", author, n))
}

// witnesses returns a follower in each partition: a step of a walk reaches all followers of a partition in one
// transaction.
func (c *crowd) witnesses(author int) []schemas.UserID {
	var list []schemas.UserID
	here := map[int32]bool{}
	for i := range c.followers[author] {
		reader := c.reader(author, i)
		if p := topics.Partition(string(reader), partitions); !here[p] {
			here[p] = true
			list = append(list, reader)
		}
	}
	return list
}

// BenchmarkFeedFresh publishes 200 pins per second by authors with up to a thousand followers. It measures how long a
// pin takes to reach the pools of all of them. Meanwhile it measures, in sequence, how long a new follower waits for
// earlier pins, and how long they stay after an unfollow.
func BenchmarkFeedFresh(b *testing.B) {
	const authors, rate, lasts = 60, 200, 10 * time.Second
	for range b.N {
		c := newCrowd(b, authors)
		for n := range authors {
			c.publish(c.authors[n])
		}
		must.OK(b, c.publisher.Flush(b.Context()))
		c.wait()
		var edges changes
		done := make(chan struct{})
		var changing sync.WaitGroup
		changing.Go(func() { edges = c.changeEdges(done) })
		fresh := c.publishAt(rate, lasts)
		close(done)
		changing.Wait()
		b.ReportMetric(millis(percentile(fresh, 50)), "in-all-pools-p50-ms")
		b.ReportMetric(millis(percentile(fresh, 99)), "in-all-pools-p99-ms")
		b.ReportMetric(millis(percentile(edges.follows, 99)), "followed-p99-ms")
		b.ReportMetric(millis(percentile(edges.unfollows, 99)), "unfollowed-p99-ms")
		b.ReportMetric(float64(len(edges.follows)), "follows")
	}
	b.ReportMetric(0, "ns/op")
}

// publishAt publishes pins at a rate per second, each at its due time, independent of earlier ones. It returns the time of
// each from then until it is in the pools of all followers.
func (c *crowd) publishAt(rate int, lasts time.Duration) []time.Duration {
	n := rate * int(lasts/time.Second)
	took := make([]time.Duration, n)
	witnesses := make([][]schemas.UserID, len(c.authors))
	for i := range c.authors {
		witnesses[i] = c.witnesses(i)
	}
	var arriving sync.WaitGroup
	began := time.Now()
	for i := range n {
		due := began.Add(time.Duration(i) * time.Second / time.Duration(rate))
		time.Sleep(time.Until(due))
		author := (i * 7) % len(c.authors) // 7 and 60 have no common divisor: every author publishes, small ones after large ones
		pin := c.publish(c.authors[author])
		arriving.Go(func() {
			for _, reader := range witnesses[author] {
				c.awaitTop(reader, pin)
			}
			took[i] = time.Since(due)
		})
	}
	arriving.Wait()
	return took
}

// changes holds how long follows and unfollows took to take effect.
type changes struct{ follows, unfollows []time.Duration }

// changeEdges makes new users follow an author, and then unfollow, until done.
func (c *crowd) changeEdges(done <-chan struct{}) (all changes) {
	for n := 0; ; n++ {
		select {
		case <-done:
			return all
		default:
		}
		reader, author := schemas.UserID(fmt.Sprintf("user:new-%d", n)), c.authors[n%len(c.authors)]
		began := time.Now()
		c.edge(reader, author, schemas.Follow, 1)
		c.awaitPool(reader, func(p *schemas.Pool) bool { return p.Total > 0 })
		all.follows = append(all.follows, time.Since(began))
		began = time.Now()
		c.edge(reader, author, schemas.Unfollow, 2)
		c.awaitPool(reader, func(p *schemas.Pool) bool { return p.Total == 0 })
		all.unfollows = append(all.unfollows, time.Since(began))
	}
}

// edge sets a follow register at a time.
func (p *pipeline) edge(follower, followee schemas.UserID, verb schemas.Verb, at schemas.Micros) {
	e := &schemas.FollowEvent{Event: schemas.Event{
		ID: fmt.Sprintf("%s %s %d", follower, followee, at), Time: at, Actor: follower, Verb: verb, Object: schemas.ID(followee),
	}}
	p.send(schemas.NewLine(e))
}

// awaitTop returns when a pin is in the user's pool.
func (p *pipeline) awaitTop(user schemas.UserID, pin schemas.PinID) {
	p.awaitPool(user, func(pool *schemas.Pool) bool {
		return slices.ContainsFunc(pool.Items, func(i schemas.PoolItem) bool { return i.Pin == pin })
	})
}

// awaitPool returns when the best hundred of the user's pool satisfy ok.
func (p *pipeline) awaitPool(user schemas.UserID, ok func(*schemas.Pool) bool) {
	for {
		changed := p.groups[topics.Pools].View().Changed(string(user))
		pool, err := p.generator.Pool(p.b.Context(), user, schemas.Following, 100)
		if err != nil {
			p.b.Error(err)
			return
		}
		if ok(pool) {
			return
		}
		select {
		case <-changed:
		case <-p.b.Context().Done():
			return
		}
	}
}
