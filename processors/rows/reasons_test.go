package rows

import (
	"fmt"
	"strings"
	"testing"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
)

func TestKinds_OmitVaryingParts(t *testing.T) {
	t.Parallel()
	k := newKinds()
	for _, c := range []struct{ name, reason, want string }{
		{"constant", "empty owner", "empty owner"},
		{"quoted", `key "pin:3": want the record's "pin:4"`, `key …: want the record's …`},
		{"quote in a quote", `source "a\"b" is not one`, `source … is not one`},
		{"quote without an end", `key "pin:3`, `key …`},
		{"numbers", "quality -1.5e-09: from 0 to 1", "quality …: from … to …"},
		{"long", strings.Repeat("ä", 150), strings.Repeat("ä", 100)},
		{"cut inside a rune", "x" + strings.Repeat("ä", 150), "x" + strings.Repeat("ä", 99)},
	} {
		expect.NoDiff(t, k.of(c.reason), c.want, "%s", c.name)
	}
}

func TestReasons_AreBounded(t *testing.T) {
	t.Parallel()
	var r reasons
	expect.NoDiff(t, r.snapshot(), nil, "no counts")
	want := map[string]int64{otherReason: 40}
	for i := range maxReasons + 20 {
		reason := fmt.Sprint("reason ", i)
		if i < maxReasons {
			want[reason] = 2
		}
		r.count(reason)
	}
	for i := range maxReasons + 20 {
		r.count(fmt.Sprint("reason ", i))
	}
	expect.NoDiff(t, r.snapshot(), want, "counts by reason")
}
