package interests_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/smartfeed/smartfeed/internal/testkit/deletedtest"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/internal/testkit/proctest"
	"github.com/smartfeed/smartfeed/processors/interests"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// decisions holds the operators' decisions.
type decisions map[string]schemas.InterestDecision

func (d decisions) Get(term string) (*schemas.InterestDecision, bool) {
	decision, ok := d[term]
	return &decision, ok
}

type rig struct {
	*proctest.Wire
	t      *testing.T
	cfg    interests.Config
	member *proctest.Member
}

// newRig starts the group, for a parallel test.
func newRig(t *testing.T, cfg interests.Config, d decisions) *rig {
	t.Parallel()
	r := &rig{Wire: proctest.New(t), t: t, cfg: cfg}
	r.member = r.Start("a", interests.Group(cfg, r.Kafka.Partitions, r.Streams, deletedtest.Of(), d))
	return r
}

// read retries f until this process owns the partition.
func read[T any](r *rig, f func(interests.Reader) (T, error)) T {
	r.t.Helper()
	var result T
	r.Eventually("a result", func() bool {
		var err error
		result, err = f(interests.Reader{Rows: r.member.View(topics.Interests), Config: r.cfg, Partitions: r.Kafka.Partitions, Now: func() time.Time { return now }})
		if !errors.Is(err, schemas.ErrNotOwner) {
			must.OK(r.t, err)
		}
		return err == nil
	})
	return result
}

// terms returns pins and people of all terms.
func (r *rig) terms() map[string][2]int64 {
	r.t.Helper()
	all := map[string][2]int64{}
	for p := range r.Kafka.Partitions {
		for _, term := range read(r, func(i interests.Reader) ([]schemas.DictionaryTerm, error) {
			return i.Terms(r.t.Context(), p, math.MaxInt, nil)
		}) {
			all[term.Term] = [2]int64{term.Pins, term.People}
		}
	}
	return all
}

// card returns the first version of a pin's card.
func card(pin schemas.PinID, title string, interests ...schemas.InterestID) *schemas.Card {
	c := &schemas.Card{Title: title}
	c.Pin, c.Version, c.Author, c.Interests = pin, 1, "user:author", interests
	return c
}

func (r *rig) card(c *schemas.Card) {
	c.Created, c.Quality = schemas.MicrosOf(now), 1
	proctest.Publish(r.Wire, r.Streams.PinCards, string(c.Pin), c)
}

// Terms count the pins and authors that currently have them, regardless of changes and kills.
func TestTerms_CountCurrentPinsAndAuthors(t *testing.T) {
	cfg := interests.DefaultConfig()
	cfg.MinPins, cfg.MinAuthors, cfg.MaxAuthors = 1, 1, 1000
	r := newRig(t, cfg, nil)
	random := rand.New(rand.NewPCG(5, 6))
	words := strings.Fields("tea oolong kitchen garden copper")
	newest := map[schemas.PinID]*schemas.Card{}
	for i := range 200 {
		c := &schemas.Card{Title: words[random.IntN(5)] + ", " + words[random.IntN(5)]}
		c.Pin, c.Version = schemas.PinID(fmt.Sprintf("pin:%d", random.IntN(40))), schemas.Version(1+random.IntN(1000))
		c.Author, c.Deleted = schemas.UserID(fmt.Sprintf("user:%d", random.IntN(4))), random.IntN(6) == 0
		r.card(c)
		if old := newest[c.Pin]; old == nil || old.Version < c.Version {
			newest[c.Pin] = c
		}
		if i%70 == 35 {
			r.member.Kill()
			r.member.Restart()
		}
	}
	r.WaitIdle()
	pins, people := map[string]int64{}, map[string]map[schemas.UserID]bool{}
	for _, c := range newest {
		if c.Deleted {
			continue
		}
		terms := strings.Split(c.Title, ", ")
		slices.Sort(terms)
		for _, w := range slices.Compact(terms) {
			pins[w]++
			if people[w] == nil {
				people[w] = map[schemas.UserID]bool{}
			}
			people[w][c.Author] = true
		}
	}
	want := map[string][2]int64{}
	for w, n := range pins {
		want[w] = [2]int64{n, int64(len(people[w]))}
	}
	expect.NoDiff(t, r.terms(), want, "pins and people of terms")
	expect.Equal(t, len(want), len(words), "terms")
}

// Frequent terms are found among any number of rare ones, in bounded space.
func TestTerms_FindsFrequentInBoundedSpace(t *testing.T) {
	cfg := interests.DefaultConfig()
	cfg.MaxTerms, cfg.MinPins, cfg.MinAuthors = 10, 5, 3
	r := newRig(t, cfg, nil)
	for i := range 600 {
		c := &schemas.Card{Title: fmt.Sprintf("rare%c%c%c", 'a'+i%26, 'a'+i/26%26, 'z')}
		if i%4 == 0 {
			c.Title = "oolong"
		}
		c.Pin, c.Version, c.Author = schemas.PinID(fmt.Sprintf("pin:%d", i)), 1, schemas.UserID(fmt.Sprintf("user:%d", i%7))
		r.card(c)
	}
	r.WaitIdle()
	got := r.terms()
	if n := got["oolong"]; n[0] < 100 || n[0] > 150 || n[1] != 7 {
		t.Errorf("oolong: %v of %v, want most of 150 pins by 7", n, got)
	}
	byKind := map[byte]int{}
	for _, row := range r.Rows(topics.Interests, "") {
		if strings.HasPrefix(row.Owner, "dictionary:") {
			byKind[row.Name[0]]++
		}
	}
	if limit := cfg.MaxTerms * int(r.Kafka.Partitions); byKind['t'] > limit || byKind['c'] != byKind['t'] || byKind['t'] < cfg.MaxTerms {
		t.Errorf("rows by kind: %v, want at most %d terms, each with its rank", byKind, limit)
	}
}

// Actions give users interests with evidence, and count for the source of the impression. A deletion removes the user's
// interests.
func TestInterests_EvidenceAndEngagementBySource(t *testing.T) {
	cfg := interests.DefaultConfig()
	cfg.EngagementRetention = 9600 * time.Hour
	r := newRig(t, cfg, decisions{
		"oolong":   {State: schemas.TermMerged, Into: "wulong"},
		"wulong":   {State: schemas.TermAccepted, Interest: "interest:oolong"},
		"rejected": {State: schemas.TermRejected},
	})
	for i := range 2 {
		r.card(card(schemas.PinID(fmt.Sprintf("pin:%d", i)), "Oolong, rejected", "interest:tea"))
	}
	r.WaitIdle()
	at := schemas.MicrosOf(now.Add(-30 * 24 * time.Hour)) // a half-life
	act := func(user schemas.UserID, pin string, verb schemas.Verb, weight float64, at schemas.Micros) {
		proctest.Publish(r.Wire, r.Streams.RelatedRequests, pin, &schemas.RelatedRequest{User: user, Verb: verb, Weight: weight, Time: at,
			Pin: schemas.Neighbor{ID: schemas.ID(pin), Version: 1, Quality: 1, Facets: schemas.Facets{Interests: []schemas.InterestID{"interest:tea"}}}})
	}
	show := func(user schemas.UserID, pin string, source schemas.Source) {
		r.show(&schemas.Impressions{User: user, Time: at, Pins: []schemas.ShownPin{{Pin: schemas.PinID(pin), Source: source}}})
	}
	show("user:1", "pin:0", schemas.Following)
	show("user:2", "pin:0", schemas.Related)
	show("user:2", "pin:unknown", schemas.Related)
	r.WaitIdle()
	act("user:1", "pin:0", "save", 4, at)
	act("user:1", "pin:1", "click", 2, schemas.MicrosOf(now))
	act("user:2", "pin:0", "save", 4, at)
	r.WaitIdle()
	known := func(user schemas.UserID) []schemas.UserInterest {
		return read(r, func(i interests.Reader) ([]schemas.UserInterest, error) { return i.Interests(t.Context(), user, 10) })
	}
	evidence := schemas.List[schemas.Evidence]{
		{Pin: "pin:1", Verb: "click", Weight: 2, Time: schemas.Timestamp(schemas.MicrosOf(now))}, {Pin: "pin:0", Verb: "save", Weight: 4, Time: schemas.Timestamp(at)},
	}
	got := known("user:1")
	for i, id := range []schemas.InterestID{"interest:oolong", "interest:tea"} {
		if len(got) != 2 || got[i].Interest != id || math.Abs(got[i].Strength-4) > 1e-6 || math.Abs(got[i].Share-0.5) > 1e-9 || !slices.Equal(got[i].Evidence, evidence) {
			t.Fatalf("interests of user:1: %+v, want tea and oolong, 4 now, with both actions", got)
		}
	}
	want := []schemas.SourceEngagement{
		{Source: "direct", Counts: map[string]int64{"click": 1}},
		{Source: "following", Counts: map[string]int64{"impression": 1, "save": 1}},
		{Source: "related", Counts: map[string]int64{"impression": 1, "save": 1}},
	}
	engaged := func(days int) []schemas.SourceEngagement {
		return read(r, func(i interests.Reader) ([]schemas.SourceEngagement, error) {
			return i.Engagement(t.Context(), "interest:oolong", days)
		})
	}
	expect.NoDiff(t, engaged(31), want, "engagement")
	expect.NoDiff(t, engaged(1), want[:1], "engagement of today")
	proctest.Publish(r.Wire, r.Streams.UsersDeleted, "user:2", &schemas.DeletedUser{User: "user:2"})
	r.WaitIdle()
	expect.Equal(t, len(known("user:2")), 0, "interests of a deleted user")
	for _, row := range r.Rows(topics.Interests, "") {
		if row.Owner == "user:2" || strings.Contains(string(row.Name), "user:2") {
			t.Errorf("row %q of %s contains a deleted user", row.Name, row.Owner)
		}
	}
}

// like publishes a user's action on a pin with an arrival time; zero: now.
func (r *rig) like(user schemas.UserID, pin schemas.PinID, arrival time.Time) {
	r.t.Helper()
	proctest.PublishAt(r.Wire, r.Streams.RelatedRequests, arrival, string(pin), &schemas.RelatedRequest{
		User: user, Verb: "save", Weight: 4, Time: schemas.MicrosOf(now),
		Pin: schemas.Neighbor{ID: schemas.ID(pin), Version: 1, Quality: 1, Facets: schemas.Facets{Interests: []schemas.InterestID{"interest:tea"}}},
	})
}

func TestInterests_SendBadRecordsToDeadLetters(t *testing.T) {
	r := newRig(t, interests.DefaultConfig(), nil)
	proctest.Publish(r.Wire, r.Streams.PinCards, "pin:2", &schemas.Card{PinVersion: schemas.PinVersion{Pin: "pin:1", Version: 1, Quality: 1}})
	r.show(&schemas.Impressions{Pins: []schemas.ShownPin{{Pin: "pin:1"}, {Pin: r.pinOfNextPartition("pin:1")}}})
	proctest.Publish(r.Wire, r.Streams.UsersDeleted, "user:2", &schemas.DeletedUser{User: "user:1"})
	proctest.Publish(r.Wire, r.Streams.RelatedRequests, "pin:2", &schemas.RelatedRequest{})
	proctest.PublishTo(r.Wire, r.Streams.InterestMarks, 0, "k", time.Time{}, &schemas.InterestMarks{Likes: []schemas.LikeMark{{User: "user:1"}}})
	r.WaitIdle()
	expect.Equal(t, len(proctest.Drain(r.Wire, r.Streams.DeadLetters)), 5, "dead letters")
}

// Records of a user that arrive after the deletion restore nothing, even if this process has not read users-deleted yet.
func TestMarks_LikeAfterDeletionIsDropped(t *testing.T) {
	t.Parallel()
	w, deleted := proctest.New(t), deletedtest.Of()
	w.Start("a", interests.Group(interests.DefaultConfig(), w.Kafka.Partitions, w.Streams, deleted, decisions{}))
	like := func(user schemas.UserID) {
		proctest.PublishTo(w, w.Streams.InterestMarks, topics.Partition(string(user), w.Kafka.Partitions), "k", time.Time{},
			&schemas.InterestMarks{Likes: []schemas.LikeMark{{User: user, Interest: "interest:tea", Pin: "pin:1", Verb: "save", Weight: 4, Time: 1}}})
		w.WaitIdle()
	}
	like("user:1")
	must.Equal(t, len(w.Rows(topics.Interests, "user:1")), 1, "rows of a like")
	proctest.Publish(w, w.Streams.UsersDeleted, "user:1", &schemas.DeletedUser{User: "user:1", Time: 7})
	w.WaitIdle()
	like("user:1")
	like("user:2")
	expect.Empty(t, w.Rows(topics.Interests, "user:1"), "rows of a deleted user")
	expect.Equal(t, len(w.Rows(topics.Interests, "user:2")), 1, "rows of another user")
	if at, noted := deleted.Load(schemas.UserID("user:1")); !noted || at != schemas.Micros(7) {
		t.Errorf("deletion noted at %v, want 7", at)
	}
}

// Earlier programs reported deleted pins by likes without an interest: they change no row.
func TestMarks_LikeWithoutInterestIsIgnored(t *testing.T) {
	r := newRig(t, interests.DefaultConfig(), nil)
	m := like("", 1)
	m.Likes = append(m.Likes, like("interest:tea", 1).Likes...)
	r.mark(1, m)
	r.WaitIdle()
	expect.Equal(t, len(r.Rows(topics.Interests, marked)), 1, "rows: only the interest")
}
