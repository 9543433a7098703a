package schemas

// FollowEvent is a record of the topic follows: follow, unfollow, block or unblock. Key: the followee.
type FollowEvent struct {
	Event
}

func (e *FollowEvent) visit(v fieldVisitor) {
	verbs := textBounds{values: "follow|unfollow|block|unblock"}
	e.Event.visit(v, textBounds{kinds: KindUser}, verbs, KindUser+"|"+KindBoard+"|"+KindInterest)
}
