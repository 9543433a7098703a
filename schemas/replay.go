package schemas

// Replay processes an event of a pin again by the current scoring rules: it recomputes the quality, and with it the place
// among the followees' publications. Nothing else of the pin changes, and no action or impression is counted again. Topic
// replays, key: Pin. Repeating a replay has no further effect.
type Replay struct {
	Pin    PinID  `avro:"pin" json:"pin"`
	Event  []byte `avro:"event" json:"event"`   // value of the record of the topic pins
	Source Source `avro:"source" json:"source"` // Following or FromInterest: only the followees of that source; "": all
	Run    string `avro:"run" json:"run"`       // identifies the command that requested the replay
	Pass   int32  `avro:"pass" json:"pass"`     // pass within the run, from 1
	Offset int64  `avro:"offset" json:"offset"` // offset of the event in its partition of pins
}
