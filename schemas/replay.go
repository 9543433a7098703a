package schemas

// Replay has an event of a pin worked off again, for what the rules of scores make of it: quality, and with it the place
// among what followees publish. Nothing else of the pin changes, and no action or impression is counted again. Topic
// replays, key: Pin. To replay an event twice changes nothing more.
type Replay struct {
	Pin    PinID  `avro:"pin" json:"pin"`
	Event  []byte `avro:"event" json:"event"`   // the value of the record of the topic pins
	Source Source `avro:"source" json:"source"` // Following, FromInterest: only the followees of that source; "": all
	Run    string `avro:"run" json:"run"`       // names the command that asked
	Pass   int32  `avro:"pass" json:"pass"`     // of the run, from 1
	Offset int64  `avro:"offset" json:"offset"` // of the event in its partition of pins
}
