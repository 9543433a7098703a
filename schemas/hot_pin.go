package schemas

// HotPin says how often a pin was shown and saved so far. Topic hot-pins, key: Pin; a later record replaces the earlier,
// and one without a value says that nothing has happened to the pin for long.
type HotPin struct {
	Pin         PinID  `avro:"pin" json:"pin"`
	Author      UserID `avro:"author" json:"author"` // "" if the pin is not known
	Impressions int64  `avro:"impressions" json:"impressions"`
	Saves       int64  `avro:"saves" json:"saves"` // may be more: pins are saved elsewhere, too
}
