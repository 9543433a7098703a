package generation

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"
)

// MarkHeader is the header of a mark, which is a record without key and value. Any producer can write the header; see
// Record.Confirms. Its value is Mark.Value.
const MarkHeader = "cut-over"

// Mark names the generation of a group that emits from the next record of a partition on.
type Mark struct {
	Group  string
	Number int
	Token  string // Record.Token
}

// Value returns the value of MarkHeader: group/number/token.
func (m Mark) Value() []byte { return fmt.Appendf(nil, "%s/%d/%s", m.Group, m.Number, m.Token) }

// ParseMark parses a value of MarkHeader. It returns false if the value is malformed.
func ParseMark(value []byte) (m Mark, ok bool) {
	parts := strings.SplitN(string(value), "/", 3)
	if len(parts) != 3 {
		return m, false
	}
	number, err := strconv.Atoi(parts[1])
	return Mark{Group: parts[0], Number: number, Token: parts[2]}, err == nil
}

// IsMark reports whether a record has the form of a mark: no key, no value, and the header. A record with a key or a value is an
// ordinary record with any headers.
func IsMark(r *kgo.Record) bool {
	isHeader := func(h kgo.RecordHeader) bool { return h.Key == MarkHeader }
	return len(r.Key) == 0 && r.Value == nil && slices.ContainsFunc(r.Headers, isHeader)
}
