package schemas

// PinAttributes is the data of a pin that features need. Topic pin-attributes, key: Pin. The highest version wins. A deleted
// pin has no data.
type PinAttributes struct {
	Pin     PinID   `avro:"pin" json:"pin"`
	Version Version `avro:"version" json:"version"`
	Deleted bool    `avro:"deleted" json:"deleted,omitempty"` // the pin is deleted permanently
	Facets
	Attributes map[string]string `avro:"attributes" json:"attributes,omitempty"`
	Embedding  []float32         `avro:"embedding" json:"embedding,omitempty"` // empty: none
}
