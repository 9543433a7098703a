package schemas

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
)

// tickText is a schema that Tick can read and that differs from its own.
var tickText = recordSchema("Tick", fieldSchema("time", "long"))

// A producer that writes random schema ids causes few requests, evicts no known schemas, and delays a new schema only until
// its record is retried.
func TestDecode_BoundsLookupsOfUnknownIDs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := &asked{texts: texts{9: tickText, 10: tickText}}
		s := serdeOf[Tick](t, source)
		decode := func(id uint32) error {
			_, err := s.Decode(framed(id, 5))
			return err
		}
		must.OK(t, decode(9))
		const random = 3 * maxMissing
		for id := range uint32(random) {
			checkBad(t, decode(100+id))
		}
		expect.Equal(t, source.count(), 1+missBurst, "requests for %d random ids", random)
		must.OK(t, decode(9))
		expect.Equal(t, source.count(), 1+missBurst, "requests with a known schema")
		expect.Error(t, decode(10), errBudget.Error(), "a new schema")
		time.Sleep(missInterval)
		must.OK(t, decode(10)) // a new schema, retried
		time.Sleep(time.Hour)
		before := source.count()
		for id := range uint32(random) {
			checkBad(t, decode(1<<20+id))
		}
		expect.Equal(t, source.count()-before, missBurst, "requests after an hour")
		checkBad(t, decode(1<<31))
		expect.AtMost(t, len(s.framing.writers.missing.all), maxMissing, "remembered missing ids")
	})
}

// Neither a topic with records of many versions of a schema nor an unavailable registry uses up the budget.
func TestDecode_RequestsEveryExistingSchema(t *testing.T) {
	source := &asked{texts: texts{}, away: errors.New("away")}
	s := serdeOf[Tick](t, source)
	for range 2 * missBurst {
		expect.Is(t, expect.ErrorOf(s.Decode(framed(1000, 5))), source.away, "error")
	}
	source.away = nil
	for id := range 3 * maxWriters {
		source.texts[1000+id] = tickText
	}
	for id := range uint32(maxWriters) {
		must.Get(s.Decode(framed(1000+id, 5)))(t)
	}
	refused := 0
	// More than are cached: these use the budget, so that a client cannot enumerate a registry through it.
	for id := range uint32(2 * maxWriters) {
		if _, err := s.Decode(framed(1000+maxWriters+id, 5)); err != nil {
			refused++
		}
	}
	expect.Equal(t, len(s.framing.writers.found.all), maxWriters, "remembered schemas")
	expect.AtLeast(t, refused, 1, "refused schemas")
}

// slowSource responds when answer is closed.
type slowSource struct {
	asked  atomic.Int64
	answer chan struct{}
}

func (s *slowSource) SchemaByID(context.Context, int) (string, error) {
	s.asked.Add(1)
	<-s.answer
	return tickText, nil
}

func TestDecode_RequestsOnceForConcurrentRecords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := &slowSource{answer: make(chan struct{})}
		s := serdeOf[Tick](t, source)
		for range 2 * missBurst {
			go func() {
				expect.Error(t, expect.ErrorOf(s.Decode(framed(9, 5))), "", "Decode")
			}()
		}
		synctest.Wait()
		close(source.answer)
		synctest.Wait()
		expect.Equal(t, source.asked.Load(), 1, "requests")
	})
}
