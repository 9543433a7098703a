package schemas

// Version is the version number of a pin, which objects assigns. It is strictly increasing per pin, and equals the event
// time in microseconds unless two accepted events share it. The highest version of a pin wins.
type Version int64

// PinContent is the part of a pin's version that every stage from objects to the pools carries.
type PinContent struct {
	Facets  `avro:"facets"`
	Created Micros `avro:"created" json:"created"` // time of the earliest create, not of this version
	Deleted bool   `avro:"deleted" json:"deleted"` // the pin is deleted permanently
}

// PinVersion is one version of a pin as objects publishes it.
type PinVersion struct {
	Pin     PinID   `avro:"pin" json:"pin"`
	Version Version `avro:"version" json:"version"`
	PinContent
	Quality float64 `avro:"quality" json:"quality"` // > 0, 1 by default
}

// Publication publishes a version of a pin to one followee, the record's key: a current or former author, board or interest
// of the pin. For a followee that is not among the facets, it withdraws the pin.
type Publication struct {
	Followee Followee `avro:"followee" json:"followee"`
	PinVersion
	// Replayed reports that the quality was recomputed; see Replay. Only the place among the followee's publications
	// changes, and nothing is delivered.
	Replayed bool `avro:"replayed" json:"replayed"`
}
