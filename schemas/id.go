package schemas

// ID is any typed id, "kind:name": the object of an event, a followee, an owner of rows.
// At most MaxIDBytes bytes of UTF-8, no control characters; see ParseID.
type ID string

// UserID is the id of a person, "user:…".
type UserID string

// PinID is the id of the thing in a feed, "pin:…".
type PinID string

// BoardID is the id of a board, "board:…". The empty BoardID means "on no board".
type BoardID string

// InterestID is the id of an interest, "interest:…".
type InterestID string

// Followee is the id of what can be followed: a user, a board or an interest.
type Followee string
