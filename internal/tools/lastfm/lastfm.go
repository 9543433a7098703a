// Package lastfm converts the HetRec 2011 Last.fm set (https://grouplens.org/datasets/hetrec-2011, "hetrec2011-lastfm-2k")
// into events, and imports them. The set contains the listening counts, tags and friends of 1,892 users.
//
//	users    every user of any file: `update`, at the start of 2005
//	pins     every (user, artist) with a tag: pin:<user>-<artist> `create` by the user, on the board
//	         board:<user>-<smallest tag>, in interest:<tag> for each tag ascending, titled with the artist's name, at the
//	         day of the earliest tag, 00:00 UTC
//	follows  every row of the friends: user:<user> follows user:<friend>; and every user follows the interests of its
//	         three most frequent tags (ties: smaller id), undated rows counted too; all at the start of 2005
//	actions  every row of the listening counts: `save` from 1000 on, else `click`, of the pin of that artist by the
//	         author with the smallest id other than the user, one per second in file order from 2011-06-01 00:00 UTC
//
// The import skips and counts tag rows dated outside 2005-08-01 … 2011-05-31, and listening rows of an artist that no
// other user tagged. Event ids depend only on the rows (lastfm/pin/2-52). Therefore a second import has the same events,
// and no effect.
//
// Read reads the files into memory and checks every line. With the real set, the importing process peaks at 80 MB. The
// import shifts the times of the events, so the set can end now instead of in 2011.
package lastfm

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// SaveWeight is the smallest listening count that becomes a save instead of a click.
const SaveWeight = 1000

// favorites is the number of most frequent tags that a user follows.
const favorites = 3

// Times of the set: of rows without a date and of the first action, in seconds since 1970; and the range of tag dates, in
// days since 1970.
const (
	secondsADay = 24 * 60 * 60
	beginning   = 1_104_537_600               // 2005-01-01
	listening   = 1_306_886_400               // 2011-06-01
	firstDay    = 1_122_854_400 / secondsADay // 2005-08-01
	lastDay     = listening/secondsADay - 1   // 2011-05-31
)

// Dataset is the set in memory.
type Dataset struct {
	users     []int32          // ascending
	friends   []friendship     // in file order
	favorites []favorite       // by user, most frequent first
	pins      []pin            // by day, newest first, then user, artist
	actions   []action         // in file order
	artists   map[int32]artist // by id
	skipped   Skipped
}

// Skipped counts the rows without an event, by reason.
type Skipped struct {
	Undated int `json:"undated"` // tag rows dated outside 2005-08-01 … 2011-05-31
	NoPin   int `json:"no_pin"`  // listening rows of an artist that no other user tagged
}

// Counts holds the number of events per stream, and the skipped rows.
type Counts struct {
	Users   int     `json:"users"`
	Follows int     `json:"follows"`
	Pins    int     `json:"pins"`
	Actions int     `json:"actions"`
	Skipped Skipped `json:"skipped"`
}

// Counts returns the counts of the set.
func (d *Dataset) Counts() Counts {
	return Counts{
		Users:   len(d.users),
		Follows: len(d.friends) + len(d.favorites),
		Pins:    len(d.pins),
		Actions: len(d.actions),
		Skipped: d.skipped,
	}
}

// LastAction returns the time of the last action, before any shift. Without actions, it returns the start of the
// listening times.
func (d *Dataset) LastAction() time.Time {
	if len(d.actions) == 0 {
		return utc(listening)
	}
	return d.actions[len(d.actions)-1].time()
}

// ShiftTo returns the shift that moves the last action to last.
func (d *Dataset) ShiftTo(last time.Time) time.Duration { return last.Sub(d.LastAction()) }

type (
	artist     struct{ name, link string }
	friendship struct{ user, friend int32 }
	favorite   struct{ user, tag int32 }
	pinKey     struct{ user, artist int32 }

	pin struct {
		pinKey
		day  int32   // the earliest, in days since 1970-01-01
		tags []int32 // ascending
	}

	listen struct{ row, user, artist, weight int32 }

	action struct {
		listen
		author int32 // of the pin
	}
)

func (a action) time() time.Time { return utc(listening + int64(a.row)) }

func utc(seconds int64) time.Time { return time.Unix(seconds, 0).UTC() }

// gathered collects the rows of the files.
type gathered struct {
	artists map[int32]artist
	users   map[int32]bool
	tagged  map[int32]map[int32]int // number of rows by user and tag
	pins    map[pinKey]*pin
	friends []friendship
	listens []listen
	undated int
}

func (g *gathered) dataset() *Dataset {
	d := &Dataset{
		users:   slices.Sorted(maps.Keys(g.users)),
		friends: g.friends,
		pins:    g.sortedPins(),
		artists: g.artists,
	}
	for _, user := range d.users {
		for _, tag := range mostFrequent(g.tagged[user], favorites) {
			d.favorites = append(d.favorites, favorite{user, tag})
		}
	}
	d.actions = g.actions()
	d.skipped = Skipped{Undated: g.undated, NoPin: len(g.listens) - len(d.actions)}
	return d
}

func (g *gathered) sortedPins() []pin {
	pins := make([]pin, 0, len(g.pins))
	for _, p := range g.pins {
		slices.Sort(p.tags)
		pins = append(pins, *p)
	}
	slices.SortFunc(pins, func(a, b pin) int {
		return cmp.Or(cmp.Compare(b.day, a.day), cmp.Compare(a.user, b.user), cmp.Compare(a.artist, b.artist))
	})
	return pins
}

// actions finds the pin of each listening row.
func (g *gathered) actions() []action {
	authors := map[int32][]int32{} // by artist
	for key := range g.pins {
		authors[key.artist] = append(authors[key.artist], key.user)
	}
	for _, users := range authors {
		slices.Sort(users)
	}
	actions := make([]action, 0, len(g.listens))
	for _, l := range g.listens {
		if author, ok := firstOther(authors[l.artist], l.user); ok {
			actions = append(actions, action{listen: l, author: author})
		}
	}
	return actions
}

// firstOther returns the first of the ascending users who is not user.
func firstOther(users []int32, user int32) (int32, bool) {
	for _, u := range users {
		if u != user {
			return u, true
		}
	}
	return 0, false
}

// mostFrequent returns the n tags with the highest counts. Ties are ordered by smaller id.
func mostFrequent(counts map[int32]int, n int) []int32 {
	tags := slices.SortedFunc(maps.Keys(counts), func(a, b int32) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
	return tags[:min(n, len(tags))]
}
