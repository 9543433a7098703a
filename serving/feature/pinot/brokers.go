package pinot

import (
	"sync"
	"time"
)

// brokerRest is how long a broker that failed is passed over while there are others. Then one query tries it.
const brokerRest = time.Second

// endpoint is a broker that queries go to.
type endpoint struct {
	url    string
	failed bool      // when it was last asked
	until  time.Time // it is passed over, if it has
}

// brokers take turns. It is safe for concurrent use.
type brokers struct {
	now func() time.Time

	mu   sync.Mutex
	all  []*endpoint
	next uint64
}

// first returns whose turn it is.
func (b *brokers) first() *endpoint {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.next++
	if one := b.well(nil); one != nil {
		return one
	}
	return b.all[b.next%uint64(len(b.all))] // all failed lately: one may be well again
}

// other returns the next that is not but: one that is well, or, with any, one that failed lately. nil: there is none.
func (b *brokers) other(but *endpoint, any bool) *endpoint {
	b.mu.Lock()
	defer b.mu.Unlock()
	if one := b.well(but); one != nil || !any {
		return one
	}
	for i := range b.all {
		if one := b.at(i); one != but {
			return one
		}
	}
	return nil
}

// well returns the next that is to be asked, without but; nil: all failed lately.
func (b *brokers) well(but *endpoint) *endpoint {
	for i := range b.all {
		one := b.at(i)
		switch {
		case one == but || one.failed && b.now().Before(one.until):
			continue
		case one.failed: // this query tries it, and no other for as long
			one.until = b.now().Add(brokerRest)
		}
		return one
	}
	return nil
}

// at is the broker so many turns later.
func (b *brokers) at(turns int) *endpoint { return b.all[(b.next+uint64(turns))%uint64(len(b.all))] }

// went notes how it went with a broker.
func (b *brokers) went(one *endpoint, failed bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	one.failed, one.until = failed, b.now().Add(brokerRest)
}
