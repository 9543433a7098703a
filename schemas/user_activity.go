package schemas

// UserActivity reports that a user visited, even if nothing was shown. Topic user-activity, key: User.
type UserActivity struct {
	User UserID `avro:"user" json:"user"`
	Time Micros `avro:"time" json:"time"` // time of the visit
}
