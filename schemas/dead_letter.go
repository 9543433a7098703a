package schemas

import "fmt"

// DeadLetter is a record that could not be worked off, with its bytes and the reason. Topic dead-letters, key: the
// topic it came from. One that was retried and has failed again is another letter, which names the same first record.
type DeadLetter struct {
	Topic     string `avro:"topic" json:"topic"`
	Partition int32  `avro:"partition" json:"partition"`
	Offset    int64  `avro:"offset" json:"offset"`
	Group     string `avro:"group" json:"group"` // who could not work it off
	Reason    string `avro:"reason" json:"reason"`
	Time      Micros `avro:"time" json:"time"` // arrival of the record
	Key       []byte `avro:"key" json:"key"`
	Value     []byte `avro:"value" json:"value"`

	Attempts       int32 `avro:"attempts" json:"attempts"` // retries before this failure
	FirstPartition int32 `avro:"firstPartition" json:"-"`  // of the record that failed first; see First
	FirstOffset    int64 `avro:"firstOffset" json:"-"`
}

// Cut keeps of the longest records as much as a letter has room for, and says so in the reason. What is longer than
// MaxRecordBytes can be read by nobody, so nothing is lost by it that trying again could bring.
func (l *DeadLetter) Cut() {
	const most = MaxDeadLetterBytes * 3 / 4
	whole := len(l.Key) + len(l.Value)
	if whole <= most {
		return
	}
	l.Key = l.Key[:min(len(l.Key), most/2)]
	l.Value = l.Value[:min(len(l.Value), most-len(l.Key))]
	l.Reason += fmt.Sprintf(" (the first %d of %d bytes are kept)", len(l.Key)+len(l.Value), whole)
}

// First returns where the record lies in the letter's topic that failed first, of which this one is a retry.
func (l *DeadLetter) First() (partition int32, offset int64) {
	if l.Attempts == 0 {
		return l.Partition, l.Offset
	}
	return l.FirstPartition, l.FirstOffset
}
