package feature

import (
	"errors"
	"slices"
	"strings"

	"github.com/smartfeed/smartfeed/schemas"
)

// Path names a part of an enriched action: verb, object, actor, or a name below one of the three maps objectAttributes,
// actorAttributes and verbAttributes. The zero Path names nothing.
//
// These names are fields of the record: author, board, interests and embedding below objectAttributes; interests and
// embedding below actorAttributes; board and surface below verbAttributes. Every other name, dots included, is a key of
// the attributes.
type Path struct {
	part part
	key  string // of the three attribute maps
}

type part uint8

const (
	noPart part = iota
	verbPart
	objectPart
	actorPart
	objectAuthor
	objectBoard
	objectInterests
	objectEmbedding
	objectAttribute
	actorInterests
	actorEmbedding
	actorAttribute
	verbBoard
	verbSurface
	verbAttribute
	numParts
)

// partNames returns the names of the parts. A name that ends with a dot precedes a free key.
func partNames() [numParts]string {
	return [numParts]string{
		verbPart:        "verb",
		objectPart:      "object",
		actorPart:       "actor",
		objectAuthor:    "objectAttributes.author",
		objectBoard:     "objectAttributes.board",
		objectInterests: "objectAttributes.interests",
		objectEmbedding: "objectAttributes.embedding",
		objectAttribute: "objectAttributes.",
		actorInterests:  "actorAttributes.interests",
		actorEmbedding:  "actorAttributes.embedding",
		actorAttribute:  "actorAttributes.",
		verbBoard:       "verbAttributes.board",
		verbSurface:     "verbAttributes.surface",
		verbAttribute:   "verbAttributes.",
	}
}

// ParsePath reads a path. The error lists the valid paths.
func ParsePath(s string) (Path, error) {
	names := partNames()
	for _, name := range []string{s, s[:strings.Index(s, ".")+1]} {
		if i := slices.Index(names[:], name); i > 0 && s != "" {
			p := Path{part: part(i), key: s[len(name):]}
			if p.isFree() == (p.key != "") {
				return p, nil
			}
		}
	}
	return Path{}, errors.New("want verb, object, actor, or a name below objectAttributes, actorAttributes or verbAttributes")
}

// String returns the path as it is written in a definition, or "" for the zero Path.
func (p Path) String() string { return partNames()[p.part] + p.key }

// MarshalText returns String.
func (p Path) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

func (p Path) isZero() bool { return p.part == noPart }

// isVector reports whether the path names an embedding, which has elements but no values.
func (p Path) isVector() bool { return p.part == objectEmbedding || p.part == actorEmbedding }

// isFree reports whether the path names an attribute. Only attributes can be numbers: all other values are ids or
// verbs.
func (p Path) isFree() bool {
	return p.part == objectAttribute || p.part == actorAttribute || p.part == verbAttribute
}

// isList reports whether an action can have several values at the path.
func (p Path) isList() bool { return p.part == objectInterests || p.part == actorInterests }

// ofPin reports whether the path names a property of the pin itself, independent of any action.
func (p Path) ofPin() bool {
	switch p.part {
	case objectPart, objectAuthor, objectBoard, objectInterests, objectAttribute:
		return true
	}
	return false
}

// appendValues appends the values of an action at the path, each once.
func (p Path) appendValues(dst []string, a *schemas.EnrichedAction) []string {
	switch p.part {
	case verbPart:
		return appendText(dst, string(a.Verb))
	case actorPart:
		return appendText(dst, string(a.Actor))
	case actorInterests:
		return appendMembers(dst, a.ActorAttributes.Interests)
	case actorAttribute:
		return appendAttribute(dst, a.ActorAttributes.Attributes, p.key)
	case verbBoard:
		return appendText(dst, string(a.VerbAttributes.Board))
	case verbSurface:
		return appendText(dst, a.VerbAttributes.Surface)
	case verbAttribute:
		return appendAttribute(dst, a.VerbAttributes.Attributes, p.key)
	case objectPart:
		return appendText(dst, string(a.Object))
	case objectAuthor:
		return appendText(dst, string(a.ObjectAttributes.Author))
	case objectBoard:
		return appendText(dst, string(a.ObjectAttributes.Board))
	case objectInterests:
		return appendMembers(dst, a.ObjectAttributes.Interests)
	case objectAttribute:
		return appendAttribute(dst, a.ObjectAttributes.Attributes, p.key)
	}
	return dst
}

// vectorOf returns the embedding at the path, empty if there is none.
func (p Path) vectorOf(a *schemas.EnrichedAction) []float32 {
	switch p.part {
	case objectEmbedding:
		return a.ObjectAttributes.Embedding
	case actorEmbedding:
		return a.ActorAttributes.Embedding
	}
	return nil
}

// appendText appends a text, unless it is empty.
func appendText(dst []string, s string) []string {
	if s == "" {
		return dst
	}
	return append(dst, s)
}

// appendAttribute appends the value of a key, which may be empty, unless the key is absent.
func appendAttribute(dst []string, attributes map[string]string, key string) []string {
	if v, ok := attributes[key]; ok {
		dst = append(dst, v)
	}
	return dst
}

// appendMembers appends the distinct members of a list.
func appendMembers(dst []string, list []schemas.InterestID) []string {
	from := len(dst)
	for _, m := range list {
		if m != "" && !slices.Contains(dst[from:], string(m)) {
			dst = append(dst, string(m))
		}
	}
	return dst
}
