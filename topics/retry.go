package topics

import (
	"encoding/binary"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/smartfeed/smartfeed/schemas"
)

// RetryHeader is the header of a record that is published again because a group could not process it, see Retry.
const RetryHeader = "retry"

// Retry identifies the original record of a retried one, and the group that retries it, see IsForAnother.
type Retry struct {
	Group     string
	Partition int32 // of the first failed record
	Offset    int64
	Attempt   int32 // 1 is the first retry
}

// Value returns the value of a retry header: partition, offset, attempt, big-endian, and the group.
func (r Retry) Value() []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(r.Partition))
	b = binary.BigEndian.AppendUint64(b, uint64(r.Offset))
	b = binary.BigEndian.AppendUint32(b, uint32(r.Attempt))
	return append(b, r.Group...)
}

// maxGroupBytes bounds the name of a group in a retry header.
const maxGroupBytes = 249

// ParseRetry reads the value of a retry header. It reports false for a value that Value does not return, and for a group
// name of more than 249 bytes.
func ParseRetry(value []byte) (Retry, bool) {
	const fixed = 4 + 8 + 4
	if len(value) <= fixed || len(value) > fixed+maxGroupBytes {
		return Retry{}, false
	}
	r := Retry{
		Partition: int32(binary.BigEndian.Uint32(value)), Offset: int64(binary.BigEndian.Uint64(value[4:])),
		Attempt: int32(binary.BigEndian.Uint32(value[12:])), Group: string(value[fixed:]),
	}
	return r, r.Partition >= 0 && r.Offset >= 0 && r.Attempt > 0
}

// IsForAnother reports whether a reader skips a retry of the topic. It does if the retry is for another group, because the
// reader has processed the original record already. Two kinds of topics have no such records:
//
//   - Topics that producers write. Any producer can set the header, and each of these topics has one reader.
//   - Compacted topics. The retry replaces the failed record, so a reader that reads the topic again finds only the retry.
//     The readers of these topics are idempotent.
func (r Retry) IsForAnother(topic, reader string) bool {
	return r.Group != reader && !retriedForAll()[topic]
}

// retriedForAll returns the topics of the catalogue whose retries every reader processes.
var retriedForAll = sync.OnceValue(func() map[string]bool {
	set := map[string]bool{}
	for _, t := range Catalogue(Profile{}) {
		set[t.Name] = t.Compact || slices.Contains(t.Writers, Producers)
	}
	return set
})

// RetryOf returns the record's retry header, if it has one.
func RetryOf(r *kgo.Record) (Retry, bool) { return ParseRetry(header(r, RetryHeader)) }

// NewDeadLetter returns the dead letter for a record that a group cannot process. Package rows builds its own.
func NewDeadLetter(group string, r *kgo.Record, reason string) *schemas.DeadLetter {
	deadLetter := &schemas.DeadLetter{
		Topic: r.Topic, Partition: r.Partition, Offset: r.Offset,
		Group: group, Reason: reason, Time: schemas.MicrosOf(r.Timestamp), Key: r.Key, Value: r.Value,
	}
	if retry, ok := RetryOf(r); ok {
		deadLetter.Attempts, deadLetter.FirstPartition, deadLetter.FirstOffset = retry.Attempt, retry.Partition, retry.Offset
	}
	deadLetter.Cut()
	return deadLetter
}

// RetriedGroup is the consumer group whose committed offsets are the position up to which operators have retried dead letters.
const RetriedGroup = "dead-letters"

// MaxRetriedBytes bounds key and value together of a dead letter that is retried automatically. A larger one can only be
// retried by hand.
const MaxRetriedBytes = 512 << 10

// CanRetry reports whether records of the topic can be retried. Private bytes of a group, such as ticks, and records of the
// topics that control retries cannot.
func (t Topic) CanRetry() bool {
	return t.Record != "" && t.Name != DeadLetters && t.Name != RetryOrders
}

// RetryTo returns the partition into which a dead letter of the topic is published again: the partition of its key or, if
// the writer chooses partitions, the original one.
func (t Topic) RetryTo(l *schemas.DeadLetter) int32 {
	if t.Explicit {
		return l.Partition
	}
	return PartitionBytes(ownerOf(l.Key), t.Partitions)
}

const (
	maxKindWords = 6
	maxKindWord  = 24 // bytes
)

var (
	quotedPattern = regexp.MustCompile(`(?s)"(?:\\.|[^"\\])*(?:"|\\?$)`) // a backslash escapes the next character
	wordPattern   = regexp.MustCompile(`[A-Za-z0-9_]+`)
)

// KindOf returns the kind of a dead letter: topic/group/words. The words are the first words of its reason, without the
// parts that differ between records: quoted text, numbers, and words that contain a digit.
func KindOf(l *schemas.DeadLetter) string {
	var words []string
	for _, word := range wordPattern.FindAllString(quotedPattern.ReplaceAllString(l.Reason, " "), -1) {
		if strings.ContainsAny(word, "0123456789") || len(word) > maxKindWord {
			continue
		}
		if words = append(words, strings.ToLower(word)); len(words) == maxKindWords {
			break
		}
	}
	if len(words) == 0 {
		words = []string{"other"}
	}
	return l.Topic + "/" + l.Group + "/" + strings.Join(words, "-")
}
