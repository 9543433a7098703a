package schemas

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/smartfeed/smartfeed/internal/convert"
)

// ID is any typed id, "kind:name": the object of an event, a followee, or an owner of rows. It has at most MaxIDBytes bytes
// of UTF-8 and no control characters; see ParseID.
type ID string

// UserID is the id of a user, "user:…".
type UserID string

// PinID is the id of a pin, "pin:…".
type PinID string

// BoardID is the id of a board, "board:…". The empty BoardID means "on no board".
type BoardID string

// InterestID is the id of an interest, "interest:…".
type InterestID string

// Followee is the id of something that can be followed: a user, a board or an interest.
type Followee string

// MaxIDBytes is the maximum length of an id, including kind and colon.
const MaxIDBytes = 256

// The kinds of ids.
const (
	KindUser     = "user"
	KindPin      = "pin"
	KindBoard    = "board"
	KindInterest = "interest"
)

// ParseID validates an id of any kind: "user:", "pin:", "board:" or "interest:", followed by a name of at least one byte,
// together at most MaxIDBytes bytes of UTF-8 without control characters (C0, DEL, C1). A name may contain anything else,
// including colons and spaces. An error quotes at most the first 64 bytes of the id.
func ParseID(s string) (ID, error) {
	if err := checkText(s, MaxIDBytes); err != nil {
		return "", fmt.Errorf("id %s: %w", quote(s), err)
	}
	id := ID(s)
	switch id.Kind() {
	case KindUser, KindPin, KindBoard, KindInterest:
	case "":
		return "", fmt.Errorf(`id %s: not of the form "kind:name"`, quote(s))
	default:
		return "", fmt.Errorf("id %s: unknown kind; known are user, pin, board, interest", quote(s))
	}
	if id.Name() == "" {
		return "", fmt.Errorf("id %s: no name", quote(s))
	}
	return id, nil
}

// Kind returns the part before the first colon, or "" if there is no colon.
func (id ID) Kind() string {
	kind, _, ok := strings.Cut(string(id), ":")
	if !ok {
		return ""
	}
	return kind
}

// Name returns the part after the first colon, or "" if there is no colon.
func (id ID) Name() string {
	_, name, _ := strings.Cut(string(id), ":")
	return name
}

// parseKind validates an id whose kind is one of kinds, which are separated by "|".
func parseKind(s, kinds string) error {
	id, err := ParseID(s)
	if err != nil {
		return err
	}
	if !contains(kinds, id.Kind()) {
		return fmt.Errorf("id %s: want %s:…", quote(s), strings.ReplaceAll(kinds, "|", ", "))
	}
	return nil
}

// ParseUserID validates a user's id as ParseID does.
func ParseUserID(s string) (UserID, error) { return typed[UserID](s, KindUser) }

// ParsePinID validates a pin's id as ParseID does.
func ParsePinID(s string) (PinID, error) { return typed[PinID](s, KindPin) }

// ParseBoardID validates a board's id as ParseID does. It rejects the empty BoardID.
func ParseBoardID(s string) (BoardID, error) { return typed[BoardID](s, KindBoard) }

// ParseInterestID validates an interest's id as ParseID does.
func ParseInterestID(s string) (InterestID, error) { return typed[InterestID](s, KindInterest) }

// ParseFollowee validates the id of a user, a board or an interest as ParseID does.
func ParseFollowee(s string) (Followee, error) {
	return typed[Followee](s, KindUser+"|"+KindBoard+"|"+KindInterest)
}

// Strings returns ids, or texts of another type, as strings.
func Strings[T ~string](list []T) []string {
	return convert.All(list, func(text T) string { return string(text) })
}

func typed[T ~string](s, kinds string) (T, error) {
	if err := parseKind(s, kinds); err != nil {
		return "", err
	}
	return T(s), nil
}

// Source returns the source of the followee's publications: Following for a user or a board, FromInterest for an interest.
func (f Followee) Source() Source {
	if ID(f).Kind() == KindInterest {
		return FromInterest
	}
	return Following
}

// checkText checks a string that is used in keys, rows and addresses: its length in bytes, UTF-8, no control characters.
func checkText(s string, maxBytes int) error {
	if s == "" {
		return errors.New("empty")
	}
	if err := checkMultiline(s, maxBytes); err != nil {
		return err
	}
	if i := strings.IndexFunc(s, unicode.IsControl); i >= 0 {
		return fmt.Errorf("control character at byte %d", i)
	}
	return nil
}

// checkMultiline checks the length of a text in bytes, and UTF-8. The text may be empty and contain control characters.
func checkMultiline(s string, maxBytes int) error {
	switch {
	case len(s) > maxBytes:
		return fmt.Errorf("%d bytes, at most %d are allowed", len(s), maxBytes)
	case !utf8.ValidString(s):
		return errText
	}
	return nil
}

// quote quotes untrusted input for a message, truncated to 64 bytes.
func quote(s string) string {
	const limit = 64
	if len(s) > limit {
		return fmt.Sprintf("%q…", s[:limit])
	}
	return fmt.Sprintf("%q", s)
}
