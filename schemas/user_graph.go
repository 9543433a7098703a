package schemas

// UserGraph is what a user follows and blocks, and how many users follow the user.
type UserGraph struct {
	User      UserID         `json:"user"`
	Follows   List[Followed] `json:"follows"`   // highest weight first, then by id
	Following int            `json:"following"` // number of follows, including those that Follows omits
	Blocks    List[ID]       `json:"blocks"`    // by id
	Blocking  int            `json:"blocking"`  // number of blocks, including those that Blocks omits
	Followers int            `json:"followers"`
}

// Followed is a user, board or interest that a user follows.
type Followed struct {
	ID     ID      `json:"id"`
	Weight float32 `json:"weight"` // of the edge; 1 without actions on the followee's pins
}
