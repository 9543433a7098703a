package schemas

// Replay processes an event of a pin again by the current scoring rules: it recomputes the quality, and with it the place
// among the followees' publications. Nothing else of the pin changes, and no action or impression is counted again. Topic
// replays, key: Pin. Repeating a replay has no further effect.
type Replay struct {
	Pin    PinID  `avro:"pin" json:"pin"`
	Event  []byte `avro:"event" json:"event"`   // value of the record of the topic pins
	Source Source `avro:"source" json:"source"` // Following or FromInterest: only the followees of that source; "": all
}
