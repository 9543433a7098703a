package simulate

import (
	_ "embed"
	"fmt"
	"hash/fnv"
	"iter"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/smartfeed/smartfeed/internal/convert"
	"github.com/smartfeed/smartfeed/schemas"
)

// dimensions is the length of embeddings.
const dimensions = 16

// world generates the initial data. It derives everything from the seed and an index, and stores nothing. An index
// identifies a user, an interest or a pin.
type world struct {
	Config
	words *vocabulary
}

func newWorld(cfg Config) *world { return &world{Config: cfg, words: newVocabulary()} }

// random returns the source of random numbers for the i-th item of a kind.
func (w *world) random(kind string, i int) *rand.Rand {
	h := fnv.New64a()
	h.Write([]byte(kind))
	return rand.New(rand.NewPCG(w.Seed^h.Sum64(), uint64(i)))
}

// popular returns an index below n by a power law: lower indexes are more likely.
func popular(r *rand.Rand, n int) int {
	if n < 2 {
		return 0
	}
	return int(rand.NewZipf(r, 1.2, 4, uint64(n-1)).Uint64())
}

// nth returns the i-th word. After the last word, it appends a number.
func nth(words []string, i int) string {
	if round := i / len(words); round > 0 {
		return fmt.Sprintf("%s-%d", words[i%len(words)], round+1)
	}
	return words[i]
}

func (w *world) userName(person int) string { return nth(w.words.names, person) }

func (w *world) user(person int) schemas.UserID { return schemas.UserID("user:" + w.userName(person)) }

func (w *world) interestName(i int) string { return nth(w.words.interests, i) }

func (w *world) interest(i int) schemas.InterestID {
	return schemas.InterestID("interest:" + w.interestName(i))
}

// tastes returns the two to six interests that a user follows, the strongest first.
func (w *world) tastes(person int) []int {
	r := w.random("tastes", person)
	want := min(2+r.IntN(5), w.Interests)
	var tastes []int
	for tries := 0; len(tastes) < want && tries < 50; tries++ {
		if i := popular(r, w.Interests); !slices.Contains(tastes, i) {
			tastes = append(tastes, i)
		}
	}
	return tastes
}

// board returns a user's n-th board. The first boards are named after the user's interests, further ones after themes.
func (w *world) board(person, n int) schemas.BoardID {
	tastes := w.tastes(person)
	about := ""
	if n < len(tastes) {
		about = w.interestName(tastes[n])
	} else {
		about = nth(w.words.themes, n-len(tastes))
	}
	return schemas.BoardID("board:" + w.userName(person) + "-" + about)
}

// followees returns the users and boards that a user follows, without duplicates and without the user.
func (w *world) followees(person int) []schemas.ID {
	r := w.random("followees", person)
	var followees []schemas.ID
	add := func(id schemas.ID) {
		if !slices.Contains(followees, id) {
			followees = append(followees, id)
		}
	}
	if person > 0 && person <= w.Star {
		add(schemas.ID(w.user(0)))
	}
	for range w.people(r) {
		if other := popular(r, w.Users); other != person {
			add(schemas.ID(w.user(other)))
		}
	}
	for range min(w.BoardsPerUser, 2) {
		if other := popular(r, w.Users); other != person {
			add(schemas.ID(w.board(other, r.IntN(w.BoardsPerUser))))
		}
	}
	return followees
}

// people returns how many users a user follows.
func (w *world) people(r *rand.Rand) int {
	if w.Follows > 0 {
		return w.Follows
	}
	return 3 + popular(r, 40)
}

// pin holds the data of a pin event.
type pin struct {
	id        schemas.PinID
	author    int
	interests []int
	board     schemas.BoardID
	title     string
	embedding []float32
}

// pin returns the n-th initial pin.
func (w *world) pin(n int) pin {
	r := w.random("pin", n)
	author := popular(r, w.Users)
	return w.newPin(r, author, fmt.Sprintf("%s-%d", w.userName(author), n))
}

// newPin generates a pin in one of the author's interests that has a board. It adds a second interest with a probability
// of up to one third.
func (w *world) newPin(r *rand.Rand, author int, name string) pin {
	tastes := w.tastes(author)
	about := popular(r, min(len(tastes), max(1, w.BoardsPerUser)))
	p := pin{
		id:        schemas.PinID("pin:" + name),
		author:    author,
		interests: tastes[about : about+1],
		title:     w.title(r, tastes[about]),
	}
	if second := tastes[r.IntN(len(tastes))]; second != tastes[about] && r.IntN(3) == 0 {
		p.interests = []int{tastes[about], second}
	}
	if w.BoardsPerUser > 0 {
		p.board = w.board(author, about)
	}
	p.embedding = w.embedding(r, p.interests)
	return p
}

func (w *world) title(r *rand.Rand, interest int) string {
	words := w.words
	subjects := words.subjects[interest%len(words.subjects)]
	title := pick(r, words.adjectives) + " " + pick(r, subjects) + pick(r, words.tails)
	return strings.ToUpper(title[:1]) + title[1:]
}

// embedding returns a unit vector near those of the interests: similar items have similar directions.
func (w *world) embedding(r *rand.Rand, interests []int) []float32 {
	vector := make([]float64, dimensions)
	for _, i := range interests {
		direction := w.random("direction", i)
		for d := range vector {
			vector[d] += direction.NormFloat64()
		}
	}
	length := 0.0
	for d := range vector {
		vector[d] += 0.3 * r.NormFloat64()
		length += vector[d] * vector[d]
	}
	out := make([]float32, dimensions)
	for d := range vector {
		out[d] = float32(vector[d] / math.Sqrt(length))
	}
	return out
}

func pick[T any](r *rand.Rand, from []T) T { return from[r.IntN(len(from))] }

// users yields the events of all users.
func (w *world) users() iter.Seq[schemas.Line] {
	return func(yield func(schemas.Line) bool) {
		for person := range w.Users {
			if !yield(w.profile(person)) {
				return
			}
		}
	}
}

func (w *world) profile(person int) schemas.Line {
	r := w.random("profile", person)
	tastes := w.tastes(person)
	return schemas.NewLine(&schemas.UserEvent{
		Event:      w.founding("user", schemas.Update, person, schemas.ID(w.user(person))),
		Interests:  w.interestsOf(tastes),
		Attributes: map[string]string{"city": pick(r, w.words.cities)},
		Embedding:  w.embedding(r, tastes),
	})
}

// follows yields the initial follows.
func (w *world) follows() iter.Seq[schemas.Line] {
	return func(yield func(schemas.Line) bool) {
		for person := range w.Users {
			for _, followee := range w.edges(person) {
				e := &schemas.FollowEvent{Event: w.founding("follow", schemas.Follow, person, followee)}
				if !yield(schemas.NewLine(e)) {
					return
				}
			}
		}
	}
}

// edges returns all initial followees of a user.
func (w *world) edges(person int) []schemas.ID {
	return append(w.followees(person), convert.All(w.tastes(person), func(i int) schemas.ID { return schemas.ID(w.interest(i)) })...)
}

// pins yields the initial pins, oldest first, the newest just before now.
func (w *world) pins(now time.Time) iter.Seq[schemas.Line] {
	return func(yield func(schemas.Line) bool) {
		for n := range w.Pins {
			age := past / time.Duration(w.Pins) * time.Duration(w.Pins-n)
			p := w.pin(n)
			id := fmt.Sprintf("sim/%d/pin/%d", w.Seed, n)
			if !yield(w.create(p, id, schemas.MicrosOf(now.Add(-age)))) {
				return
			}
		}
	}
}

func (w *world) create(p pin, eventID string, at schemas.Micros) schemas.Line {
	return schemas.NewLine(&schemas.PinEvent{
		Event:      w.event(eventID, at, p.author, schemas.Create, schemas.ID(p.id)),
		Board:      p.board,
		Interests:  w.interestsOf(p.interests),
		Title:      p.title,
		Link:       "https://pins.example/" + schemas.ID(p.id).Name(),
		Attributes: map[string]string{"topic": w.interestName(p.interests[0])},
		Embedding:  p.embedding,
	})
}

func (w *world) interestsOf(interests []int) []schemas.InterestID {
	return convert.All(interests, w.interest)
}

// founding returns an initial event, at the time founded.
func (w *world) founding(kind string, v schemas.Verb, person int, object schemas.ID) schemas.Event {
	return w.event(fmt.Sprintf("sim/%d/%s/%d/%s", w.Seed, kind, person, object), founded, person, v, object)
}

func (w *world) event(id string, at schemas.Micros, actor int, v schemas.Verb, object schemas.ID) schemas.Event {
	return schemas.Event{ID: id, Time: at, Actor: w.user(actor), Verb: v, Object: object}
}

// words has a line per list: its name, a colon, and its words, separated by commas. The list of an interest has the
// subjects of its pins.
//
//go:embed words.txt
var words string

// vocabulary is the parsed word lists.
type vocabulary struct {
	names, cities, adjectives, themes, surfaces, devices []string
	tails                                                []string // each with a leading space, the first empty
	interests                                            []string
	subjects                                             [][]string // by interest
}

func newVocabulary() *vocabulary {
	v, lists := &vocabulary{tails: []string{""}}, map[string][]string{}
	for line := range strings.Lines(words) {
		name, list, ok := strings.Cut(strings.TrimSpace(line), ": ")
		if !ok || strings.HasPrefix(name, "#") {
			continue
		}
		lists[name] = strings.Split(list, ", ")
		if name, ok := strings.CutPrefix(name, "interest:"); ok {
			v.interests, v.subjects = append(v.interests, name), append(v.subjects, strings.Split(list, ", "))
		}
	}
	v.names, v.cities, v.adjectives, v.themes = lists["names"], lists["cities"], lists["adjectives"], lists["themes"]
	v.surfaces, v.devices = lists["surfaces"], lists["devices"]
	for _, tail := range lists["tails"] {
		v.tails = append(v.tails, " "+tail)
	}
	return v
}
