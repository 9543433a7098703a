package interests

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
)

func TestVocabulary_TermsOfTitles(t *testing.T) {
	cfg := DefaultConfig()
	cfg.StopWords, cfg.BlockedTerms = []string{"Roasted"}, map[string]string{"ACME Tea": "a brand"}
	v := newVocabulary(cfg)
	for _, c := range []struct {
		text string
		want []string
	}{
		{"Crème brûlée", []string{"brulee", "creme", "creme brulee"}},
		{"The art of tea", []string{"art", "art of tea", "tea"}},
		{"Tea, milk", []string{"milk", "tea"}},
		{"roasted squash", []string{"squash"}},
		{"ACME tea", []string{"acme", "tea"}},
		{"10 x 42", nil},
		{"zoe-recipes_2024", []string{"recipes", "zoe", "zoe recipes"}},
		{"Ｆｕｌｌｗｉｄｔｈ ＫＩＴＣＨＥＮ", []string{"fullwidth", "fullwidth kitchen", "kitchen"}},
		{"don't", []string{"dont"}},
		{"日本 料理", []string{"料理", "日本", "日本 料理"}},
		{strings.Repeat("x", 41) + " tea", []string{"tea"}},
	} {
		expect.NoDiff(t, v.of(c.text), c.want, "%s", c.text)
	}
	expect.Equal(t, nameOf("board:123"), "", "name of board:123")
}

func TestVocabulary_BlockReason(t *testing.T) {
	cfg := DefaultConfig()
	cfg.StopWords, cfg.BlockedTerms = []string{"Sale"}, map[string]string{"ACME-Tea": "a brand", "last sale": "advertising"}
	why := cfg.Blocked()
	for term, want := range map[string]string{
		"acme tea": "a brand", "last sale": "advertising", // also if stop words exclude it
		"sale": "sale is a stop word", "sale today": "sale is a stop word", "big sale": "sale is a stop word", "the tea": "the is a stop word",
		"acme": "", "big sale today": "", "art of tea": "", "wholesale": "", "acme tea pot": "", "": "",
	} {
		expect.Equal(t, why(term), want, "%q", term)
	}
}

// Terms of any bytes are bounded and sorted, and fold to themselves.
func TestVocabulary_BoundedAndFolded(t *testing.T) {
	v := newVocabulary(DefaultConfig())
	rapid.Check(t, func(t *rapid.T) {
		terms := v.of(rapid.String().Draw(t, "title"), string(rapid.SliceOf(rapid.Byte()).Draw(t, "bytes")))
		if len(terms) > maxTerms || !slices.IsSorted(terms) {
			t.Fatalf("%d terms: %q", len(terms), terms)
		}
		for _, term := range terms {
			if Fold(term) != term || !utf8.ValidString(term) || len(term) > maxWords*(maxWordBytes+1) {
				t.Errorf("term %q folds to %q", term, Fold(term))
			}
		}
	})
}

func TestConfig_ListsAllProblems(t *testing.T) {
	must.OK(t, DefaultConfig().Validate())
	err := Config{BlockedTerms: map[string]string{"tea": ""}, MaxEvidence: -1}.Validate()
	for _, name := range []string{"max_terms", "max_authors", "min_pins", "min_authors", "max_interests", "max_evidence", "max_pin_interests", "attribution_window", "engagement_retention", "blocked_terms"} {
		expect.Error(t, err, name+": ", "Validate")
	}
}
