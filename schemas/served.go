package schemas

// Served says what a visit showed: the new items in their order, and all else the generator must remember. Topic
// served, key: User. Published and acknowledged before the answer leaves; the ID makes a repeat harmless.
type Served struct {
	ID    string       `avro:"id" json:"id"`
	User  UserID       `avro:"user" json:"user"`
	Time  Micros       `avro:"time" json:"time"`
	Feed  string       `avro:"feed" json:"feed"`
	Items []ServedItem `avro:"items" json:"items"`
	Memory
	Arm     string  `avro:"arm" json:"arm,omitempty"`         // the feed whose rules were tried on this user instead of Feed's; "": none
	Expired []PinID `avro:"expired" json:"expired,omitempty"` // were deferred for too long: candidates no more
}

// Memory is what the generator remembers of a user from one visit to the next, as it stands after a Served.
type Memory struct {
	Mix      map[string]float64 `avro:"mix" json:"mix,omitempty"`           // impressions by source, with their decay
	Draws    int64              `avro:"draws" json:"draws,omitempty"`       // chunks for which lots were drawn: the seed of the next
	Began    Micros             `avro:"began" json:"began,omitempty"`       // when the session began
	Visited  Micros             `avro:"visited" json:"visited,omitempty"`   // the newest visit of the session
	Weak     int64              `avro:"weak" json:"weak,omitempty"`         // weak items that the session was shown
	Best     map[string]float64 `avro:"best" json:"best,omitempty"`         // the best score that each source offered to the session
	Deferred []Deferred         `avro:"deferred" json:"deferred,omitempty"` // held back, the longest deferred first
}

// Deferred is a candidate that is held back for a later session.
type Deferred struct {
	Pin   PinID  `avro:"pin" json:"pin"`
	Since Micros `avro:"since" json:"since"` // the visit that deferred it
}

// ServedItem is one new item of a visit.
type ServedItem struct {
	Pin    PinID  `avro:"pin" json:"pin"`
	Source Source `avro:"source" json:"source"`
	Facets
	Score   float64 `avro:"score" json:"score"`     // the generator's
	Created Micros  `avro:"created" json:"created"` // of the pin
	// Pool is the source of the pool that an item of Explore was drawn from, by which it may be shown later. "": of any other
	// item, and of items of former builds, of which it is not known.
	Pool Source `avro:"pool" json:"pool,omitempty"`
}

// MaxEncodedBytes returns an upper bound of the bytes of the item in an encoded record: those of its strings, at most three
// for the length of each, and 32 for its numbers and its list.
func (i *ServedItem) MaxEncodedBytes() int {
	const length, rest = 3, 32
	n := rest + len(i.Pin) + len(i.Source) + len(i.Author) + len(i.Board) + len(i.Pool) + 5*length
	for _, id := range i.Interests {
		n += len(id) + length
	}
	return n
}
