package retries

import (
	"crypto/sha256"
	"encoding/binary"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// letter is the state of a dead letter, without its bytes. It is stored as JSON: there are few dead letters, and people read
// them.
type letter struct {
	Partition int32              `json:"partition"` // of the record that failed first, like Offset
	Offset    int64              `json:"offset"`
	Group     string             `json:"group"`
	Kind      string             `json:"kind"`
	Reason    string             `json:"reason"`
	State     schemas.RetryState `json:"state"`
	Attempts  int32              `json:"attempts"`
	Why       string             `json:"why,omitempty"`
	Since     schemas.Micros     `json:"since"`
	Due       schemas.Micros     `json:"due,omitempty"`   // waiting: when it is retried; sent: when it counts as done
	To        int32              `json:"to,omitempty"`    // the partition to which it is published
	Bytes     int                `json:"bytes,omitempty"` // of its key and value, while it waits
	Sum       uint64             `json:"sum,omitempty"`   // of its key and value, see sumOf; 0: written by an earlier release
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

func (l *letter) id() []byte { return makeID(l.Partition, l.Offset, l.Group) }

// sumOf returns a hash of a dead letter's key and value, which is never 0.
func sumOf(l *schemas.DeadLetter) uint64 {
	sum := sha256.Sum256(slices.Concat(binary.AppendUvarint(nil, uint64(len(l.Key))), l.Key, l.Value))
	return max(binary.BigEndian.Uint64(sum[:]), 1)
}

// repeats reports whether l can be about the same record as known. On a public topic, any producer can set the retry header
// on its own record and name another record as the one that failed first.
func repeats(known *letter, l *schemas.DeadLetter) bool {
	return known.Sum == 0 || known.Sum == sumOf(l) && l.Attempts <= known.Attempts+1
}

// isNews reports whether a dead letter says something that is not known. A producer may publish the same dead letter twice.
func isNews(known *letter, l *schemas.DeadLetter) bool {
	switch {
	case known == nil || l.Attempts > known.Attempts || !repeats(known, l):
		return true
	case l.Attempts < known.Attempts:
		return false
	}
	return known.State == schemas.RetrySent || known.State == schemas.RetryDone
}

// Reasons why a dead letter is parked.
const (
	whyTried = "it was tried as often as is allowed"
	whyTopic = "its topic takes no retries"
	whyLong  = "it is too long to be kept"
	whyEmpty = "there is nothing in it"
	whyRoom  = "too many others wait"
)

// never returns why this group can never retry a dead letter, or "" if it can.
func (g *group) never(l *schemas.DeadLetter) string {
	t, ok := g.topics[l.Topic]
	switch {
	case !ok || !g.takes(l.Topic, t.RetryTo(l)):
		return whyTopic
	case len(l.Key)+len(l.Value) > topics.MaxRetriedBytes:
		return whyLong
	case len(l.Key)+len(l.Value) == 0: // for example, the dead letter of a batch that cannot be decoded
		return whyEmpty
	}
	return ""
}

// takes reports whether dead letters can be published to a partition of a topic.
func (g *group) takes(topic string, partition int32) bool {
	t, ok := g.topics[topic]
	return ok && partition >= 0 && partition < t.Partitions
}

// pace is the time at which a rate limit next allows a retry. It is the generic cell rate algorithm (ITU-T I.371), with a
// burst of one second's worth of retries.
type pace schemas.Micros

// open reports whether a retry is allowed now.
func (p pace) open(now schemas.Micros) bool { return p <= pace(now) }

// went returns the pace after a retry. rate is in retries per second, above 0.
func (p pace) went(now schemas.Micros, rate float64) pace {
	return max(p, pace(now)-pace(time.Second/time.Microsecond)) + pace(math.Round(1e6/rate))
}

func micros(d time.Duration) schemas.Micros { return schemas.Micros(d / time.Microsecond) }

// limit is the rate limit that an operator set for a scope. It is stored as JSON.
type limit struct {
	Rate     float64        `json:"rate"` // below 0: as configured
	Priority int32          `json:"priority"`
	Operator string         `json:"operator"`
	Time     schemas.Micros `json:"time"`
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
