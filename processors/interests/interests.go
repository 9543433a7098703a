// Package interests finds terms that could become interests. It also computes the interests of users, and the engagement
// with the pins of an interest by source.
//
//	owner   pin, user, interest; dictionary:N, which has the terms of a partition
//	in      pin-cards, related-requests, impressions and interest-marks (batched, of a partition), users-deleted (key user)
//	rows    of a pin: its terms and interests; of a user: interests with evidence; of an interest: counts by day, source and
//	        event; of a partition: its terms, their authors, terms by count; common: the recent impressions of users
//	out     interest-marks (to the partitions of terms, users and interests)
//	timers  impressions expire
//
// # Terms
//
// The terms of a pin are the n-grams of its title and of its board's name. That is the name in the board's id, unless
// it is a number. A term has one to three words and is folded (see Fold). It neither begins nor ends with a stop word
// (a list of common words, and Config.StopWords), and is not in Config.BlockedTerms.
//
// A term counts its pins, and its authors up to Config.MaxAuthors. The counts are exact as long as the partition has at
// most Config.MaxTerms terms. Above that, a new term replaces the one with the fewest pins and starts with that count
// as its possible error. This is SpaceSaving (Metwally, Agrawal, El Abbadi, ICDT 2005): it finds every term that more
// than one MaxTerms-th of all pins have. The counts decrease when a pin no longer has the term or is deleted.
//
// A candidate certainly has Config.MinPins pins and Config.MinAuthors authors. Candidates are ranked by frequency ×
// spread × novelty:
//
//	score = ln(1 + pins) · log2(1 + words) × authors/min(pins, MaxAuthors) × (1 + recent)/2
//
// The first factor damps the frequency as usual (Salton, Buckley 1988) and prefers longer terms as the C-value does
// (Frantzi, Ananiadou, Mima 2000). The second factor, the spread, is 1 if each pin has another author. recent is the part
// of the term's pins that remains after decay with a half-life of 30 days. Subtracted pins stay in recent until they have
// decayed.
//
// A counted term that Config blocks or stops later is no candidate from the next start on. It and the terms merged into it
// have no interest, regardless of decisions. Their counts and decisions are kept and apply again when the term is
// removed from the lists. Pins that arrived or changed meanwhile count again at their next change.
//
// # Decisions by operators
//
// Operators accept a term for an interest, reject it with a reason, or merge it into another term. The newest decision of a
// term counts. Every process holds the decisions as a global table. A decision affects only later events. It does not
// change the interests that producers give to pins: an accepted term delivers nothing, and is used only for users and
// engagement.
//
// # Users
//
// A positive action on a pin, of a verb that requests neighbors (see actors), adds its weight to each interest of the pin.
// The pin's own interests come first, then those of its accepted terms, Config.MaxPinInterests at most. Strength decays
// with a half-life of 30 days. A user keeps the Config.MaxInterests strongest interests, each with the newest
// Config.MaxEvidence actions.
//
// Service omits deleted pins from the evidence; their part of the strength decays. A deleted user has no rows here.
//
// # Engagement
//
// Impressions of a pin, and positive actions on it, count for its interests on their day (UTC, by event time). They count
// for the source of the user's last impression of the pin within Config.AttributionWindow before, or else for "direct". The group
// receives impressions and actions in batches (see rows.Input.Deferred), so an action within half a second of the visit may
// count for "direct". Of a user's impressions, those of the newest 200 pins of an hour and partition are stored. Counts are kept
// for Config.EngagementRetention. Counts are anonymous, and remain when users and pins are deleted.
//
// # Rows
//
// Deletion. What deletes each kind of row, by the first byte of its name:
//
//	'p'  pins                 never: a deleted pin keeps its version and the deletion, because late cards must have no effect
//	'h'  impressions          timer: AttributionWindow and an hour after the first of the hour; cap: 200 per hour;
//	                          erasure
//	'i'  interests of a user  cap: MaxInterests; erasure
//	'e'  counts of a day      cap: EngagementRetention before the newest, when the interest gets its next new count
//	't'  terms                cap: MaxTerms; event: no pin has it
//	'c'  terms by count       cap and event: with the term
//	'a'  authors of a term    cap: MaxAuthors; event: no pin of the author has it, or with the term
//	'n'  number of terms      never: one row for each partition
//
// # Drops
//
// Dropped records are counted by reason: deleted_user, unknown_pin, weak_interest. The effect evicted_terms counts terms that
// were dropped at the bound.
package interests

import (
	"cmp"
	"fmt"
	"time"

	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/schemas/visibility"
	"github.com/smartfeed/smartfeed/topics"
)

// Decisions returns the newest decision about a term. *topics.GlobalTable implements it.
type Decisions interface {
	Get(term string) (*schemas.InterestDecision, bool)
}

// Group returns the topology. cfg must be valid. partitions is the number of partitions of interest-marks.
func Group(cfg Config, partitions int32, s *topics.Streams, deleted visibility.GrowingDeletedUsers, decided Decisions) rows.Group {
	g := &group{
		cfg: cfg, out: rows.Gather(s.InterestMarks, marksOf), deleted: deleted, decided: decided, words: newVocabulary(cfg),
		owners: dictionaries(partitions),
	}
	return rows.Group{
		Name: topics.Interests,
		Inputs: []rows.Input{
			rows.Owned(s.PinCards, "card", "pin", func(c *schemas.Card) schemas.PinID { return c.Pin }, g.card).Deferred(),
			rows.Keyed(s.RelatedRequests, g.action).Deferred(),
			rows.Batched(s.Impressions, g.impressions).Deferred(),
			rows.Keyed(s.UsersDeleted, g.deletion).Deferred(),
			rows.Batched(s.InterestMarks, g.marks).Deferred(),
		},
		Outputs: []string{topics.InterestMarks},
		Timer:   g.timer,
	}
}

type group struct {
	cfg     Config
	out     *rows.Gathering[any] // marks
	deleted visibility.GrowingDeletedUsers
	decided Decisions
	words   vocabulary
	owners  []string // owners of the dictionaries, by partition
}

// dictionaries returns an owner of each partition.
func dictionaries(partitions int32) []string {
	owners := make([]string, partitions)
	for p := range owners {
		owners[p] = rows.OwnerIn("dictionary:", int32(p), partitions)
	}
	return owners
}

// interestOf returns the interest of an accepted term, directly or through the terms that it was merged into. A blocked
// term has none, and neither has a term that was merged into a blocked one.
func (g *group) interestOf(term string) (schemas.InterestID, bool) {
	const limit = 8 // merges may form a cycle
	for range limit {
		d, ok := g.decided.Get(term)
		switch {
		case !ok || g.words.blockReason(term) != "":
			return "", false
		case d.State == schemas.TermAccepted:
			return d.Interest, true
		case d.State != schemas.TermMerged:
			return "", false
		}
		term = d.Into
	}
	return "", false
}

// card processes the current card of a pin.
func (g *group) card(tx *rows.Tx, c *schemas.Card) error {
	was := termsOf(tx.Own())
	if c.Version <= was.Version {
		return nil
	}
	is := pinTerms{Version: c.Version, Author: c.Author, Created: c.Created, Interests: c.Interests, Deleted: c.Deleted}
	if !c.Deleted {
		is.Terms = g.words.of(c.Title, nameOf(c.Board))
	}
	g.addTerms(tx, was, is)
	if c.Deleted {
		is.Terms, is.Interests = nil, nil
	}
	rows.PutValue(tx.Own(), []byte{rowPin}, &is)
	return nil
}

// action processes an action of a user on a pin.
func (g *group) action(tx *rows.Tx, r *schemas.RelatedRequest) error {
	if err := r.Validate(tx.Key()); err != nil {
		return err
	}
	if g.deleted.Has(r.User) {
		tx.Count("deleted_user")
		return nil
	}
	terms := termsOf(tx.Own())
	if terms.Deleted {
		return nil
	}
	source := g.shown(tx, r.User).source(schemas.PinID(r.Pin.ID), r.Time)
	pin := schemas.PinID(r.Pin.ID)
	for _, interest := range g.interests(r.Pin.Interests, terms.Terms) {
		g.addLike(tx, schemas.LikeMark{User: r.User, Interest: interest, Pin: pin, Verb: r.Verb, Weight: r.Weight, Time: r.Time})
		g.addEvent(tx, schemas.EngagementMark{Interest: interest, Source: source, What: cmp.Or(string(r.Verb), "other"), Time: r.Time})
	}
	return nil
}

// impressions processes the impressions of a visit.
func (g *group) impressions(tx *rows.Tx, i *schemas.Impressions) error {
	var counted []schemas.ShownPin
	for _, p := range i.Pins {
		if g.impression(tx, i, p) {
			counted = append(counted, p)
		}
	}
	if len(counted) > 0 {
		g.shown(tx, i.User).add(i, counted, tx.Time())
	}
	return nil
}

func (g *group) shown(tx *rows.Tx, user schemas.UserID) shownRows {
	return shownRows{tx.Common(), user, g.cfg.AttributionWindow}
}

// impression sends the marks of one impression of a pin. It reports whether the impression counts.
func (g *group) impression(tx *rows.Tx, i *schemas.Impressions, p schemas.ShownPin) bool {
	terms := termsOf(tx.Of(string(p.Pin)))
	switch {
	case terms.Deleted:
		return false
	case terms.Version == 0:
		tx.Count("unknown_pin")
		return false
	case g.deleted.Has(i.User):
		tx.Count("deleted_user")
		return false
	}
	for _, interest := range g.interests(terms.Interests, terms.Terms) {
		g.addEvent(tx, schemas.EngagementMark{Interest: interest, Source: p.Source, What: schemas.ImpressionCount, Time: i.Time})
	}
	return true
}

// interests returns the interests of a pin: its own, then those of its accepted terms.
func (g *group) interests(own []schemas.InterestID, terms []string) []schemas.InterestID {
	all := make([]schemas.InterestID, 0, g.cfg.MaxPinInterests)
	known := map[schemas.InterestID]bool{}
	add := func(i schemas.InterestID) {
		if i != "" && !known[i] && len(all) < g.cfg.MaxPinInterests {
			known[i] = true
			all = append(all, i)
		}
	}
	for _, i := range own {
		add(i)
	}
	for _, term := range terms {
		if i, ok := g.interestOf(term); ok {
			add(i)
		}
	}
	return all
}

// timer deletes the impressions of an hour. The rows of an earlier program that have timers are deleted alike.
func (g *group) timer(_ *rows.Tx, owner rows.Owner, name []byte, _ time.Time) error {
	owner.Delete(name)
	return nil
}

// deletion deletes the rows of a deleted user, and requests the deletion of the user's impressions in all partitions. It first
// notes the deletion, because likes in flight check the set.
func (g *group) deletion(tx *rows.Tx, d *schemas.DeletedUser) error {
	if tx.Key() != string(d.User) {
		return schemas.Bad(fmt.Sprintf("deleted user: key %.64q: want %.64q", tx.Key(), d.User))
	}
	g.deleted.Note(d.User, d.Time)
	for p := range tx.Partitions() {
		g.out.Add(tx, p, *d, len(d.User)+numbers)
	}
	rows.DeleteAll(tx.Own(), []byte{rowInterest}, 0)
	return nil
}

// marks processes the marks for owners of this partition.
func (g *group) marks(tx *rows.Tx, m *schemas.InterestMarks) error {
	if err := m.Validate(); err != nil {
		return err
	}
	d := dictionary{tx: tx, own: tx.Of(g.owners[tx.Partition()]), cfg: g.cfg}
	for _, u := range m.Deleted {
		g.deleted.Note(u.User, u.Time)
		rows.DeleteAll(tx.Common(), g.shown(tx, u.User).prefix(), 0) // their timers find no rows
	}
	for _, t := range m.Terms {
		d.apply(t)
	}
	for _, l := range m.Likes {
		if l.Interest == "" { // an earlier program's mark of a deleted pin
			continue
		}
		if g.deleted.Has(l.User) {
			tx.Count("deleted_user")
			continue
		}
		g.like(tx, l)
	}
	for _, e := range m.Events {
		count(tx.Of(string(e.Interest)), e, int(g.cfg.EngagementRetention/(24*time.Hour)))
	}
	return nil
}
