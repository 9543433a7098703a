package schemas

// PinAttributes are the attributes of a pin that joins and features need and its card does not have. Topic pin-attributes,
// key: Pin. The highest version wins. For a deleted pin they are empty.
type PinAttributes struct {
	Pin        PinID             `avro:"pin" json:"pin"`
	Version    Version           `avro:"version" json:"version"`
	Attributes map[string]string `avro:"attributes" json:"attributes,omitempty"`
	Embedding  []float32         `avro:"embedding" json:"embedding,omitempty"` // empty: none
}
