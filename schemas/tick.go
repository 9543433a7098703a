package schemas

// Tick wakes up a partition of a group that has a due timer. Topics <group>-ticks, sent to a partition.
type Tick struct {
	Time Micros `avro:"time" json:"time"`
}
