package schemas

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

// First returns where the record lies in the letter's topic that failed first, of which this one is a retry.
func (l *DeadLetter) First() (partition int32, offset int64) {
	if l.Attempts == 0 {
		return l.Partition, l.Offset
	}
	return l.FirstPartition, l.FirstOffset
}
