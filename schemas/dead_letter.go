package schemas

// DeadLetter is a record that could not be worked off, with its bytes and the reason. Topic dead-letters, key: the
// topic it came from.
type DeadLetter struct {
	Topic     string `avro:"topic" json:"topic"`
	Partition int32  `avro:"partition" json:"partition"`
	Offset    int64  `avro:"offset" json:"offset"`
	Group     string `avro:"group" json:"group"` // who could not work it off
	Reason    string `avro:"reason" json:"reason"`
	Time      Micros `avro:"time" json:"time"` // arrival of the record
	Key       []byte `avro:"key" json:"key"`
	Value     []byte `avro:"value" json:"value"`
}
