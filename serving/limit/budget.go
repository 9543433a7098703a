package limit

import (
	"errors"
	"sync"
)

// Budget bounds how many bytes callers hold at once, all of them and each. It is safe for concurrent use. It remembers
// those alone who hold some.
type Budget struct {
	most, each int64

	mu   sync.Mutex
	all  int64
	held map[string]int64
}

// What a Share grows beyond.
var (
	ErrAll  = errors.New("all callers hold as much as there is")
	ErrEach = errors.New("the caller holds as much as one may")
)

// NewBudget lets all hold so many bytes at most, and each caller so many of them.
func NewBudget(most, each int64) *Budget {
	return &Budget{most: most, each: each, held: map[string]int64{}}
}

// Share is what is held for one request. It is its request's alone, and not safe for concurrent use. End it.
type Share struct {
	of     *Budget
	caller string
	bytes  int64
}

// Share begins with nothing. A caller "" has no bound but that of all.
func (b *Budget) Share(caller string) *Share { return &Share{of: b, caller: caller} }

// Fits says whether the share could hold so many bytes in all now: nil, ErrEach or ErrAll.
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

// Grow has the share hold so many bytes in all. It fails as Fits does, and holds what it held then. It never shrinks.
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

// End gives everything back.
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
