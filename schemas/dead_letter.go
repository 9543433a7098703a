package schemas

import "fmt"

// DeadLetter is a record that could not be processed, with its bytes and the reason. Topic dead-letters, key: the topic
// that it came from. A retried record that fails again becomes another dead letter, which names the same first record.
type DeadLetter struct {
	Topic     string `avro:"topic" json:"topic"`
	Partition int32  `avro:"partition" json:"partition"`
	Offset    int64  `avro:"offset" json:"offset"`
	Group     string `avro:"group" json:"group"` // group that could not process it
	Reason    string `avro:"reason" json:"reason"`
	Time      Micros `avro:"time" json:"time"` // arrival of the record
	Key       []byte `avro:"key" json:"key"`
	Value     []byte `avro:"value" json:"value"`

	Attempts       int32 `avro:"attempts" json:"attempts"` // retries before this failure
	FirstPartition int32 `avro:"firstPartition" json:"-"`  // of the record that failed first; see First
	FirstOffset    int64 `avro:"firstOffset" json:"-"`
}

// Cut truncates the key and value of a record that is too long for a dead letter, and adds the lengths to the reason. No serde
// can read a record above MaxRecordBytes, so a retry would fail in any case.
func (l *DeadLetter) Cut() {
	const limit = MaxDeadLetterBytes * 3 / 4
	size := len(l.Key) + len(l.Value)
	if size <= limit {
		return
	}
	l.Key = l.Key[:min(len(l.Key), limit/2)]
	l.Value = l.Value[:min(len(l.Value), limit-len(l.Key))]
	l.Reason += fmt.Sprintf(" (the first %d of %d bytes are kept)", len(l.Key)+len(l.Value), size)
}

// First returns the partition and offset of the record that failed first, in the dead letter's topic. This dead letter may
// be of a retry of it.
func (l *DeadLetter) First() (partition int32, offset int64) {
	if l.Attempts == 0 {
		return l.Partition, l.Offset
	}
	return l.FirstPartition, l.FirstOffset
}
