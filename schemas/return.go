package schemas

// Return reports that a user visited, even if nothing was shown. Topic returns, key: User.
type Return struct {
	User UserID `avro:"user" json:"user"`
	Time Micros `avro:"time" json:"time"` // time of the visit
}
