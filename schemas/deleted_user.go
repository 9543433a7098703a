package schemas

// DeletedUser is a user who is gone for good. Topic users-deleted, compacted, key: User, held whole by everybody.
type DeletedUser struct {
	User UserID `avro:"user" json:"user"`
	Time Micros `avro:"time" json:"time"`
}
