package schemas

import (
	"bytes"
	"strings"
	"testing"
)

// A dead letter of a record of any length can be encoded, and states the truncation.
func TestDeadLetter_Cut(t *testing.T) {
	long := bytes.Repeat([]byte{'x'}, 3<<20)
	for _, c := range []struct {
		name       string
		key, value []byte
		cut        bool
	}{
		{"none", nil, nil, false},
		{"maximum length", []byte("user:1"), long[:MaxRecordBytes], false},
		{"a long value", []byte("user:1"), long, true},
		{"a long key", long, nil, true},
		{"both", long, long, true},
	} {
		l := &DeadLetter{Reason: "bad", Key: c.key, Value: c.value}
		l.Cut()
		kept := len(l.Key) + len(l.Value)
		if c.cut != strings.Contains(l.Reason, "bytes are kept") || !c.cut && kept != len(c.key)+len(c.value) || kept > MaxDeadLetterBytes-64<<10 {
			t.Errorf("%s: %d bytes, reason %q", c.name, kept, l.Reason)
		}
		if !bytes.HasPrefix(c.key, l.Key) || !bytes.HasPrefix(c.value, l.Value) || c.cut && kept < MaxRecordBytes/2 {
			t.Errorf("%s: kept are %d bytes of the key, %d of the value", c.name, len(l.Key), len(l.Value))
		}
	}
}
