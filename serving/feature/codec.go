package feature

import (
	"encoding/binary"
	"errors"
	"maps"
	"math"
	"slices"

	"github.com/smartfeed/smartfeed/schemas"
)

// The row of an action holds what its key does not. The encoding is five times smaller to scan than the record, and a
// scan decodes only what a feature reads.
//
//	version     one byte, actionVersion
//	texts       verb, object, verb's board, surface, author, board
//	blocks      interests, actor's interests: texts; verb's, object's, actor's attributes: texts, key and value;
//	            object's, actor's embedding: float32, little-endian
//
// A text or a block is its length in bytes as a uvarint, followed by the bytes. Lists have no repeats, and attributes
// are sorted by key, so the same action always has the same bytes.
const actionVersion = 1

var errCorrupt = errors.New("row is corrupt")

// appendAction appends the row of an action to dst.
func appendAction(dst []byte, a *schemas.EnrichedAction) []byte {
	dst = append(dst, actionVersion)
	dst = appendText(dst, string(a.Verb))
	dst = appendText(dst, string(a.Object))
	dst = appendText(dst, string(a.VerbAttributes.Board))
	dst = appendText(dst, a.VerbAttributes.Surface)
	dst = appendText(dst, string(a.ObjectAttributes.Author))
	dst = appendText(dst, string(a.ObjectAttributes.Board))
	dst = appendTexts(dst, members(a.ObjectAttributes.Interests))
	dst = appendTexts(dst, members(a.ActorAttributes.Interests))
	dst = appendAttributes(dst, a.VerbAttributes.Attributes)
	dst = appendAttributes(dst, a.ObjectAttributes.Attributes)
	dst = appendAttributes(dst, a.ActorAttributes.Attributes)
	dst = appendVector(dst, a.ObjectAttributes.Embedding)
	return appendVector(dst, a.ActorAttributes.Embedding)
}

func appendText(dst []byte, s string) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
}

func appendTexts(dst []byte, list []string) []byte {
	size := 0
	for _, s := range list {
		size += textSize(s)
	}
	dst = binary.AppendUvarint(dst, uint64(size))
	for _, s := range list {
		dst = appendText(dst, s)
	}
	return dst
}

func appendAttributes(dst []byte, attributes map[string]string) []byte {
	size := 0
	for k, v := range attributes {
		size += textSize(k) + textSize(v)
	}
	dst = binary.AppendUvarint(dst, uint64(size))
	for _, k := range slices.Sorted(maps.Keys(attributes)) {
		dst = appendText(appendText(dst, k), attributes[k])
	}
	return dst
}

func appendVector(dst []byte, v []float32) []byte {
	dst = binary.AppendUvarint(dst, uint64(4*len(v)))
	for _, x := range v {
		dst = binary.LittleEndian.AppendUint32(dst, math.Float32bits(x))
	}
	return dst
}

func textSize(s string) int {
	n := 1
	for l := len(s); l >= 0x80; l >>= 7 {
		n++
	}
	return n + len(s)
}

// row is an action during a scan. Its texts are slices of the encoded row, which belongs to the store and is valid only
// until the next row. Therefore an aggregate copies what it keeps, which is a small part of the rows.
type row struct {
	time      millis
	actor     []byte
	verb      []byte
	object    []byte
	verbBoard []byte
	surface   []byte
	author    []byte
	board     []byte

	interests, actorInterests                        []byte // blocks of texts
	verbAttributes, objectAttributes, actorAttribute []byte // blocks of keys and values
	objectEmbedding, actorEmbedding                  []byte // blocks of float32

	list [][]byte // the last result of values
}

// decode reads the fields that are not in the key.
func (r *row) decode(value []byte) error {
	if len(value) == 0 || value[0] != actionVersion {
		return errCorrupt
	}
	rest := value[1:]
	for _, field := range []*[]byte{
		&r.verb, &r.object, &r.verbBoard, &r.surface, &r.author, &r.board,
		&r.interests, &r.actorInterests, &r.verbAttributes, &r.objectAttributes, &r.actorAttribute,
		&r.objectEmbedding, &r.actorEmbedding,
	} {
		var ok bool
		if *field, rest, ok = cutText(rest); !ok {
			return errCorrupt
		}
	}
	if len(rest) > 0 || len(r.objectEmbedding)%4 != 0 || len(r.actorEmbedding)%4 != 0 {
		return errCorrupt
	}
	return nil
}

// cutText cuts the first text off s.
func cutText[T string | []byte](s T) (text, rest T, ok bool) {
	size, n := uvarint(s)
	if n <= 0 || size > uint64(len(s)-n) {
		return text, rest, false
	}
	end := n + int(size)
	return s[n:end], s[end:], true
}

// uvarint is binary.Uvarint that also accepts a string. It returns n <= 0 if s does not start with a uvarint.
func uvarint[T string | []byte](s T) (x uint64, n int) {
	for i := 0; i < len(s) && i < binary.MaxVarintLen64; i++ {
		b := s[i]
		x |= uint64(b&0x7f) << (7 * i)
		if b < 0x80 {
			return x, i + 1
		}
	}
	return 0, 0
}

// values returns the values of the row at the path, each once. They are valid until the next call.
func (r *row) values(p Path) [][]byte {
	r.list = r.list[:0]
	switch p.part {
	case verbPart:
		return r.nonEmpty(r.verb)
	case objectPart:
		return r.nonEmpty(r.object)
	case actorPart:
		return r.nonEmpty(r.actor)
	case objectAuthor:
		return r.nonEmpty(r.author)
	case objectBoard:
		return r.nonEmpty(r.board)
	case verbBoard:
		return r.nonEmpty(r.verbBoard)
	case verbSurface:
		return r.nonEmpty(r.surface)
	case objectInterests:
		return r.texts(r.interests)
	case actorInterests:
		return r.texts(r.actorInterests)
	case objectAttribute:
		return r.attribute(r.objectAttributes, p.key)
	case actorAttribute:
		return r.attribute(r.actorAttribute, p.key)
	case verbAttribute:
		return r.attribute(r.verbAttributes, p.key)
	}
	return nil
}

func (r *row) nonEmpty(s []byte) [][]byte {
	if len(s) > 0 {
		r.list = append(r.list, s)
	}
	return r.list
}

func (r *row) texts(block []byte) [][]byte {
	for len(block) > 0 {
		text, rest, ok := cutText(block)
		if !ok {
			break
		}
		r.list, block = append(r.list, text), rest
	}
	return r.list
}

func (r *row) attribute(block []byte, key string) [][]byte {
	for len(block) > 0 {
		k, rest, ok := cutText(block)
		v, rest, more := cutText(rest)
		if !ok || !more {
			break
		}
		if string(k) == key {
			return append(r.list, v)
		}
		block = rest
	}
	return r.list
}

// vector returns the bytes of an embedding, four per element; see element.
func (r *row) vector(p Path) []byte {
	switch p.part {
	case objectEmbedding:
		return r.objectEmbedding
	case actorEmbedding:
		return r.actorEmbedding
	}
	return nil
}

// element returns the i-th float32 of an embedding's bytes.
func element[T string | []byte](vector T, i int) float64 {
	at := 4 * i
	bits := uint32(vector[at]) | uint32(vector[at+1])<<8 | uint32(vector[at+2])<<16 | uint32(vector[at+3])<<24
	return float64(math.Float32frombits(bits))
}

// appendCounts appends the counts of one step: name and uvarint, sorted by name. It skips counts that are not positive.
func appendCounts(dst []byte, counts map[string]int64) []byte {
	for _, verb := range slices.Sorted(maps.Keys(counts)) {
		if n := counts[verb]; n > 0 {
			dst = binary.AppendUvarint(appendText(dst, verb), uint64(n))
		}
	}
	return dst
}

// cutCount cuts the first name and count off s.
func cutCount(s string) (verb string, count uint64, rest string, ok bool) {
	verb, rest, ok = cutText(s)
	if !ok {
		return "", 0, "", false
	}
	count, n := uvarint(rest)
	if n <= 0 {
		return "", 0, "", false
	}
	return verb, count, rest[n:], true
}

// The first byte of a card. Other values are of older layouts.
const (
	cardDeleted = 1
	cardLive    = 2
)

// appendCard appends whether the pin is deleted, and its facets if it is not.
func appendCard(dst []byte, c *schemas.Card) []byte {
	if c.Deleted {
		return append(dst, cardDeleted)
	}
	return c.AppendBinary(append(dst, cardLive))
}

// decodeCard reads the output of appendCard. live is false if the pin is deleted.
func decodeCard(s string) (f schemas.Facets, live bool, err error) {
	switch {
	case s == "" || s[0] != cardDeleted && s[0] != cardLive:
		return f, false, errCorrupt
	case s[0] == cardDeleted:
		return f, false, nil
	}
	f, rest, err := schemas.DecodeFacets(s[1:], nil)
	if err != nil || rest != "" {
		return f, false, errCorrupt
	}
	return f, true, nil
}

// decodeAttributes reads the output of appendAttributes.
func decodeAttributes(s string) (map[string]string, error) {
	block, rest, ok := cutText(s)
	if !ok || rest != "" {
		return nil, errCorrupt
	}
	attributes := map[string]string{}
	for block != "" {
		k, after, ok := cutText(block)
		v, after, more := cutText(after)
		if !ok || !more {
			return nil, errCorrupt
		}
		attributes[k], block = v, after
	}
	return attributes, nil
}

// decodeVector reads the output of appendVector.
func decodeVector(s string) ([]float32, error) {
	block, rest, ok := cutText(s)
	if !ok || rest != "" || len(block)%4 != 0 {
		return nil, errCorrupt
	}
	v := make([]float32, len(block)/4)
	for i := range v {
		v[i] = float32(element(block, i))
	}
	return v, nil
}
