package api

import (
	"sync"
	"time"
)

// auditLines limits the log lines of requests without a valid token. It is safe for concurrent use.
type auditLines struct {
	mu      sync.Mutex
	second  time.Time // in which a line was last logged
	logged  int       // in that second
	omitted int64     // since a line was last logged
}

// linesPerSecond is the maximum number of audit lines per second for requests without a valid token.
const linesPerSecond = 10

// next reports whether a line may be logged now, and how many were omitted before it.
func (l *auditLines) next(now time.Time) (omitted int64, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now := now.Truncate(time.Second); now != l.second {
		l.second, l.logged = now, 0
	}
	if l.logged == linesPerSecond {
		l.omitted++
		return 0, false
	}
	l.logged++
	omitted, l.omitted = l.omitted, 0
	return omitted, true
}
