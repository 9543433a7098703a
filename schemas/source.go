package schemas

import "errors"

// Source is the origin of a candidate. A pool holds one user's candidates of one source.
type Source string

// The built-in sources. Any other name on the topic candidates is an external source.
const (
	Following    Source = "following" // a followed user or board published it
	FromInterest Source = "interest"  // a followed interest published it
	Related      Source = "related"   // neighbor of a pin that the user acted on
	FromPopular  Source = "popular"   // one of the most popular recent pins of all users
	Explore      Source = "explore"   // only in responses: picked by the exploration rule
)

// reservedSources are the names that external systems must not use.
const reservedSources = string(Following + "|" + FromInterest + "|" + FromPopular + "|" + Explore)

// CheckOffered returns an error unless the source is a valid name for candidates of external systems. The names following,
// interest, popular and explore are reserved.
func (s Source) CheckOffered() error { return checkOffered(string(s)) }

func checkOffered(source string) error {
	if source != "" && contains(reservedSources, source) {
		return errors.New("reserved name: " + source)
	}
	return checkText(source, MaxSourceBytes)
}
