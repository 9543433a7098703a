package limit

import (
	"errors"
	"sync"
)

// Budget limits how many bytes callers hold at once, in total and per caller. It is safe for concurrent use. It keeps state
// only for callers that hold bytes.
type Budget struct {
	most, each int64

	mu   sync.Mutex
	all  int64
	held map[string]int64
}

// Errors for a Share that exceeds a limit.
var (
	ErrAll  = errors.New("all callers hold as much as there is")
	ErrEach = errors.New("the caller holds as much as one may")
)

// NewBudget returns a Budget that limits all callers to most bytes in total, and each caller to each bytes.
func NewBudget(most, each int64) *Budget {
	return &Budget{most: most, each: each, held: map[string]int64{}}
}

// Share is the number of bytes held for one request. It is not safe for concurrent use. The caller must call End.
type Share struct {
	of     *Budget
	caller string
	bytes  int64
}

// Share returns an empty Share. The caller "" has no limit of its own.
func (b *Budget) Share(caller string) *Share { return &Share{of: b, caller: caller} }

// Fits returns nil if the share could now hold bytes in total, and otherwise ErrEach or ErrAll.
func (s *Share) Fits(bytes int64) error {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	return s.fits(bytes)
}

func (s *Share) fits(bytes int64) error {
	more := bytes - s.bytes
	switch {
	case s.caller != "" && s.of.held[s.caller]+more > s.of.each:
		return ErrEach
	case s.of.all+more > s.of.most:
		return ErrAll
	}
	return nil
}

// Grow increases the share to bytes in total. If it does not fit, Grow returns the error of Fits and leaves the share
// unchanged. It never shrinks the share.
func (s *Share) Grow(bytes int64) error {
	if bytes <= s.bytes {
		return nil
	}
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	if err := s.fits(bytes); err != nil {
		return err
	}
	s.add(bytes - s.bytes)
	return nil
}

// End releases all bytes of the share.
func (s *Share) End() {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	s.add(-s.bytes)
}

func (s *Share) add(bytes int64) {
	s.bytes += bytes
	s.of.all += bytes
	if s.caller == "" {
		return
	}
	if s.of.held[s.caller] += bytes; s.of.held[s.caller] == 0 {
		delete(s.of.held, s.caller)
	}
}
