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
	p.feedFlag(cmd, &name, "name of the feed whose rules apply")
	return cmd
}

// because returns the description of a reason.
func because(r schemas.Reason) string {
	return inWords(r, map[schemas.Reason]string{
		schemas.ReasonOutranked:       "other candidates rank higher, or another source is due",
		schemas.ReasonBeyondHead:      "it is not among the best candidates of its pool",
		schemas.ReasonCapAuthor:       "too many items above it have the same author",
		schemas.ReasonCapBoard:        "too many items above it have the same board",
		schemas.ReasonCapInterest:     "too many items above it have the same interest",
		schemas.ReasonSimilar:         "it is similar to an item above it",
		schemas.ReasonNoShare:         "its sources have no share in this feed",
		schemas.ReasonWeak:            "its score is too far below the best, and the session's budget is used up",
		schemas.ReasonDeferredEarlier: "an earlier visit deferred it, because its score was too far below the best",
		schemas.ReasonDeleted:         "the pin is deleted",
		schemas.ReasonAuthorDeleted:   "its author is deleted",
		schemas.ReasonOwn:             "the user created it",
		schemas.ReasonBlock:           "the user or the author blocked the other",
		schemas.ReasonNoEdge:          "the user does not follow its author, board or interests",
		schemas.ReasonFolloweeCap:     "the follow that would deliver it is above pools.max_followees",
		schemas.ReasonSeenTrimmed:     "it is as old as seen pins that are no longer stored",
		schemas.ReasonExpired:         "it is older than pools.max_pin_age",
		schemas.ReasonDeferralExpired: "its deferral expired",
		schemas.ReasonCap:             "the pool is full of better candidates",
		schemas.ReasonUndelivered:     "it was not delivered, or its delivery was dropped",
		schemas.ReasonUnknown:         "the pin is unknown",
		schemas.ReasonUserDeleted:     "the user is deleted",
		schemas.ReasonSeen:            "it was shown",
	})
}

// fate returns the description of a pin's fate.
func fate(f schemas.Fate) string {
	return inWords(f, map[schemas.Fate]string{
		schemas.FatePending:  "is about to be shown",
		schemas.FateNext:     "would be shown by a visit now",
		schemas.FateWaiting:  "is waiting",
		schemas.FateDeferred: "is deferred",
		schemas.FateHidden:   "is hidden from the user",
		schemas.FateOut:      "is not a candidate",
	})
}

// inWords returns the description of a name. It returns an unknown name unchanged, because a newer server may use further
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
		rank, reason := "", "waiting"
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
			text += "; it is hidden from the user now"
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
		text += ", with the rules of the feed " + w.Arm
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
