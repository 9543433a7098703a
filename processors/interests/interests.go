// Package interests finds terms that could be interests, and knows what users are interested in, and how the pins of an
// interest do by where they came from.
//
//	owner   pin, user, interest; dictionary:N, which has the terms of a partition
//	in      pin-cards, related-requests, impressions and interest-marks (batched, of a partition), users-deleted (key user)
//	rows    of a pin: what it says, by whom it was seen and liked of late; of a user: interests with evidence; of an
//	        interest: counts by day, source and what happened; of a partition: its terms, their authors, terms by count;
//	        common: the scale of strengths and of recent pins
//	out     interest-marks (to the partitions of terms, users and interests)
//	timers  who saw or liked a pin is forgotten
//
// Terms. A pin has the n-grams of its title and of its board's name (that of the id, unless it is a number): one to three
// words, folded (see Fold), that neither begin nor end with a stopped word (a list of common ones, and Config.Stop), and
// are not in Config.Block. A term counts pins, and authors up to Config.MaxPeople, exactly as long as the partition has
// at most Config.MaxTerms of them. Above, a new term takes the place of the one with the fewest pins, with its count as
// what it may be too high by: SpaceSaving (Metwally, Agrawal, El Abbadi, ICDT 2005), so that no term is missed that more
// than a MaxTerms-th of all pins have. What a pin no longer says, or a pin that is deleted, is taken back.
//
// Candidates have Config.MinPins pins and Config.MinPeople authors for certain, and are ranked by frequency × spread ×
// novelty:
//
//	score = ln(1 + pins) · log2(1 + words) × authors/min(pins, MaxPeople) × (1 + recent)/2
//
// where the first factor damps frequency as usual (Salton, Buckley 1988) and prefers longer terms as the C-value does
// (Frantzi, Ananiadou, Mima 2000), spread is 1 when each pin is another author's, and recent is the part of the term's
// pins that Config.HalfLife has left by now. Taken back pins stay in recent until they have faded.
//
// A term that Config blocks or stops, now that it was counted, is no candidate from the next start on, and means no interest
// whatever was decided, nor does what was merged into it. Its counts and decisions are kept: taken off the lists again, it has
// them, but for pins that came or changed meanwhile, which count from when they change next.
//
// Decisions. Operators accept a term for an interest, reject it with a reason, or merge it into another term; the newest
// decision of a term counts, and every process holds them whole. What a decision changes is what happens from then on.
// Interests of pins remain what their producers say: an accepted term delivers nothing to anybody. It counts for what
// follows alone.
//
// Users. A positive action on a pin, of a verb for which neighbours are asked (see actors), adds its weight to each of
// the pin's interests, its own first and then those of its accepted terms, Config.Interests at most; strength decays by
// Config.HalfLife. Kept are the Config.Keep strongest of a user, each with the newest Config.Evidence actions. A deleted
// pin is no evidence any more; what it gave in strength fades. A deleted user has no rows here, and what others of
// their doing remains (that they saw or liked a pin) is forgotten after Config.AttributionWindow. When Config.HalfLife is another
// one, what strengths are worth stands (decay.Scale), and from the next marks of a partition on they halve by it.
//
// Engagement. Impressions of a pin, and positive actions on it, count for its interests on their day (UTC, by event
// time), under the source of the last impression that the user had of it within Config.AttributionWindow, else under "direct".
// Config.Days days are kept. Counts are anonymous, and remain when users and pins go.
//
// Deletion. What deletes each kind of rows, by the first byte of their names:
//
//	'p'  what a pin says      never: of a deleted pin only its version and that it is deleted, because late cards must lose
//	'v'  number of visitors   event: the last visitor is forgotten, or the pin is deleted
//	's'  visitors of a pin    timer: AttributionWindow after the last impression; cap: MaxSeen; event: the pin is deleted
//	'i'  interests of a user  cap: Keep; erasure
//	'e'  counts of a day      cap: Days before the newest, when the interest gets its next new count
//	't'  terms                cap: MaxTerms; event: no pin says it any more
//	'c'  terms by count       cap and event: with the term
//	'a'  authors of a term    cap: MaxPeople; event: no pin of the author says it any more, or with the term
//	'n'  number of terms      never: one row for each partition
//
// What is dropped is counted by reason: deleted_user, unknown_pin, crowded (a pin's user beyond MaxSeen), weak_interest;
// the effect evicted_term counts terms given up for the bound.
package interests

import (
	"cmp"
	"fmt"
	"time"

	"github.com/smartfeed/smartfeed/processors/decay"
	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// DeletedUsers is the set of users who are gone for good. Note adds one ahead of the topic.
type DeletedUsers interface {
	Has(user schemas.UserID) bool
	Note(user schemas.UserID, at schemas.Micros)
}

// Decisions are what was decided about terms; *topics.Whole is one.
type Decisions interface {
	Get(term string) (*schemas.InterestDecision, bool)
}

// Group returns the topology. cfg must be valid; partitions is the number of those of interest-marks.
func Group(cfg Config, partitions int32, s *topics.Streams, deleted DeletedUsers, decided Decisions) rows.Group {
	g := &group{cfg: cfg, streams: s, deleted: deleted, decided: decided, words: newVocabulary(cfg), owners: dictionaries(partitions)}
	return rows.Group{
		Name: topics.Interests,
		Inputs: []rows.Input{
			rows.Keyed(s.PinCards, g.card),
			rows.Keyed(s.RelatedRequests, g.action),
			rows.Batched(s.Impressions, g.impressions),
			rows.Keyed(s.UsersDeleted, g.deletion),
			rows.Batched(s.InterestMarks, g.marks),
		},
		Outputs: []string{topics.InterestMarks},
		Timer:   g.timer,
	}
}

type group struct {
	cfg     Config
	streams *topics.Streams
	deleted DeletedUsers
	decided Decisions
	words   vocabulary
	owners  []string // of the dictionary, by partition
}

// dictionaries returns an owner of each partition.
func dictionaries(partitions int32) []string {
	owners := make([]string, partitions)
	for i, left := 0, partitions; left > 0; i++ {
		name := fmt.Sprintf("dictionary:%d", i)
		if p := topics.Partition(name, partitions); owners[p] == "" {
			owners[p] = name
			left--
		}
	}
	return owners
}

// interestOf returns the interest that a term means, if it was accepted, be it by way of others it was merged into. What is
// blocked means none, nor does what was merged into it.
func (g *group) interestOf(term string) (schemas.InterestID, bool) {
	const most = 8 // merges may go round
	for range most {
		d, ok := g.decided.Get(term)
		switch {
		case !ok || g.words.why(term) != "":
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

// card takes in what a pin says now.
func (g *group) card(tx *rows.Tx, c *schemas.Card) error {
	if tx.Key() != string(c.Pin) {
		return schemas.Bad(fmt.Sprintf("card: key %.64q: want the pin %.64q", tx.Key(), c.Pin))
	}
	t := pinRows{tx.Own()}
	was, err := t.saying()
	if err != nil || c.Version <= was.Version {
		return err
	}
	is := saying{Version: c.Version, Author: c.Author, Created: c.Created, Interests: c.Interests, Deleted: c.Deleted}
	if !c.Deleted {
		is.Terms = g.words.of(c.Title, nameOf(c.Board))
	}
	out := g.outbox(tx)
	out.terms(was, is)
	if c.Deleted {
		if err := t.withdraw(out, c.Pin); err != nil {
			return err
		}
		is.Terms, is.Interests = nil, nil
	}
	return cmp.Or(put(tx.Own(), []byte{rowSaying}, &is), out.send())
}

// action works off what a user did to a pin.
func (g *group) action(tx *rows.Tx, r *schemas.RelatedRequest) error {
	if err := r.Validate(tx.Key()); err != nil {
		return err
	}
	if g.deleted.Has(r.User) {
		tx.Count("deleted_user")
		return nil
	}
	t := pinRows{tx.Own()}
	said, err := t.saying()
	if err != nil || said.Deleted {
		return err
	}
	seen, err := t.visitor(r.User)
	if err != nil {
		return err
	}
	out, pin, source := g.outbox(tx), schemas.PinID(r.Pin.ID), seen.sourceAt(r.Time, g.cfg.AttributionWindow)
	for _, interest := range g.interests(r.Pin.Interests, said.Terms) {
		out.like(schemas.LikeMark{User: r.User, Interest: interest, Pin: pin, Verb: r.Verb, Weight: r.Weight, Time: r.Time})
		out.event(schemas.EngagementMark{Interest: interest, Source: source, What: cmp.Or(string(r.Verb), "other"), Time: r.Time})
	}
	seen.Liked = true
	return cmp.Or(g.meet(tx, t, r.User, seen), out.send())
}

// impressions works off what a visit showed.
func (g *group) impressions(tx *rows.Tx, i *schemas.Impressions) error {
	out := g.outbox(tx)
	for shown := range i.All() {
		if err := cmp.Or(g.impression(tx, out, i, shown), out.sendMany()); err != nil {
			return err
		}
	}
	return out.send()
}

// impression works off that a pin was shown, and leaves what it says of interests in out.
func (g *group) impression(tx *rows.Tx, out *outbox, i *schemas.Impressions, shown schemas.ShownPin) error {
	t := pinRows{tx.Of(string(shown.Pin))}
	said, err := t.saying()
	switch {
	case err != nil || said.Deleted:
		return err
	case said.Version == 0:
		tx.Count("unknown_pin")
		return nil
	case g.deleted.Has(i.User):
		tx.Count("deleted_user")
		return nil
	}
	seen, err := t.visitor(i.User)
	if err != nil {
		return err
	}
	if i.Time >= seen.Time {
		seen.Source, seen.Time = shown.Source, i.Time
	}
	for _, interest := range g.interests(said.Interests, said.Terms) {
		out.event(schemas.EngagementMark{Interest: interest, Source: shown.Source, What: schemas.ImpressionCount, Time: i.Time})
	}
	return g.meet(tx, t, i.User, seen)
}

// interests are those of a pin: its own, and those that its terms mean.
func (g *group) interests(own []schemas.InterestID, terms []string) []schemas.InterestID {
	all := make([]schemas.InterestID, 0, g.cfg.Interests)
	known := map[schemas.InterestID]bool{}
	add := func(i schemas.InterestID) {
		if i != "" && !known[i] && len(all) < g.cfg.Interests {
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

// meet remembers for a while that a user saw or liked a pin.
func (g *group) meet(tx *rows.Tx, t pinRows, user schemas.UserID, v visitor) error {
	if v.Forget != 0 {
		return t.putVisitor(user, v)
	}
	n, err := t.visitors()
	if err != nil {
		return err
	}
	if n >= g.cfg.MaxSeen {
		tx.Count("crowded")
		return nil
	}
	at := tx.Time().Add(g.cfg.AttributionWindow)
	v.Forget = schemas.MicrosOf(at)
	return cmp.Or(t.own.SetTimer(at, visitorName(user)), t.putVisitors(n+1), t.putVisitor(user, v))
}

// timer forgets who saw or liked a pin, unless it was shown to them again since.
func (g *group) timer(_ *rows.Tx, owner rows.Owner, name []byte, now time.Time) error {
	t := pinRows{owner}
	v, _, err := get[visitor](owner, name)
	if err != nil {
		return err
	}
	at := v.Time.Time().Add(g.cfg.AttributionWindow)
	if v.Source == "" || !at.After(now) {
		return t.forget(name)
	}
	v.Forget = schemas.MicrosOf(at)
	return cmp.Or(owner.SetTimer(at, name), put(owner, name, &v))
}

// deletion ends a user. It notes that before anything else: a like that is under way finds the user gone.
func (g *group) deletion(tx *rows.Tx, d *schemas.DeletedUser) error {
	if tx.Key() != string(d.User) {
		return schemas.Bad(fmt.Sprintf("deleted user: key %.64q: want %.64q", tx.Key(), d.User))
	}
	g.deleted.Note(d.User, d.Time)
	return userRows{tx.Own(), g.cfg}.clear()
}

// marks works off what concerns owners of this partition.
func (g *group) marks(tx *rows.Tx, m *schemas.InterestMarks) error {
	if err := m.Validate(); err != nil {
		return err
	}
	scale, err := decay.Keep(tx.Common(), schemas.MicrosOf(tx.Time()), g.cfg.HalfLife)
	if err != nil {
		return err
	}
	d := dictionary{tx: tx, own: tx.Of(g.owners[tx.Partition()]), cfg: g.cfg, scale: scale}
	for _, t := range m.Terms {
		if err := d.mark(t); err != nil {
			return err
		}
	}
	for _, l := range m.Likes {
		if g.deleted.Has(l.User) {
			tx.Count("deleted_user")
			continue
		}
		if err := (userRows{tx.Of(string(l.User)), g.cfg}).like(tx, l, scale); err != nil {
			return err
		}
	}
	for _, e := range m.Events {
		if err := count(tx.Of(string(e.Interest)), e, g.cfg.Days); err != nil {
			return err
		}
	}
	return nil
}
