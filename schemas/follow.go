package schemas

// FollowEvent is a record of the topic follows: follow, unfollow, block or unblock. Key: the followee.
type FollowEvent struct {
	Event
}
