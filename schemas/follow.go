package schemas

// FollowEvent is a record of the topic follows: follow, unfollow, block or unblock. Key: the followee.
type FollowEvent struct {
	Event
}

// Validate checks every field against its bounds; arrival is the record's timestamp. It returns nil, or one *BadRecordError
// that lists all problems.
func (e *FollowEvent) Validate(arrival Micros) error {
	var p problems
	e.check(&p, arrival, KindUser, KindBoard, KindInterest)
	e.checkActor(&p)
	e.checkVerb(&p, Follow, Unfollow, Block, Unblock)
	return p.err()
}
