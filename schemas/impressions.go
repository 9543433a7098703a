package schemas

import "iter"

// Impressions report to objects and interests which pins of one partition a visit showed. Topic impressions, produced to
// that partition explicitly, without a key. Older versions wrote one record per pin, which reads as a record without More.
type Impressions struct {
	User UserID `avro:"user" json:"user"`
	Time Micros `avro:"time" json:"time"`
	ShownPin
	More []ShownPin `avro:"more" json:"more,omitempty"`
}

// ShownPin is a pin and its source.
type ShownPin struct {
	Pin    PinID  `avro:"pin" json:"pin"`
	Source Source `avro:"source" json:"source"`
}

// Add adds a pin. The zero Impressions has none.
func (i *Impressions) Add(shown ShownPin) {
	if i.Pin == "" {
		i.ShownPin = shown
		return
	}
	i.More = append(i.More, shown)
}

// All returns an iterator over the pins, in the order in which they were added.
func (i *Impressions) All() iter.Seq[ShownPin] {
	return func(yield func(ShownPin) bool) {
		if i.Pin == "" || !yield(i.ShownPin) {
			return
		}
		for _, shown := range i.More {
			if !yield(shown) {
				return
			}
		}
	}
}
