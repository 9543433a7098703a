package schemas

import (
	"encoding/binary"
	"errors"
	"regexp"
	"slices"
	"strings"

	"github.com/smartfeed/smartfeed/internal/packed"
)

// Facets are the ids that determine who receives a pin and who it is hidden from, and the language of the pin.
type Facets struct {
	Author    UserID       `avro:"author" json:"author,omitempty"`
	Board     BoardID      `avro:"board" json:"board,omitempty"` // "" for none
	Interests []InterestID `avro:"interests" json:"interests,omitempty"`
	Language  string       `avro:"language" json:"language,omitempty"` // BCP 47 tag; "": unknown
}

// maxLanguageBytes is the length that RFC 5646, section 4.4.1, recommends for tags.
const maxLanguageBytes = 35

// languageTag matches the tags of RFC 5646 that start with a language.
var languageTag = regexp.MustCompile(`^[a-zA-Z]{2,3}(-[a-zA-Z0-9]{1,8})*$`)

func visitLanguage(v fieldVisitor, tag *string) {
	v.text("language", tag, textBounds{rule: optional, maxBytes: maxLanguageBytes, check: checkLanguage})
}

func checkLanguage(tag string) error {
	if len(tag) > maxLanguageBytes || !languageTag.MatchString(tag) {
		return badf("%s is not a BCP 47 language tag, such as de or pt-BR", quote(tag))
	}
	return nil
}

// PrimaryLanguage returns the language without its variant, in lower case: pt for pt-BR; "" if it is unknown.
func (f *Facets) PrimaryLanguage() string {
	language, _, _ := strings.Cut(f.Language, "-")
	return strings.ToLower(language)
}

const languagePrefix = "language:"

// LanguageFacet returns a primary language as a facet of affinities.
func LanguageFacet(language string) ID { return ID(languagePrefix + language) }

// LanguageOf is the reverse of LanguageFacet. It returns false for other facets.
func LanguageOf(facet ID) (language string, ok bool) {
	return strings.CutPrefix(string(facet), languagePrefix)
}

func (f *Facets) visit(v fieldVisitor) {
	v.text("author", (*string)(&f.Author), textBounds{rule: expected, kinds: KindUser}) // AppendLine omits an empty author
	v.text("board", (*string)(&f.Board), textBounds{rule: nullable, kinds: KindBoard})
	visitInterests(v, &f.Interests)
	visitLanguage(v, &f.Language)
}

// Followees is an iterator over the author, the board and the interests, in this order, without empty ids:
//
//	for followee := range f.Followees
func (f *Facets) Followees(yield func(Followee) bool) {
	if f.Author != "" && !yield(Followee(f.Author)) || f.Board != "" && !yield(Followee(f.Board)) {
		return
	}
	for _, id := range f.Interests {
		if !yield(Followee(id)) {
			return
		}
	}
}

// Has reports whether the followee is the author, the board or one of the interests.
func (f *Facets) Has(followee Followee) bool {
	for id := range f.Followees {
		if id == followee {
			return true
		}
	}
	return false
}

// Equal reports whether both have the same author, board and language, and the same interests in the same order.
func (f Facets) Equal(other Facets) bool {
	return f.Author == other.Author && f.Board == other.Board && f.Language == other.Language && slices.Equal(f.Interests, other.Interests)
}

// AppendBinary appends the encoding of the facets in rows. Empty texts at the end are omitted, so a text can be added without
// another format:
//
//	texts      count as uvarint, then author, board and language, each after its length as uvarint
//	interests  count as uvarint, then each after its length
func (f *Facets) AppendBinary(b []byte) []byte {
	texts := f.texts()
	count := len(texts)
	for count > 0 && *texts[count-1] == "" {
		count--
	}
	b = binary.AppendUvarint(b, uint64(count))
	for _, text := range texts[:count] {
		b = packed.AppendText(b, *text)
	}
	return packed.AppendList(b, f.Interests, packed.AppendText[InterestID])
}

// texts returns the facets other than the interests, in the order of their encoding.
func (f *Facets) texts() [3]*string {
	return [...]*string{(*string)(&f.Author), (*string)(&f.Board), &f.Language}
}

// ErrFacets is returned for bytes that are not encoded facets: a row is damaged, or another program wrote it.
var ErrFacets = errors.New("decode facets: truncated or malformed")

// DecodeFacets decodes facets from the start of s and returns the rest of s. The ids share the memory of s.
func DecodeFacets(s string) (f Facets, rest string, err error) { return DecodeFacetsInto(s, nil) }

// DecodeFacetsInto is DecodeFacets with a function that returns the list for n interests, n > 0; nil: allocate each list.
func DecodeFacetsInto(s string, newList func(n int) []InterestID) (f Facets, rest string, err error) {
	d := facetsDecoder{rest: s}
	texts := f.texts()
	count := d.length()
	if count > len(texts) {
		return Facets{}, "", ErrFacets
	}
	for _, text := range texts[:count] {
		*text = d.text()
	}
	if n := d.length(); n > 0 && newList != nil {
		f.Interests = newList(n)
	} else if n > 0 {
		f.Interests = make([]InterestID, n)
	}
	for i := range f.Interests {
		f.Interests[i] = InterestID(d.text())
	}
	if d.bad {
		return Facets{}, "", ErrFacets
	}
	return f, d.rest, nil
}

// facetsDecoder reads a string from the front. After the first error, it sets bad and returns zero values.
type facetsDecoder struct {
	rest string
	bad  bool
}

// length reads a number of items that take at least one byte each. It is at most the number of remaining bytes.
func (d *facetsDecoder) length() int {
	var n uint64
	for i := 0; i < len(d.rest) && i < binary.MaxVarintLen32; i++ {
		n |= uint64(d.rest[i]&0x7f) << (7 * i)
		if d.rest[i] < 0x80 {
			d.rest = d.rest[i+1:]
			if n <= uint64(len(d.rest)) {
				return int(n)
			}
			break
		}
	}
	d.bad, d.rest = true, ""
	return 0
}

func (d *facetsDecoder) text() string {
	n := d.length()
	s := d.rest[:n]
	d.rest = d.rest[n:]
	return s
}

// maxEncodedBytes returns an upper bound of the bytes of the facets in an encoded record: the bytes of the ids and of the
// language, three for the length of each, and eight for the list and for texts that are empty.
func (f *Facets) maxEncodedBytes() int {
	n := 8 + len(f.Language) + 3
	for id := range f.Followees {
		n += len(id) + 3
	}
	return n
}

// Affinities are a user's strongest affinities, strongest first. Topic affinities, key: User.
type Affinities struct {
	User UserID     `avro:"user" json:"user"`
	Time Micros     `avro:"time" json:"time"`
	Top  []Affinity `avro:"top" json:"top"`
}

// Affinity is the decayed, weighted sum of a user's actions on pins with one facet, as of Affinities.Time.
type Affinity struct {
	Facet ID      `avro:"facet" json:"facet"` // author, board or interest, or see LanguageFacet
	Value float64 `avro:"value" json:"value"`
}
