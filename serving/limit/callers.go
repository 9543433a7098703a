package limit

import (
	"container/list"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Callers limits the request rate of each caller. It is safe for concurrent use.
type Callers struct {
	cfg Config
	now func() time.Time

	mu       sync.Mutex
	elements map[string]*list.Element // the elements of order, each with a *bucket
	order    *list.List               // the most recently seen caller is in front
}

type bucket struct {
	caller string
	*rate.Limiter
}

// NewCallers requires a valid configuration.
func NewCallers(cfg Config, now func() time.Time) *Callers {
	return &Callers{cfg: cfg, now: now, elements: map[string]*list.Element{}, order: list.New()}
}

// User takes a request from a user's rate. If none is available, ok is false, and again is the time until one is.
func (c *Callers) User(subject string) (again time.Duration, ok bool) {
	return c.take("u"+subject, c.cfg.UserRate, c.cfg.UserBurst)
}

// Service takes a request from a service's rate, as User does for a user.
func (c *Callers) Service(subject string) (again time.Duration, ok bool) {
	return c.take("s"+subject, c.cfg.ServiceRate, c.cfg.ServiceBurst)
}

// Address takes a request from the rate of an address, host:port. Loopback addresses have no limit: they are local
// programs, and proxies that forward the requests of others. An IPv6 /64 network counts as one caller, because a
// customer usually gets one.
func (c *Callers) Address(remote string) (again time.Duration, ok bool) {
	who, bounded := AddressOf(remote)
	if !bounded {
		return 0, true
	}
	return c.take("a"+who, c.cfg.UserRate, c.cfg.UserBurst)
}

// AddressOf returns the caller for an address, host:port, and reports whether that caller has a limit; see Callers.Address.
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
		reservation.CancelAt(now) // a rejected request costs nothing
		return again, false
	}
	return 0, true
}

// bucket returns the bucket of a caller. A new caller gets a full one.
func (c *Callers) bucket(caller string, perSecond float64, burst int) *rate.Limiter {
	if place, known := c.elements[caller]; known {
		c.order.MoveToFront(place)
		return place.Value.(*bucket).Limiter
	}
	if len(c.elements) >= c.cfg.MaxCallers {
		last := c.order.Back()
		c.order.Remove(last)
		delete(c.elements, last.Value.(*bucket).caller)
	}
	b := &bucket{caller, rate.NewLimiter(rate.Limit(perSecond), burst)}
	c.elements[caller] = c.order.PushFront(b)
	return b.Limiter
}
