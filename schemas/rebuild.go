package schemas

// Rebuild requests a rebuild of a user's pools: pools deletes the candidates that followees delivered, and requests a
// backfill from every followee. Topic rebuilds, key: User. Repeating a rebuild has no further effect. A Rebuild with Tell
// is sent by pools itself. It continues the notification of a user's followees if there are more than one record may
// notify.
type Rebuild struct {
	User   UserID `avro:"user" json:"user"`
	Source Source `avro:"source" json:"source"` // Following, FromInterest, or "" for both
	Run    string `avro:"run" json:"run"`       // identifies the command that requested the rebuild
	Keep   bool   `avro:"keep" json:"keep"`     // no candidates are deleted: followees are only asked for backfills

	Tell  bool     `avro:"tell" json:"tell,omitempty"`   // only sends Away and Asked to the next followees of Source
	After Followee `avro:"after" json:"after,omitempty"` // for Tell: the followee notified last; "": none
	Away  bool     `avro:"away" json:"away,omitempty"`   // for Tell: see EdgeMode
	Asked Micros   `avro:"asked" json:"asked,omitempty"` // for Tell: see EdgeMode
}

// CheckRebuilt returns a *BadRecordError for a source whose candidates followees do not deliver.
func (s Source) CheckRebuilt() error {
	switch s {
	case "", Following, FromInterest:
		return nil
	}
	return badf("source %s: want %s or %s, whose candidates followees deliver", quote(string(s)), Following, FromInterest)
}
