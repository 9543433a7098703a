package schemas

// HotPin is the total number of impressions and saves of a pin. Topic hot-pins, key: Pin. A later record replaces the
// earlier one. A tombstone means that the pin had no impression or save for a long time, or was deleted.
type HotPin struct {
	Pin         PinID  `avro:"pin" json:"pin"`
	Author      UserID `avro:"author" json:"author"` // "" if the pin is unknown
	Impressions int64  `avro:"impressions" json:"impressions"`
	Saves       int64  `avro:"saves" json:"saves"` // may exceed Impressions: pins are also saved elsewhere
}
