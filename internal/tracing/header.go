package tracing

import (
	"encoding/hex"

	"go.opentelemetry.io/otel/trace"
)

// A header is version, trace, span, flags: 00-<32 hex digits>-<16>-<2>, all lower case. For a later version, only this
// part is read, as required by https://www.w3.org/TR/trace-context/#versioning-of-traceparent.
const (
	headerBytes = 2 + 1 + 32 + 1 + 16 + 1 + 2
	versionAt   = 0
	traceAt     = 3
	spanAt      = 36
	flagsAt     = 53
)

// Value returns the header of a span, or nil if the span context is invalid.
func Value(of trace.SpanContext) []byte {
	if !of.IsValid() {
		return nil
	}
	flags := of.TraceFlags() & trace.FlagsSampled
	return []byte("00-" + of.TraceID().String() + "-" + of.SpanID().String() + "-" + flags.String())
}

// Parse reads a header. It returns an invalid span context if the header is missing or malformed.
func Parse(value []byte) trace.SpanContext {
	if len(value) < headerBytes || value[2] != '-' || value[35] != '-' || value[52] != '-' {
		return trace.SpanContext{}
	}
	var version, flags [1]byte
	var id trace.TraceID
	var span trace.SpanID
	if !decode(version[:], value[versionAt:]) || !decode(id[:], value[traceAt:]) ||
		!decode(span[:], value[spanAt:]) || !decode(flags[:], value[flagsAt:]) {
		return trace.SpanContext{}
	}
	if version[0] == 0xff || version[0] == 0 && len(value) != headerBytes || len(value) > headerBytes && value[headerBytes] != '-' {
		return trace.SpanContext{}
	}
	return trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: id, SpanID: span, TraceFlags: trace.TraceFlags(flags[0]) & trace.FlagsSampled, Remote: true,
	})
}

// decode reads lower-case hex digits until out is full.
func decode(out, text []byte) bool {
	text = text[:2*len(out)]
	for _, c := range text {
		if c >= 'A' && c <= 'F' {
			return false
		}
	}
	_, err := hex.Decode(out, text)
	return err == nil
}
