package schemas

// PinAttributes are what joins and features know of a pin beside its card. Topic pin-attributes, key: Pin. The highest
// version wins; of a deleted pin there is nothing left.
type PinAttributes struct {
	Pin        PinID             `avro:"pin" json:"pin"`
	Version    Version           `avro:"version" json:"version"`
	Attributes map[string]string `avro:"attributes" json:"attributes,omitempty"`
	Embedding  []float32         `avro:"embedding" json:"embedding,omitempty"` // empty: none
}
