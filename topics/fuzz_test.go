package topics_test

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// FuzzHeaders parses arbitrary headers. A header that parses encodes to the same bytes.
func FuzzHeaders(f *testing.F) {
	f.Add(topics.OriginHeader, topics.OriginValue(1))
	f.Add(topics.RetryHeader, topics.Retry{Group: "objects", Partition: 1, Offset: 2, Attempt: 3}.Value())
	f.Add(topics.RetryHeader, []byte("\xff\xff\xff\xff\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01g"))
	f.Fuzz(func(t *testing.T, key string, value []byte) {
		r := &kgo.Record{Headers: []kgo.RecordHeader{{Key: key, Value: value}}}
		if since, ok := topics.ParseOrigin(value); ok && key == topics.OriginHeader && topics.OriginTime(r) != since {
			t.Errorf("origin header %x is read as %d", value, topics.OriginTime(r))
		}
		retry, ok := topics.RetryOf(r)
		expect.False(t, ok && !bytes.Equal(retry.Value(), value), "retry header %x is encoded as %x", value, retry.Value())
		if ok && (retry.Partition < 0 || retry.Offset < 0 || retry.Attempt < 1 || retry.Group == "") {
			t.Errorf("retry header %x is parsed as %+v", value, retry)
		}
	})
}

// FuzzKindOf checks that the kind of a dead letter is short and deterministic for any reason.
func FuzzKindOf(f *testing.F) {
	f.Add(`decode: "a \"quoted\" b" at 17`)
	f.Add(strings.Repeat("word ", 100))
	f.Fuzz(func(t *testing.T, reason string) {
		kind := topics.KindOf(&schemas.DeadLetter{Topic: "pins", Group: "objects", Reason: reason})
		words, ours := strings.CutPrefix(kind, "pins/objects/")
		if !ours || words == "" || len(words) > 200 || !utf8.ValidString(words) || strings.ContainsAny(words, "0123456789/\"") {
			t.Errorf("%q is of kind %q", reason, kind)
		}
	})
}
