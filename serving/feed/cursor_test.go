package feed

import (
	"bytes"
	"encoding/base64"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/schemas"
)

func testCursors() cursors { return cursors{key: []byte("0123456789abcdef")} }

func TestCursor_RoundTrip(t *testing.T) {
	c := testCursors()
	for _, want := range []feedCursor{
		{user: viewer, feed: "home", below: 1},
		{user: viewer, feed: "", below: math.MaxInt64},
		{user: "user:\U0001f600" + viewer, feed: "plain", below: -1},
	} {
		got := must.Get(c.openFeed(c.sealFeed(want), want.user))(t)
		expect.Equal(t, got, want, "cursor")
	}
	const place = "17/pin:1"
	expect.Equal(t, must.Get(c.openList(c.sealList("board:1", place), "board:1"))(t), place, "openList")
}

func TestCursor_OpensLongest(t *testing.T) {
	c := testCursors()
	longest := strings.Repeat("x", schemas.MaxIDBytes)
	followee := schemas.Followee(longest)
	must.Get(c.openList(c.sealList(followee, "-9223372036854775808/"+longest), followee))(t)
}

func TestCursor_RejectsInvalid(t *testing.T) {
	c := testCursors()
	good := c.sealFeed(feedCursor{user: viewer, feed: "home", below: 5})
	raw := must.Get(base64.RawURLEncoding.DecodeString(good))(t)
	foreign := cursors{key: []byte("another key, as long")}
	for name, text := range map[string]string{
		"empty":                            "",
		"not base64":                       "%%%",
		"short":                            "AQ",
		"huge":                             strings.Repeat("A", 1<<20),
		"cursor of another user":           c.sealFeed(feedCursor{user: "user:other", feed: "home", below: 5}),
		"cursor of a list":                 c.sealList("user:viewer", "x"),
		"another kind with as many fields": c.seal(listKind, string(viewer), "home", "5"),
		"signed with another key":          foreign.sealFeed(feedCursor{user: viewer, feed: "home", below: 5}),
		"padded":                           good + "=",
		"trailing bytes":                   good + "AAAA",
		"fields missing":                   c.seal(feedKind, string(viewer)),
		"position is not a number":         c.seal(feedKind, string(viewer), "home", "five"),
		"standard base64": base64.RawStdEncoding.EncodeToString(
			append([]byte{0xff, 0xff, 0xff}, raw...)),
	} {
		expect.Is(t, expect.ErrorOf(c.openFeed(text, viewer)), ErrBadCursor, "%s", name)
	}
	for i := range raw {
		forged := bytes.Clone(raw)
		forged[i] ^= 1
		expect.Is(t, expect.ErrorOf(c.openFeed(base64.RawURLEncoding.EncodeToString(forged), viewer)), ErrBadCursor, "byte %d changed", i)
	}
	list := c.sealList("board:1", "x")
	expect.Is(t, expect.ErrorOf(c.openList(list, "board:2")), ErrBadCursor, "another list")
}

// A cursor of another version is rejected even if its mac is correct, because its fields may have another meaning. A cursor
// of this version that is built in the same way opens.
func TestCursor_RejectsOtherVersions(t *testing.T) {
	c := testCursors()
	at := feedCursor{user: viewer, feed: "home", below: 5}
	sealed := must.Get(base64.RawURLEncoding.DecodeString(c.sealFeed(at)))(t)
	for version, want := range map[byte]error{0: ErrBadCursor, cursorVersion: nil, cursorVersion + 1: ErrBadCursor, 255: ErrBadCursor} {
		body := append([]byte{version}, sealed[1:len(sealed)-macBytes]...)
		text := base64.RawURLEncoding.EncodeToString(append(body, c.mac(body)...))
		if got, err := c.openFeed(text, viewer); !errors.Is(err, want) || want == nil && got != at {
			t.Errorf("version %d: got %+v, %v, want %v", version, got, err, want)
		}
	}
}

func FuzzOpenCursor(f *testing.F) {
	c := testCursors()
	f.Add(c.sealFeed(feedCursor{user: viewer, feed: "home", below: 5}))
	f.Add("")
	f.Fuzz(func(t *testing.T, text string) {
		at, err := c.openFeed(text, viewer)
		expect.False(t, err == nil && c.sealFeed(at) != text, "%q opens as %+v, which is sealed as another text", text, at)
		expect.True(t, err == nil || errors.Is(err, ErrBadCursor), "got %v, want %v", err, ErrBadCursor)
	})
}

func FuzzSplit(f *testing.F) {
	f.Add([]byte{1, 'a', 0, 2, 'b', 'c'})
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01})
	f.Fuzz(func(t *testing.T, b []byte) {
		fields, ok := split(b)
		if n := len(strings.Join(fields, "")); ok && n > len(b) {
			t.Errorf("%d bytes of fields from %d", n, len(b))
		}
	})
}

func TestLoadKey(t *testing.T) {
	file := filepath.Join(t.TempDir(), "cursor.key")
	keys := make([][]byte, 8)
	var loaders sync.WaitGroup
	for i := range keys {
		loaders.Go(func() {
			var err error
			keys[i], err = LoadKey(file)
			expect.Error(t, err, "", "LoadKey")
		})
	}
	loaders.Wait()
	for i := range keys {
		expect.True(t, len(keys[i]) == 32 && bytes.Equal(keys[i], keys[0]), "loader %d got %x, the first %x", i, keys[i], keys[0])
	}
	expect.Equal(t, must.Get(os.Stat(file))(t).Mode().Perm(), 0o600, "mode")
	expect.Equal(t, len(must.Get(os.ReadDir(filepath.Dir(file)))(t)), 1, "files: only the key")
	must.OK(t, os.WriteFile(file, []byte("short"), 0o600))
	expect.Error(t, expect.ErrorOf(LoadKey(file)), "holds 5 bytes: want at least 16", "a short key")
	expect.Error(t, expect.ErrorOf(LoadKey(filepath.Join(file, "below a file"))), "not a directory", "an impossible place")
}
