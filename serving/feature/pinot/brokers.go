package pinot

import (
	"sync"
	"time"
)

// avoidFor is how long a failed broker is avoided while others are available. Then one query tries it.
const avoidFor = time.Second

// endpoint is a broker that receives queries.
type endpoint struct {
	url    string
	failed bool      // on the last query
	until  time.Time // if it failed: when it is tried again
}

// brokers selects brokers in turn. It is safe for concurrent use.
type brokers struct {
	now func() time.Time

	mu   sync.Mutex
	all  []*endpoint
	next uint64
}

// first returns the broker for the next query.
func (b *brokers) first() *endpoint {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.next++
	if one := b.healthy(nil); one != nil {
		return one
	}
	return b.all[b.next%uint64(len(b.all))] // all failed recently: one may have recovered
}

// other returns the next broker except but. It returns a healthy one, or, with any, one that failed recently, or nil.
func (b *brokers) other(but *endpoint, any bool) *endpoint {
	b.mu.Lock()
	defer b.mu.Unlock()
	if one := b.healthy(but); one != nil || !any {
		return one
	}
	for i := range b.all {
		if one := b.at(i); one != but {
			return one
		}
	}
	return nil
}

// healthy returns the next healthy broker except but, or nil if all failed recently.
func (b *brokers) healthy(but *endpoint) *endpoint {
	for i := range b.all {
		one := b.at(i)
		switch {
		case one == but || one.failed && b.now().Before(one.until):
			continue
		case one.failed: // this query tries it; no other query does for another avoidFor
			one.until = b.now().Add(avoidFor)
		}
		return one
	}
	return nil
}

// at returns the broker that is turns ahead.
func (b *brokers) at(turns int) *endpoint { return b.all[(b.next+uint64(turns))%uint64(len(b.all))] }

// record records the outcome of a query to a broker.
func (b *brokers) record(one *endpoint, failed bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	one.failed, one.until = failed, b.now().Add(avoidFor)
}
