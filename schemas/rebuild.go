package schemas

// Rebuild asks for a user's pools anew: the candidates that followees brought are taken away, and every followee is asked
// for what it has. Topic rebuilds, key: User. To rebuild twice changes nothing more.
type Rebuild struct {
	User   UserID `avro:"user" json:"user"`
	Source Source `avro:"source" json:"source"` // Following, FromInterest, or "" for both
	Run    string `avro:"run" json:"run"`       // names the command that asked
	Keep   bool   `avro:"keep" json:"keep"`     // nothing is taken away: the followees are asked alone
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
