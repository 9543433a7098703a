package settings

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Bytes is a size. Its text form is 64MiB, 20GiB, or a number of bytes.
type Bytes int64

// units are the units of sizes, largest first.
var units = []struct {
	name  string
	bytes Bytes
}{{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}}

// String returns the size in the largest unit of which it is a multiple.
func (b Bytes) String() string {
	for _, u := range units {
		if b != 0 && b%u.bytes == 0 {
			return fmt.Sprintf("%d%s", b/u.bytes, u.name)
		}
	}
	return strconv.FormatInt(int64(b), 10)
}

// ParseBytes parses the text form of a size.
func ParseBytes(text string) (Bytes, error) {
	factor := Bytes(1)
	for _, u := range units {
		if number, ok := strings.CutSuffix(text, u.name); ok {
			text, factor = number, u.bytes
		}
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n > math.MaxInt64/int64(factor) || n < math.MinInt64/int64(factor) {
		return 0, errors.New("want a size such as 64MiB")
	}
	return Bytes(n) * factor, nil
}

// MarshalYAML implements yaml.Marshaler.
func (b Bytes) MarshalYAML() (any, error) {
	return &yaml.Node{Kind: yaml.ScalarNode, Value: b.String()}, nil
}

// UnmarshalYAML implements yaml.Unmarshaler. It accepts any integer of YAML, and the text form of a size.
func (b *Bytes) UnmarshalYAML(n *yaml.Node) (err error) {
	if n.ShortTag() == "!!int" {
		return n.Decode((*int64)(b))
	}
	if *b, err = ParseBytes(n.Value); err != nil {
		return &yaml.TypeError{Errors: []string{fmt.Sprintf("line %d: %q: %v", n.Line, n.Value, err)}}
	}
	return nil
}
