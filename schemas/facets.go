package schemas

import "errors"

// Source is where a candidate came from. A pool is one user's candidates of one source.
type Source string

// The sources of the pipeline itself. Any other name on the topic candidates is a source of its own.
const (
	Following    Source = "following" // a followed user or board published it
	FromInterest Source = "interest"  // a followed interest published it
	Related      Source = "related"   // neighbour of a pin the user acted on
	Explore      Source = "explore"   // only in answers: picked by the exploration rule
)

// CheckOffered returns what is wrong with the name of a source that others offer candidates of: any name will do but
// those that the pipeline's own rules give a meaning, following, interest and explore.
func (s Source) CheckOffered() error {
	switch s {
	case Following, FromInterest, Explore:
		return errors.New("the name is taken: " + string(s))
	}
	return checkText(string(s), MaxSourceBytes)
}

// Facets are the ids by which a pin reaches people, and by which it is hidden from them.
type Facets struct {
	Author    UserID       `avro:"author" json:"author,omitempty"`
	Board     BoardID      `avro:"board" json:"board,omitempty"` // "" for none
	Interests []InterestID `avro:"interests" json:"interests,omitempty"`
}
