package schemas

import (
	"encoding/json"
	"time"
)

// List is a list of an answer. JSON encodes a nil List as [], not as null.
type List[T any] []T

// MarshalJSON implements json.Marshaler.
func (l List[T]) MarshalJSON() ([]byte, error) {
	if l == nil {
		return []byte("[]"), nil
	}
	return json.Marshal([]T(l))
}

// Timestamp is a time of an answer. JSON encodes it as RFC 3339 text, of the nearest time that has one; see Micros.Writable.
type Timestamp Micros

// Time returns the time in UTC.
func (t Timestamp) Time() time.Time { return Micros(t).Time() }

// MarshalJSON implements json.Marshaler.
func (t Timestamp) MarshalJSON() ([]byte, error) { return Micros(t).Writable().Time().MarshalJSON() }

// UnmarshalJSON implements json.Unmarshaler. It floors the time to microseconds.
func (t *Timestamp) UnmarshalJSON(text []byte) error {
	var at time.Time
	err := at.UnmarshalJSON(text)
	*t = Timestamp(MicrosOf(at))
	return err
}
