package retries

import (
	"crypto/sha256"
	"encoding/binary"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/smartfeed/smartfeed/internal/packed"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// deadLetter is the state of a dead letter, without its bytes.
type deadLetter struct {
	Partition  int32 // partition and offset of the record that failed first
	Offset     int64
	Group      string
	Kind       string
	Reason     string
	State      schemas.RetryState
	Attempts   int32
	ParkReason string // parked: the reason
	Since      schemas.Micros
	Due        schemas.Micros // waiting: when it is retried; sent: when it counts as done
	To         int32          // partition of the retry
	Bytes      int            // of its key and value, while it waits
	Checksum   uint64         // of its key and value, see checksum
}

// Pack implements packed.Row.
func (l *deadLetter) Pack(p *packed.Packer) {
	p.Version(1)
	packed.Int(p, &l.Partition)
	packed.Int(p, &l.Offset)
	packed.String(p, &l.Group)
	packed.String(p, &l.Kind)
	packed.String(p, &l.Reason)
	packed.String(p, &l.State)
	packed.Int(p, &l.Attempts)
	packed.String(p, &l.ParkReason)
	packed.Int(p, &l.Since)
	packed.Int(p, &l.Due)
	packed.Int(p, &l.To)
	packed.Int(p, &l.Bytes)
	packed.Int(p, &l.Checksum)
}

// maxReason is the longest reason that is stored, in bytes.
const maxReason = 300

func cut(reason string) string {
	if len(reason) > maxReason {
		reason = reason[:maxReason]
	}
	return strings.ToValidUTF8(reason, "")
}

// idOf returns the id of a dead letter within its topic: partition and offset of the record that failed first, and the
// group.
func idOf(l *schemas.DeadLetter) []byte {
	partition, offset := l.First()
	return makeID(partition, offset, l.Group)
}

func makeID(partition int32, offset int64, group string) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(partition))
	b = binary.BigEndian.AppendUint64(b, uint64(offset))
	return append(b, group...)
}

func (l *deadLetter) id() []byte { return makeID(l.Partition, l.Offset, l.Group) }

// checksum returns a hash of a dead letter's key and value.
func checksum(l *schemas.DeadLetter) uint64 {
	sum := sha256.Sum256(slices.Concat(binary.AppendUvarint(nil, uint64(len(l.Key))), l.Key, l.Value))
	return binary.BigEndian.Uint64(sum[:])
}

// isSameRecord reports whether l can come from the same record as known. On a public topic, any producer can set the retry
// header on its own record and name another record as the one that failed first.
func isSameRecord(known *deadLetter, l *schemas.DeadLetter) bool {
	return known.Checksum == checksum(l) && l.Attempts <= known.Attempts+1
}

// isNew reports whether a dead letter changes the known state. A producer may publish the same dead letter twice.
func isNew(known *deadLetter, l *schemas.DeadLetter) bool {
	switch {
	case known == nil || l.Attempts > known.Attempts || !isSameRecord(known, l):
		return true
	case l.Attempts < known.Attempts:
		return false
	}
	return known.State == schemas.RetrySent || known.State == schemas.RetryDone
}

// Reasons to park a dead letter.
const (
	parkedAttempts = "maximum number of attempts reached"
	parkedTopic    = "the topic accepts no retries"
	parkedTooLarge = "the record is too large to keep"
	parkedEmpty    = "the record is empty"
	parkedCapacity = "too many dead letters are waiting"
)

// unretryable returns the reason why this group can never retry a dead letter, or "" if it can.
func (g *group) unretryable(l *schemas.DeadLetter) string {
	t, ok := g.topics[l.Topic]
	switch {
	case !ok || !g.accepts(l.Topic, t.RetryTo(l)):
		return parkedTopic
	case len(l.Key)+len(l.Value) > topics.MaxRetriedBytes:
		return parkedTooLarge
	case len(l.Key)+len(l.Value) == 0: // for example, the dead letter of a batch that cannot be decoded
		return parkedEmpty
	}
	return ""
}

// accepts reports whether dead letters can be published to a partition of a topic.
func (g *group) accepts(topic string, partition int32) bool {
	t, ok := g.topics[topic]
	return ok && partition >= 0 && partition < t.Partitions
}

// limiter is the time at which a rate limit next allows a retry. It is the generic cell rate algorithm (ITU-T I.371), with a
// burst of one second's worth of retries.
type limiter schemas.Micros

// allows reports whether a retry is allowed now.
func (l limiter) allows(now schemas.Micros) bool { return l <= limiter(now) }

// next returns the limiter after a retry. rate is in retries per second, above 0.
func (l limiter) next(now schemas.Micros, rate float64) limiter {
	return max(l, limiter(now)-limiter(time.Second/time.Microsecond)) + limiter(math.Round(1e6/rate))
}

// limit is the rate limit that an operator set for a scope.
type limit struct {
	Rate     float64 // below 0: the configured rate
	Priority int32
	Operator string
	Time     schemas.Micros
}

// Pack implements packed.Row.
func (l *limit) Pack(p *packed.Packer) {
	p.Version(1)
	packed.Float(p, &l.Rate)
	packed.Int(p, &l.Priority)
	packed.String(p, &l.Operator)
	packed.Int(p, &l.Time)
}

// scopes returns the scopes whose limits apply to a kind, the narrowest first.
func scopes(kind string) []string {
	parts := strings.SplitN(kind, "/", 3)
	list := []string{kind}
	for n := len(parts) - 1; n > 0; n-- {
		list = append(list, strings.Join(parts[:n], "/"))
	}
	return list
}

// limitOf returns the limit that applies to a kind.
func limitOf(limits map[string]limit, kind string, byDefault float64) limit {
	for _, scope := range scopes(kind) {
		l, ok := limits[scope]
		if !ok {
			continue
		}
		if l.Rate < 0 {
			l.Rate = byDefault
		}
		return l
	}
	return limit{Rate: byDefault}
}
