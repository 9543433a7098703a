// Package schemas defines every record of the pipeline as a Go type and as its Avro schema, the ids in records, and the
// validation of input events.
//
// Each noun has one file per form: pin.go has PinEvent and its Validate method, and avsc/pin.avsc has its schema. To add a
// field, add it to both, with a default in the schema. A test compares them, and Registry.Register rejects a schema that
// cannot read the existing records of the topic. A record that several schemas contain, like Facets, has its own file, and the
// others refer to it by its name.
//
// Serde converts records to bytes and back, in Confluent framing. It does not trust bytes: before decoding, it checks the
// whole body against its schema, in time and memory bounded by the length of the body. A record that fails is a
// *BadRecordError, which the pipeline sends to the dead-letter topic. Any other error means that the registry is
// unavailable.
//
// Line and ParseLine implement the JSON form of input events. The functions that read bytes check the form. Validate checks
// the meaning (ids, verbs, times, sizes) and reports all problems of an event at once.
package schemas
