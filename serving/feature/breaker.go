package feature

import (
	"errors"

	"github.com/sony/gobreaker/v2"

	"github.com/smartfeed/smartfeed/internal/metrics"
)

// newBreaker returns the circuit breaker of the store. While it is open, answers fail at once instead of at their
// deadline, and the store can recover. It opens after Config.BreakerFailures consecutive answers that lack values
// because of the store. After Config.BreakerOpenTime one answer probes the store: it closes the breaker, or opens it
// again.
func newBreaker(cfg Config, m *Metrics) *gobreaker.TwoStepCircuitBreaker[any] {
	return gobreaker.NewTwoStepCircuitBreaker[any](gobreaker.Settings{
		MaxRequests:   1, // while it is half-open
		Timeout:       cfg.BreakerOpenTime,
		ReadyToTrip:   func(c gobreaker.Counts) bool { return int64(c.ConsecutiveFailures) >= int64(cfg.BreakerFailures) },
		IsExcluded:    func(err error) bool { return errors.Is(err, errInconclusive) },
		OnStateChange: func(_ string, _, to gobreaker.State) { m.open.Set(metrics.Flag(to != gobreaker.StateClosed)) },
	})
}

// Outcomes of reading from the store; nil is a success.
var (
	errIncomplete   = errors.New("values are missing because of the store")
	errInconclusive = errors.New("the caller canceled before the store answered")
)
