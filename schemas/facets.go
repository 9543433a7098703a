package schemas

import "errors"

// Source is the origin of a candidate. A pool holds one user's candidates of one source.
type Source string

// The built-in sources. Any other name on the topic candidates is an external source.
const (
	Following    Source = "following" // a followed user or board published it
	FromInterest Source = "interest"  // a followed interest published it
	Related      Source = "related"   // neighbor of a pin that the user acted on
	Explore      Source = "explore"   // only in responses: picked by the exploration rule
)

// CheckOffered returns an error if external systems may not offer candidates of a source with this name. The names
// following, interest and explore are reserved.
func (s Source) CheckOffered() error {
	switch s {
	case Following, FromInterest, Explore:
		return errors.New("the name is taken: " + string(s))
	}
	return checkText(string(s), MaxSourceBytes)
}

// Facets are the ids that determine who receives a pin and who it is hidden from.
type Facets struct {
	Author    UserID       `avro:"author" json:"author,omitempty"`
	Board     BoardID      `avro:"board" json:"board,omitempty"` // "" for none
	Interests []InterestID `avro:"interests" json:"interests,omitempty"`
}
