package schemas

// ItemCounts are what all members did to one pin in one step of time. Topic item-features, key: Pin. A later record
// of the same pin and step replaces the earlier.
type ItemCounts struct {
	Pin    PinID            `avro:"pin" json:"pin"`
	Start  Micros           `avro:"start" json:"start"`   // a multiple of ItemStep; the step is [Start, Start+ItemStep)
	Counts map[string]int64 `avro:"counts" json:"counts"` // by verb, impressions under ImpressionCount
}

// ItemStep is the resolution of item features.
const ItemStep Micros = 5 * 60 * 1e6

// ImpressionCount is under which name ItemCounts counts how often the pin was shown. No verb may have it.
const ImpressionCount = "impression"
