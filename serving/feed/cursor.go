package feed

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"

	"github.com/smartfeed/smartfeed/internal/packed"
	"github.com/smartfeed/smartfeed/internal/secure"
	"github.com/smartfeed/smartfeed/schemas"
)

// A cursor is the base64url encoding of
//
//	version 1 byte, kind 1 byte, fields (each its length as a varint, then its bytes), mac 16 bytes
//
// The mac is the HMAC-SHA256 of all preceding bytes, truncated to 128 bits. A cursor that this service did not issue is an
// ErrBadCursor.
const (
	cursorVersion = 1
	feedKind      = 'f' // user, feed, below
	listKind      = 'l' // followee, place
	macBytes      = 16
	minKey        = 16
	// maxCursor is above the longest possible cursor: three fields of at most 300 bytes, in base64.
	maxCursor   = 2048
	maxFeedName = 64
)

// cursors signs and verifies cursors with one key.
type cursors struct{ key []byte }

// feedCursor is a place in a user's materialized feed. math.MaxInt64 is above every position.
type feedCursor struct {
	user  schemas.UserID
	feed  string // the named feed of the visit
	below int64
}

func (c cursors) sealFeed(at feedCursor) string {
	return c.seal(feedKind, string(at.user), at.feed, strconv.FormatInt(at.below, 10))
}

// openFeed verifies a cursor that was issued to user.
func (c cursors) openFeed(text string, user schemas.UserID) (feedCursor, error) {
	fields, err := c.open(text, feedKind, 3)
	if err != nil {
		return feedCursor{}, err
	}
	if fields[0] != string(user) {
		return feedCursor{}, fmt.Errorf("%w: of another user", ErrBadCursor)
	}
	below, err := strconv.ParseInt(fields[2], 10, 64)
	if err != nil {
		return feedCursor{}, fmt.Errorf("%w: %w", ErrBadCursor, err)
	}
	return feedCursor{user: user, feed: fields[1], below: below}, nil
}

// sealList returns a cursor for a place in a followee's list, as the store names it.
func (c cursors) sealList(followee schemas.Followee, place string) string {
	return c.seal(listKind, string(followee), place)
}

// openList verifies a cursor of followee's list, and returns its place.
func (c cursors) openList(text string, followee schemas.Followee) (place string, err error) {
	fields, err := c.open(text, listKind, 2)
	if err != nil {
		return "", err
	}
	if fields[0] != string(followee) {
		return "", fmt.Errorf("%w: of another list", ErrBadCursor)
	}
	return fields[1], nil
}

func (c cursors) seal(kind byte, fields ...string) string {
	b := []byte{cursorVersion, kind}
	for _, f := range fields {
		b = packed.AppendText(b, f)
	}
	return base64.RawURLEncoding.EncodeToString(append(b, c.mac(b)...))
}

// open verifies a cursor and returns its n fields.
func (c cursors) open(text string, kind byte, n int) ([]string, error) {
	if len(text) > maxCursor {
		return nil, fmt.Errorf("%w: %d bytes", ErrBadCursor, len(text))
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(raw) < 2+macBytes || strings.ContainsAny(text, "\r\n") { // the decoder ignores line breaks
		return nil, fmt.Errorf("%w: damaged", ErrBadCursor)
	}
	body, mac := raw[:len(raw)-macBytes], raw[len(raw)-macBytes:]
	if !hmac.Equal(mac, c.mac(body)) {
		return nil, fmt.Errorf("%w: damaged or forged", ErrBadCursor)
	}
	fields, ok := split(body[2:])
	if body[0] != cursorVersion || body[1] != kind || !ok || len(fields) != n {
		return nil, fmt.Errorf("%w: for another call", ErrBadCursor)
	}
	return fields, nil
}

func (c cursors) mac(body []byte) []byte {
	h := hmac.New(sha256.New, c.key)
	h.Write(body)
	return h.Sum(nil)[:macBytes]
}

// split splits b into its fields.
func split(b []byte) (fields []string, ok bool) {
	r := packed.NewReader(b)
	for r.More() {
		fields = append(fields, packed.Text[string](r))
	}
	return fields, r.End() == nil
}

// LoadKey returns the cursor key in the file. If the file does not exist, LoadKey creates it with 32 random bytes; see
// secure.LoadOrCreate.
func LoadKey(file string) ([]byte, error) {
	random := make([]byte, 32)
	_, _ = rand.Read(random) // never fails
	key, _, err := secure.LoadOrCreate(file, random)
	if err != nil {
		return nil, fmt.Errorf("load cursor key: %w", err)
	}
	if len(key) < minKey {
		return nil, fmt.Errorf("load cursor key: %s holds %d bytes: want at least %d", file, len(key), minKey)
	}
	return key, nil
}
