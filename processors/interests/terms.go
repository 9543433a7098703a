package interests

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/smartfeed/smartfeed/schemas"
)

const (
	maxWords     = 3   // maximum words of a term
	maxWordBytes = 40  // a longer word is not part of any term
	maxTerms     = 120 // maximum terms of a pin: a title of 512 bytes has no more useful ones
)

// stopWords are words that no term begins or ends with.
const stopWords = ` a about after all also an and any are as at be been but by can for from get had has have her his how i if in into is it
 its just like make me more most my new no not of off on one or our out over she so some than that the their them then there these they
 this to too under up us use very was we were what when where which who why will with you your der die das und ein eine mit von im auf
 fur le la les de des et un une el los las y en con `

// vocabulary decides which words and n-grams are terms.
type vocabulary struct {
	stopped map[string]bool
	blocked map[string]string // term → reason
}

func newVocabulary(cfg Config) vocabulary {
	v := vocabulary{stopped: map[string]bool{}, blocked: map[string]string{}}
	for _, word := range append(strings.Fields(stopWords), cfg.StopWords...) {
		v.stopped[Fold(word)] = true
	}
	for term, reason := range cfg.BlockedTerms {
		v.blocked[Fold(term)] = reason
	}
	return v
}

// Fold returns a text in the form of terms: compatibility forms decomposed (Unicode NFKD), marks removed, in lower case,
// and words separated by one space. Characters that are neither letters nor digits separate words.
func Fold(text string) string { return strings.Join(slices.Concat(runs(text)...), " ") }

// runs returns the words of a text, in runs without punctuation between them.
func runs(text string) [][]string {
	var all [][]string
	var run []string
	var word strings.Builder
	end := func() {
		if word.Len() > 0 {
			run = append(run, word.String())
			word.Reset()
		}
	}
	for _, r := range norm.NFKD.String(strings.ToValidUTF8(text, "")) {
		switch {
		case unicode.Is(unicode.Mn, r) || r == '\'' || r == '’': // é is e, don't is dont
		case unicode.IsLetter(r) || unicode.IsDigit(r):
			word.WriteRune(unicode.ToLower(r))
		case r == ' ' || r == '-' || r == '_':
			end()
		default:
			end()
			all, run = append(all, run), nil
		}
	}
	end()
	return slices.DeleteFunc(append(all, run), func(run []string) bool { return len(run) == 0 })
}

// of returns the terms of texts, each once, sorted. A term has up to maxWords consecutive words, begins and ends with a
// content word, and is not blocked.
func (v vocabulary) of(texts ...string) []string {
	var terms []string
	for _, text := range texts {
		for _, run := range runs(text) {
			for i := range run {
				for n := 1; n <= maxWords && i+n <= len(run); n++ {
					if term, ok := v.term(run[i : i+n]); ok {
						terms = append(terms, term)
					}
				}
			}
		}
	}
	slices.Sort(terms)
	terms = slices.Compact(terms)
	return terms[:min(len(terms), maxTerms)]
}

// blockReason returns why a folded term is not a term of this vocabulary, regardless of its counts: it is blocked, or begins
// or ends with a stop word. It returns "" otherwise.
func (v vocabulary) blockReason(term string) string {
	if reason, blocked := v.blocked[term]; blocked {
		return reason
	}
	first, _, _ := strings.Cut(term, " ")
	for _, word := range []string{first, term[strings.LastIndexByte(term, ' ')+1:]} {
		if v.stopped[word] {
			return word + " is a stop word"
		}
	}
	return ""
}

func (v vocabulary) term(words []string) (string, bool) {
	for _, w := range words {
		if len(w) > maxWordBytes {
			return "", false
		}
	}
	if !v.isContentWord(words[0]) || !v.isContentWord(words[len(words)-1]) {
		return "", false
	}
	term := strings.Join(words, " ")
	_, blocked := v.blocked[term]
	return term, !blocked
}

// isContentWord reports whether a term may begin or end with a word: the word has a letter and more than one character,
// and is no stop word.
func (v vocabulary) isContentWord(word string) bool {
	return utf8.RuneCountInString(word) > 1 && !v.stopped[word] && strings.ContainsFunc(word, unicode.IsLetter)
}

// nameOf returns the name in a board's id, or "" if it has no letter.
func nameOf(board schemas.BoardID) string {
	_, name, _ := strings.Cut(string(board), ":")
	if !strings.ContainsFunc(name, unicode.IsLetter) {
		return ""
	}
	return name
}
