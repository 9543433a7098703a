package schemas

// ItemCounts are all users' actions on one pin in one time step. Topic item-features, key: Pin. A later record of the same
// pin and step replaces the earlier one.
type ItemCounts struct {
	Pin    PinID            `avro:"pin" json:"pin"`
	Start  Micros           `avro:"start" json:"start"`             // a multiple of ItemStep; the step is [Start, Start+ItemStep)
	Counts map[string]int64 `avro:"counts" json:"counts"`           // by verb; impressions under ImpressionCount
	Actors Sketch           `avro:"actors" json:"actors,omitempty"` // actors in the step; impressions do not count
	// Embedding is the decayed mean of the embeddings of the pin's recent actors, as of this record, whatever its step. It
	// is empty if it has not changed, or if no actor has an embedding.
	Embedding []float32 `avro:"embedding" json:"embedding,omitempty"`
}

// ItemStep is the length of a time step of item features: 5 minutes.
const ItemStep Micros = 5 * 60 * 1e6

// ImpressionCount is the name under which ItemCounts counts impressions. A verb must not have this name.
const ImpressionCount = "impression"
