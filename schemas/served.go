package schemas

// Served records the new items of a visit, in order, and the state of the generator for the user. Topic served, key: User. It
// is published and acknowledged before the response is sent. A repeat with the same ID has no effect.
type Served struct {
	ID    string       `avro:"id" json:"id"`
	User  UserID       `avro:"user" json:"user"`
	Time  Micros       `avro:"time" json:"time"`
	Feed  string       `avro:"feed" json:"feed"`
	Items []ServedItem `avro:"items" json:"items"`
	Memory
	// Arm is the experiment arm: the feed whose rules replaced Feed's for this user; "": none.
	Arm     string  `avro:"arm" json:"arm,omitempty"`
	Expired []PinID `avro:"expired" json:"expired,omitempty"` // deferred for too long: no longer candidates
	// ReportWithin is the time after Time, in microseconds, within which a client must report an item, or it is no longer seen; 0: all items
	// remain seen.
	ReportWithin int64 `avro:"reportWithin" json:"reportWithin,omitempty"`
	// Logged is the record for the topic visit-log; nil: the user is not sampled.
	Logged *LoggedVisit `avro:"logged" json:"logged,omitempty"`
}

// Memory is the state of the generator for a user between visits, as of a Served.
type Memory struct {
	Mix      map[string]float64   `avro:"mix" json:"mix,omitempty"`           // decayed impressions by source
	Draws    int64                `avro:"draws" json:"draws,omitempty"`       // number of chunks with random draws: seed of the next
	Began    Micros               `avro:"began" json:"began,omitempty"`       // start of the session
	Visited  Micros               `avro:"visited" json:"visited,omitempty"`   // newest visit of the session
	Weak     int64                `avro:"weak" json:"weak,omitempty"`         // weak items that the session showed
	Best     map[string]RankScore `avro:"best" json:"best,omitempty"`         // best score per source in the session
	Deferred []Deferred           `avro:"deferred" json:"deferred,omitempty"` // deferred candidates, the longest deferred first
}

// Deferred is a candidate that is deferred to a later session.
type Deferred struct {
	Pin   PinID  `avro:"pin" json:"pin"`
	Since Micros `avro:"since" json:"since"` // time of the visit that deferred it
}

// ServedItem is one new item of a visit.
type ServedItem struct {
	Pin       PinID  `avro:"pin" json:"pin"`
	Source    Source `avro:"source" json:"source"`
	Facets    `avro:"facets"`
	RankScore RankScore `avro:"score" json:"score"`     // the generator's score
	Created   Micros    `avro:"created" json:"created"` // creation time of the pin
	// Pool is the source of the pool that an item of Explore was taken from. It determines the item's visibility. It is ""
	// for any other item, and unknown ("") for items of older versions.
	Pool Source `avro:"pool" json:"pool,omitempty"`
}

// MaxEncodedBytes returns an upper bound of the bytes of the item in an encoded record. The numbers and the lengths of its
// strings take at most 32 bytes.
func (i *ServedItem) MaxEncodedBytes() int {
	return 32 + len(i.Pin) + len(i.Source) + len(i.Pool) + i.maxEncodedBytes()
}
