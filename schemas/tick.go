package schemas

// Tick wakes a group's partition, which has a timer that is due. Topics <group>-ticks, to a partition.
type Tick struct {
	Time Micros `avro:"time" json:"time"`
}
