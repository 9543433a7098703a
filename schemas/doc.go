// Package schemas is what is said: every record of the pipeline as a Go type and as the Avro schema it travels in, the
// ids that records name things by, and what makes an event from outside acceptable.
//
// A noun is a file in each form: pin.go has PinEvent and its Validate, avsc/pin.avsc its schema. To add a field, add it
// to both, with a default in the schema; a test compares them, and Registry.Register refuses a schema that can not read
// what is in the topic already.
//
// Serde takes records to bytes and back, in Confluent framing. Bytes are not trusted: each body is checked whole against
// its schema, in time and memory bounded by its length, before anything is made of it. What fails is a *BadRecordError,
// which the pipeline sends to the dead letters; any other error means that the registry could not be asked.
//
// Line and ParseLine are the JSON form of the events from outside. Form is checked where bytes are read; meaning (ids,
// verbs, times, sizes) by Validate, which tells all problems of an event at once.
package schemas
