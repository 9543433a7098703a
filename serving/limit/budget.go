package limit

import (
	"errors"
	"sync"
)

// Budget limits how much callers hold at once, in total and per caller: bytes, streams or requests. It is safe for concurrent
// use. It keeps state only for callers that hold something.
type Budget struct {
	most, each int64

	mu   sync.Mutex
	all  int64
	held map[string]int64
}

// Errors for a Share that exceeds a limit.
var (
	ErrAll  = errors.New("the common limit is reached")
	ErrEach = errors.New("the limit of the caller is reached")
)

// NewBudget returns a Budget that limits all callers to most in total, and each caller to each.
func NewBudget(most, each int64) *Budget {
	return &Budget{most: most, each: each, held: map[string]int64{}}
}

// Share is the amount that one request holds. It is not safe for concurrent use. The caller must call End.
type Share struct {
	of     *Budget
	caller string
	amount int64
}

// Share returns an empty Share. The caller "" has no separate limit.
func (b *Budget) Share(caller string) *Share { return &Share{of: b, caller: caller} }

// Fits returns nil if the share could now hold the amount, and otherwise ErrEach or ErrAll.
func (s *Share) Fits(amount int64) error {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	return s.fits(amount)
}

func (s *Share) fits(amount int64) error {
	more := amount - s.amount
	switch {
	case s.caller != "" && s.of.held[s.caller]+more > s.of.each:
		return ErrEach
	case s.of.all+more > s.of.most:
		return ErrAll
	}
	return nil
}

// Grow increases the share to the amount. If it does not fit, Grow returns the error of Fits and leaves the share unchanged.
// It never shrinks the share.
func (s *Share) Grow(amount int64) error {
	if amount <= s.amount {
		return nil
	}
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	if err := s.fits(amount); err != nil {
		return err
	}
	s.add(amount - s.amount)
	return nil
}

// End releases the share.
func (s *Share) End() {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	s.add(-s.amount)
}

func (s *Share) add(amount int64) {
	s.amount += amount
	s.of.all += amount
	if s.caller == "" {
		return
	}
	if s.of.held[s.caller] += amount; s.of.held[s.caller] == 0 {
		delete(s.of.held, s.caller)
	}
}
