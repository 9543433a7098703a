package schemas

// Version is a state of a pin, as objects numbers them: strictly increasing for a pin, equal to the event time in
// microseconds unless two accepted events share it. The highest version of a pin wins wherever two meet.
type Version int64

// PinVersion is what everybody downstream of objects needs to know of one version of a pin.
type PinVersion struct {
	Pin     PinID   `avro:"pin" json:"pin"`
	Version Version `avro:"version" json:"version"`
	Facets
	Created Micros  `avro:"created" json:"created"` // of the earliest create, not of this version
	Quality float64 `avro:"quality" json:"quality"` // > 0, 1 by default
	Deleted bool    `avro:"deleted" json:"deleted"` // of the pin, for good
}

// Publication brings a version of a pin to one followee, the record's key: a current or a former author, board or
// interest of the pin. A followee that is not among the facets any more is told so by this.
type Publication struct {
	Followee Followee `avro:"followee" json:"followee"`
	PinVersion
	// Replayed says that the quality was worked out again, see Replay: the place among the followee's publications is all
	// that changes, nobody is brought anything.
	Replayed bool `avro:"replayed" json:"replayed"`
}
