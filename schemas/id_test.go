package schemas

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
)

func TestParseID(t *testing.T) {
	long := "pin:" + strings.Repeat("a", MaxIDBytes-4)
	tests := []struct{ name, id, want string }{ // want: part of the error, "" for none
		{"user", "user:7", ""},
		{"pin", "pin:241294492511762325", ""},
		{"board", "board:9", ""},
		{"interest with a space", "interest:mid century", ""},
		{"colons in the name", "user:a:b:", ""},
		{"beyond ASCII", "user:münchen☃", ""},
		{"maximum length", long, ""},
		{"one byte longer", long + "a", "257 bytes, at most 256"},
		{"empty", "", "empty"},
		{"no kind", "7", `not of the form "kind:name"`},
		{"empty kind", ":7", `not of the form "kind:name"`},
		{"no name", "pin:", "no name"},
		{"unknown kind", "video:7", "unknown kind"},
		{"kind in another case", "Pin:7", "unknown kind"},
		{"line feed", "pin:7\n", "control character at byte 5"},
		{"zero", "pin:\x007", "control character at byte 4"},
		{"DEL", "pin:\x7f", "control character at byte 4"},
		{"C1", "pin:\u0085", "control character at byte 4"},
		{"not UTF-8", "pin:\xff", "not UTF-8"},
	}
	for _, tt := range tests {
		got, err := ParseID(tt.id)
		switch {
		case tt.want == "" && (err != nil || string(got) != tt.id):
			t.Errorf("%s: got %q, %v, want the id itself", tt.name, got, err)
		case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
			t.Errorf("%s: got %q, %v, want an error with %q", tt.name, got, err, tt.want)
		}
	}
}

func TestParseID_OfKind(t *testing.T) {
	parsers := map[string]func(string) error{
		"user":     func(s string) error { _, err := ParseUserID(s); return err },
		"pin":      func(s string) error { _, err := ParsePinID(s); return err },
		"board":    func(s string) error { _, err := ParseBoardID(s); return err },
		"interest": func(s string) error { _, err := ParseInterestID(s); return err },
		"followee": func(s string) error { _, err := ParseFollowee(s); return err },
	}
	takes := map[string][]string{"followee": {"user", "board", "interest"}}
	for name, parse := range parsers {
		for _, kind := range []string{"user", "pin", "board", "interest"} {
			want := name == kind || strings.Contains(strings.Join(takes[name], " "), kind)
			expect.Equal(t, parse(kind+":1") == nil, want, "%s takes a %s", name, kind)
		}
		expect.Error(t, parse(""), "empty", "%s of an empty id", name)
	}
}

func TestID_KindAndName(t *testing.T) {
	for _, tt := range []struct{ id, kind, name string }{
		{"user:7", "user", "7"}, {"user:a:b", "user", "a:b"}, {"", "", ""}, {"7", "", ""}, {":7", "", "7"},
	} {
		expect.Equal(t, [2]string{ID(tt.id).Kind(), ID(tt.id).Name()}, [2]string{tt.kind, tt.name}, "%q: kind and name", tt.id)
	}
}

func TestFollowee_Source(t *testing.T) {
	for f, want := range map[Followee]Source{"user:1": Following, "board:1": Following, "interest:1": FromInterest} {
		expect.Equal(t, f.Source(), want, "%s", f)
	}
}

func TestShardedID_RoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		shard := rapid.Uint32Range(0, MaxShard).Draw(t, "shard")
		typ := rapid.Uint32Range(0, MaxType).Draw(t, "type")
		local := rapid.Uint64Range(0, MaxLocal).Draw(t, "local")
		id := must.Get(MakeShardedID(shard, typ, local))(t)
		again := must.Get(ParseShardedID(id.String()))(t)
		expect.Equal(t, again, id, "parsed")
		if s, ty, l := again.Split(); s != shard || ty != typ || l != local {
			t.Fatalf("got %d, %d, %d, want %d, %d, %d", s, ty, l, shard, typ, local)
		}
	})
}

func TestShardedID_RejectsInvalidText(t *testing.T) {
	for _, s := range []string{"", "x", "-1", "+1", "01", " 1", "1.0", "1e3", "4611686018427387904", "18446744073709551616"} {
		expect.Fails(t, expect.ErrorOf(ParseShardedID(s)), "%q", s)
	}
	parts := []struct {
		shard, typ uint32
		local      uint64
	}{{MaxShard + 1, 0, 0}, {0, MaxType + 1, 0}, {0, 0, MaxLocal + 1}}
	for _, p := range parts {
		expect.Fails(t, expect.ErrorOf(MakeShardedID(p.shard, p.typ, p.local)), "%+v", p)
	}
}
