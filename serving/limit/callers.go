package limit

import (
	"container/list"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Callers holds each caller to a rate. It is safe for concurrent use.
type Callers struct {
	cfg Config
	now func() time.Time

	mu     sync.Mutex
	places map[string]*list.Element // of a *bucket in order
	order  *list.List               // who came last is in front
}

type bucket struct {
	caller string
	*rate.Limiter
}

// NewCallers takes a valid configuration. now may be nil, for time.Now.
func NewCallers(cfg Config, now func() time.Time) *Callers {
	if now == nil {
		now = time.Now
	}
	return &Callers{cfg: cfg, now: now, places: map[string]*list.Element{}, order: list.New()}
}

// User takes a request off a user's rate, and returns after how long there is one again if there was none.
func (c *Callers) User(subject string) (again time.Duration, ok bool) {
	return c.take("u"+subject, c.cfg.Rate, c.cfg.Burst)
}

// Service does the same for a service.
func (c *Callers) Service(subject string) (again time.Duration, ok bool) {
	return c.take("s"+subject, c.cfg.ServiceRate, c.cfg.ServiceBurst)
}

// Address does the same for somebody who is known by his address, host:port. Loopback addresses have no bound: they are
// this machine's own programs, and proxies that pass on what others ask. An IPv6 network of 64 bits is one caller: that is
// what one customer has.
func (c *Callers) Address(remote string) (again time.Duration, ok bool) {
	who, bounded := AddressOf(remote)
	if !bounded {
		return 0, true
	}
	return c.take("a"+who, c.cfg.Rate, c.cfg.Burst)
}

// AddressOf returns which caller an address, host:port, is, and whether that one has bounds; see Callers.Address.
func AddressOf(remote string) (who string, bounded bool) {
	at, err := netip.ParseAddrPort(remote)
	if err != nil {
		return remote, true
	}
	ip := at.Addr().WithZone("").Unmap()
	if ip.Is6() && !ip.IsLoopback() {
		if network, err := ip.Prefix(64); err == nil {
			ip = network.Addr()
		}
	}
	return ip.String(), !ip.IsLoopback()
}

func (c *Callers) take(caller string, perSecond float64, burst int) (again time.Duration, ok bool) {
	if perSecond == 0 {
		return 0, true
	}
	now := c.now()
	c.mu.Lock()
	defer c.mu.Unlock()
	reservation := c.bucket(caller, perSecond, burst).ReserveN(now, 1)
	if again = reservation.DelayFrom(now); again > 0 {
		reservation.CancelAt(now) // who is refused does not pay
		return again, false
	}
	return 0, true
}

// bucket returns that of a caller, a full one for a new caller.
func (c *Callers) bucket(caller string, perSecond float64, burst int) *rate.Limiter {
	if place, known := c.places[caller]; known {
		c.order.MoveToFront(place)
		return place.Value.(*bucket).Limiter
	}
	if len(c.places) >= c.cfg.Callers {
		last := c.order.Back()
		c.order.Remove(last)
		delete(c.places, last.Value.(*bucket).caller)
	}
	b := &bucket{caller, rate.NewLimiter(rate.Limit(perSecond), burst)}
	c.places[caller] = c.order.PushFront(b)
	return b.Limiter
}
