package cli

import (
	"errors"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/smartfeed/smartfeed/schemas"
)

func (p *program) whyCommand() *cobra.Command {
	var name string
	cmd := &cobra.Command{
		Use:               "why USER PIN",
		Short:             "Explain why a pin is, was, or is not in a user's feed",
		Example:           "  smartfeed query why user:ada pin:42",
		Args:              cobra.ExactArgs(2),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: requests(p, (*tables).why, func(_ *cobra.Command, args []string) (request, error) {
			user, problem := schemas.ParseUserID(args[0])
			pin, err := schemas.ParsePinID(args[1])
			query := url.Values{"pin": {string(pin)}}
			if name != "" {
				query.Set("feed", name)
			}
			return request{path: []string{"users", string(user), "feed", "why"}, query: query}, usage(errors.Join(problem, err))
		}),
	}
	p.feedFlag(cmd, &name, "named feed whose rules apply")
	return cmd
}

// because describes a reason in words.
func because(r schemas.Reason) string {
	return inWords(r, map[schemas.Reason]string{
		schemas.ReasonOutranked:       "others are better, or their source is due",
		schemas.ReasonBeyondHead:      "it is not among the best of its pool",
		schemas.ReasonCapAuthor:       "too many of its author stand before it",
		schemas.ReasonCapBoard:        "too many of its board stand before it",
		schemas.ReasonCapTopic:        "too many of an interest of its stand before it",
		schemas.ReasonNoShare:         "its sources have no share in this feed",
		schemas.ReasonWeak:            "it is too far below the best, and the session's budget is spent",
		schemas.ReasonDeferred:        "it was too far below the best, and is kept for a later session",
		schemas.ReasonDeleted:         "the pin is deleted",
		schemas.ReasonAuthorDeleted:   "its author is deleted",
		schemas.ReasonOwn:             "it is the user's own",
		schemas.ReasonBlock:           "there is a block",
		schemas.ReasonNoEdge:          "the user follows nothing that would bring it",
		schemas.ReasonFollowCap:       "the follow that would bring it is over the cap of followees",
		schemas.ReasonForgotten:       "it is as old as what is no longer remembered as seen",
		schemas.ReasonExpired:         "it is too old",
		schemas.ReasonDeferralExpired: "it was deferred for too long",
		schemas.ReasonCap:             "the pool is full of better ones",
		schemas.ReasonNever:           "no delivery has brought it, or what it brought was dropped",
		schemas.ReasonUnknown:         "there is no such pin",
		schemas.ReasonUserDeleted:     "the user is deleted",
		schemas.ReasonSeen:            "it was shown",
	})
}

// fate describes the fate of a pin in words.
func fate(f schemas.Fate) string {
	return inWords(f, map[schemas.Fate]string{
		schemas.FatePending: "is about to be shown",
		schemas.FateNext:    "would be shown by a visit now",
		schemas.FateWaiting: "waits",
		schemas.FateHeld:    "is held back",
		schemas.FateHidden:  "may not be seen",
		schemas.FateOut:     "is no candidate",
	})
}

// inWords returns the words for a name. It returns the name itself if there are none, because a newer server may use further
// names.
func inWords[T ~string](name T, words map[T]string) string {
	if text, ok := words[name]; ok {
		return text
	}
	return string(name)
}

func (t *tables) why(w *schemas.Why) {
	t.row(whyLine(w))
	if w.Since != 0 {
		t.row("deferred since " + local(w.Since.Time()))
	}
	if len(w.Candidates) > 0 {
		t.line("")
		t.row("SOURCE", "RANK", "SCORE", "PARTS", "BY", "")
	}
	for _, c := range w.Candidates {
		rank, reason := "", "waits"
		if c.Rank > 0 {
			rank = strconv.Itoa(c.Rank)
		}
		if c.Reason != "" {
			reason = because(c.Reason)
		}
		t.row(c.Source, rank, score(c.RankScore), scoreParts(c.Parts), joined(c.Edges), reason)
	}
	t.degraded(w.Degraded)
}

// whyLine returns the answer as one sentence.
func whyLine(w *schemas.Why) string {
	text := string(w.Pin) + " " + fate(w.Fate)
	if s := w.Shown; s != nil {
		text = string(w.Pin) + " was shown " + local(s.Time.Time()) + ", at position " + strconv.FormatInt(s.Position, 10)
		if s.Source != "" {
			text += ", from " + string(s.Source)
		}
		if w.Reason != "" {
			text += "; it may not be seen any more"
		}
	}
	if w.Place > 0 {
		text += ", in place " + strconv.Itoa(w.Place)
	}
	if w.Reason != "" {
		text += ": " + because(w.Reason)
	}
	if len(w.By) > 0 {
		text += " (" + joined(w.By) + ")"
	}
	if w.Arm != "" {
		text += ", by the rules of " + w.Arm
	}
	return text
}

func joined(ids []schemas.ID) string {
	texts := make([]string, len(ids))
	for i, id := range ids {
		texts[i] = string(id)
	}
	return strings.Join(texts, " ")
}

func scoreParts(parts map[string]float64) string {
	var texts []string
	for _, name := range slices.Sorted(maps.Keys(parts)) {
		texts = append(texts, name+" "+score(parts[name]))
	}
	return strings.Join(texts, ", ")
}
