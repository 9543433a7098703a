package schemas

// DeletedUser is a permanently deleted user. Topic users-deleted, compacted, key: User. Every process holds it as a global
// table.
type DeletedUser struct {
	User UserID `avro:"user" json:"user"`
	Time Micros `avro:"time" json:"time"`
}
