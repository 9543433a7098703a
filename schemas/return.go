package schemas

// Return says that a user is here, though nothing may have been shown. Topic returns, key: User.
type Return struct {
	User UserID `avro:"user" json:"user"`
	Time Micros `avro:"time" json:"time"` // of the visit
}
