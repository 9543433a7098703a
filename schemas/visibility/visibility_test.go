package visibility

import (
	"testing"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/schemas"
)

type deletedUsers map[schemas.UserID]bool

func (d deletedUsers) Has(user schemas.UserID) bool { return d[user] }

// Each case changes what hides or justifies a pin by user:author on board:b with the interests x and y. The reader is user:me,
// and follows only what the case says.
func TestViewer_Hides(t *testing.T) {
	const me, author = schemas.UserID("user:me"), schemas.UserID("user:author")
	type ids []schemas.ID
	item := func(source, pool schemas.Source) Edges {
		return ShownEdges(&schemas.ServedItem{Source: source, Pool: pool})
	}
	candidate := CandidateEdges
	for name, c := range map[string]struct {
		needed                     Edges
		follows, blocks, blockedBy ids
		deletedUser                schemas.UserID
		noUser                     bool // the viewer has no user id
		expired, seenTrimmed       schemas.Micros
		change                     func(p *Pin)
		want                       schemas.Reason
	}{
		"following, no edge":               {needed: candidate(schemas.Following), want: schemas.ReasonNoEdge},
		"following, author followed":       {needed: candidate(schemas.Following), follows: ids{"user:author"}},
		"following, board followed":        {needed: candidate(schemas.Following), follows: ids{"board:b"}},
		"following, interest followed":     {needed: candidate(schemas.Following), follows: ids{"interest:x"}, want: schemas.ReasonNoEdge},
		"interest, interest followed":      {needed: candidate(schemas.FromInterest), follows: ids{"interest:y"}},
		"interest, author followed":        {needed: candidate(schemas.FromInterest), follows: ids{"user:author", "board:b"}, want: schemas.ReasonNoEdge},
		"related, no edge":                 {needed: candidate(schemas.Related)},
		"external, no edge":                {needed: candidate("editors")},
		"no board, empty board not an id":  {needed: candidate("editors"), change: func(p *Pin) { p.Board = "" }},
		"shown as following, interest":     {needed: item(schemas.Following, ""), follows: ids{"interest:y"}},
		"shown as interest, author":        {needed: item(schemas.FromInterest, ""), follows: ids{"user:author"}},
		"shown as interest, no edge":       {needed: item(schemas.FromInterest, ""), follows: ids{"interest:z"}, want: schemas.ReasonNoEdge},
		"shown as related, no edge":        {needed: item(schemas.Related, "")},
		"shown as external, no edge":       {needed: item("editors", "")},
		"explored of following, no edge":   {needed: item(schemas.Explore, schemas.Following), want: schemas.ReasonNoEdge},
		"explored of following, interest":  {needed: item(schemas.Explore, schemas.Following), follows: ids{"interest:x"}},
		"explored of interest, author":     {needed: item(schemas.Explore, schemas.FromInterest), follows: ids{"user:author"}},
		"explored of related, no edge":     {needed: item(schemas.Explore, schemas.Related)},
		"explored of external, no edge":    {needed: item(schemas.Explore, "editors")},
		"author blocked, board followed":   {needed: candidate(schemas.Following), follows: ids{"board:b"}, blocks: ids{"user:author"}, want: schemas.ReasonBlock},
		"board blocked, author followed":   {needed: candidate(schemas.Following), follows: ids{"user:author"}, blocks: ids{"board:b"}, want: schemas.ReasonBlock},
		"interest blocked":                 {blocks: ids{"interest:y"}, want: schemas.ReasonBlock},
		"blocked by the author":            {blockedBy: ids{"user:author"}, want: schemas.ReasonBlock},
		"blocked by the followed author":   {follows: ids{"user:author"}, blockedBy: ids{"user:author"}, want: schemas.ReasonBlock},
		"blocked by a board's namesake":    {blockedBy: ids{"board:b"}},
		"others blocked":                   {blocks: ids{"user:z", "board:z", "interest:z"}, blockedBy: ids{"user:z"}},
		"deleted pin":                      {change: func(p *Pin) { p.Deleted = true }, want: schemas.ReasonDeleted},
		"deleted author":                   {deletedUser: author, want: schemas.ReasonAuthorDeleted},
		"another user deleted":             {deletedUser: "user:z"},
		"own pin":                          {follows: ids{"board:b"}, change: func(p *Pin) { p.Author = me }, want: schemas.ReasonOwn},
		"no author":                        {change: func(p *Pin) { p.Author = "" }},
		"no author, no user":               {noUser: true, change: func(p *Pin) { p.Author = "" }},
		"seen":                             {change: func(p *Pin) { p.Seen = true }, want: schemas.ReasonSeen},
		"as old as the expiry":             {expired: 100},
		"older than the expiry":            {expired: 101, want: schemas.ReasonExpired},
		"at the trim time":                 {seenTrimmed: 100},
		"before the trim time":             {seenTrimmed: 101, expired: 101, want: schemas.ReasonSeenTrimmed},
		"expired and deleted":              {expired: 101, deletedUser: author, want: schemas.ReasonExpired},
		"deleted, author deleted":          {deletedUser: author, change: func(p *Pin) { p.Deleted = true }, want: schemas.ReasonAuthorDeleted},
		"blocked, no edge":                 {needed: candidate(schemas.Following), blocks: ids{"user:author"}, want: schemas.ReasonBlock},
		"seen, no edge":                    {needed: candidate(schemas.Following), change: func(p *Pin) { p.Seen = true }, want: schemas.ReasonNoEdge},
		"before 1970, neither bound set":   {change: func(p *Pin) { p.Created = -1 }},
		"deleted pin of the viewer's own":  {change: func(p *Pin) { p.Author, p.Deleted = me, true }, want: schemas.ReasonDeleted},
		"followed board of a blocked user": {needed: item(schemas.Following, ""), follows: ids{"board:b"}, blocks: ids{"user:author"}, want: schemas.ReasonBlock},
	} {
		g := Graph{Follows: map[schemas.ID]float32{}, Blocks: map[schemas.ID]struct{}{}, BlockedBy: map[schemas.ID]struct{}{}}
		for _, id := range c.follows {
			g.Follows[id] = 1
		}
		for _, id := range c.blocks {
			g.Blocks[id] = struct{}{}
		}
		for _, id := range c.blockedBy {
			g.BlockedBy[id] = struct{}{}
		}
		v := NewViewer(me, g, deletedUsers{c.deletedUser: c.deletedUser != ""})
		if c.noUser {
			v.User = ""
		}
		if c.expired != 0 {
			v.Expired = c.expired
		}
		if c.seenTrimmed != 0 {
			v.SeenTrimmed = c.seenTrimmed
		}
		p := Pin{PinContent: schemas.PinContent{Created: 100, Facets: schemas.Facets{
			Author: author, Board: "board:b", Interests: []schemas.InterestID{"interest:x", "interest:y"},
		}}}
		if c.change != nil {
			c.change(&p)
		}
		expect.Equal(t, v.Hides(&p, c.needed), c.want, "%s", name)
	}
}
