package schemas

// Rebuild asks for a user's pools anew: the candidates that followees brought are taken away, and every followee is asked
// for what it has. Topic rebuilds, key: User. To rebuild twice changes nothing more. One with Tell is the pools' own: the rest
// of what a user's followees are to be told, where they are more than one record may tell.
type Rebuild struct {
	User   UserID `avro:"user" json:"user"`
	Source Source `avro:"source" json:"source"` // Following, FromInterest, or "" for both
	Run    string `avro:"run" json:"run"`       // names the command that asked
	Keep   bool   `avro:"keep" json:"keep"`     // nothing is taken away: the followees are asked alone

	Tell  bool     `avro:"tell" json:"tell,omitempty"`   // the next followees of Source are told Away and Asked, and nothing else is done
	After Followee `avro:"after" json:"after,omitempty"` // of a Tell, the followee told last; "": none was
	Away  bool     `avro:"away" json:"away,omitempty"`   // of a Tell, see EdgeMode
	Asked Micros   `avro:"asked" json:"asked,omitempty"` // of a Tell, see EdgeMode
}

// CheckRebuilt fails for a source whose candidates no followee brings.
func (s Source) CheckRebuilt() error {
	switch s {
	case "", Following, FromInterest:
		return nil
	}
	return Bad("source " + quote(string(s)) + ": only what followees bring can be asked for again: " +
		string(Following) + " and " + string(FromInterest))
}
