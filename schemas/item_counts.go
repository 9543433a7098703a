package schemas

// ItemCounts are what all members did to one pin in one step of time. Topic item-features, key: Pin. A later record
// of the same pin and step replaces the earlier.
type ItemCounts struct {
	Pin    PinID            `avro:"pin" json:"pin"`
	Start  Micros           `avro:"start" json:"start"`             // a multiple of ItemStep; the step is [Start, Start+ItemStep)
	Counts map[string]int64 `avro:"counts" json:"counts"`           // by verb, impressions under ImpressionCount
	Actors Sketch           `avro:"actors" json:"actors,omitempty"` // who acted in the step; who was only shown the pin did not
	// Embedding is the decayed mean of the embeddings of those who acted on the pin of late, as of this record and
	// whatever its step. Empty: it has not changed, or nobody had one.
	Embedding []float32 `avro:"embedding" json:"embedding,omitempty"`
}

// ItemStep is the resolution of item features.
const ItemStep Micros = 5 * 60 * 1e6

// ImpressionCount is under which name ItemCounts counts how often the pin was shown. No verb may have it.
const ImpressionCount = "impression"
