package stream

import (
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/smartfeed/smartfeed/schemas"
)

// size is the size of a workload. Followers per author follow a power law with one giant author, and 0.1 % of the readers hold
// a tenth of the edges. Activity of users and popularity of pins are Zipfian.
type size struct {
	users, meanFollowers, giant, giantPins, pins, actions int
	lasting                                               time.Duration // of requests at one rate
}

func sizes() map[string]size {
	return map[string]size{
		"tiny":   {200, 10, 100, 3, 1500, 5000, 5 * time.Second},
		"small":  {2000, 25, 1000, 10, 5000, 100_000, 20 * time.Second},
		"medium": {50_000, 30, 20_000, 10, 20_000, 1_000_000, 20 * time.Second},
		"full":   {1000, 200, 500, 10, 5000, 100_000, 20 * time.Second}, // every pool is at its limit
	}
}

const (
	window       = 96 * time.Hour // of pins and actions, before the end
	interests    = 64
	dimensions   = 32 // of a pin's embedding
	exponent     = 2.1
	unfollows    = 0.02 // per follow; a fifth of them follow again
	superReaders = 0.1  // share of the edges that 0.1 % of the readers hold
)

// workload is a product. The same size, seed and end lead to the same events.
type workload struct {
	size
	seed   uint64
	end    time.Time
	rank   []int // user by rank; rank 0 is the giant author
	edges  []edge
	pinned []schemas.Micros // creation of each pin
	by     []int            // author of each pin, after pinEvents
}

type edge struct{ author, reader uint32 }

func newWorkload(s size, seed uint64, end time.Time) *workload {
	w := &workload{size: s, seed: seed, end: end}
	w.rank = w.rng(1).Perm(s.users)
	w.drawEdges()
	step := int64(window/time.Microsecond) / int64(s.pins+1)
	rng := w.rng(4)
	for i := range s.pins {
		w.pinned = append(w.pinned, w.start()+schemas.Micros(int64(i+1)*step+rng.Int64N(step/2)))
	}
	return w
}

func (w *workload) rng(salt uint64) *rand.Rand { return rand.New(rand.NewPCG(w.seed, salt)) }

func (w *workload) start() schemas.Micros { return schemas.MicrosOf(w.end.Add(-window)) }

func user(n int) schemas.UserID { return schemas.UserID(fmt.Sprint("user:", n)) }

func pinID(n int) schemas.ID { return schemas.ID(fmt.Sprint("pin:", n)) }

// drawEdges draws each author's readers. Followers by rank are proportional to rank^(-1/(exponent-1)).
func (w *workload) drawEdges() {
	rng, seen := w.rng(3), make([]uint32, w.users)
	for rank, n := range w.followers() {
		author, mark := w.rank[rank], uint32(rank+1)
		for got := 0; got < n; {
			reader := rng.IntN(w.users)
			if rng.Float64() < superReaders {
				if s := w.rank[w.users-1-rng.IntN(max(1, w.users/1000))]; seen[s] != mark {
					reader = s
				}
			}
			if reader != author && seen[reader] != mark {
				seen[reader] = mark
				w.edges = append(w.edges, edge{uint32(author), uint32(reader)})
				got++
			}
		}
	}
	rng.Shuffle(len(w.edges), func(i, j int) { w.edges[i], w.edges[j] = w.edges[j], w.edges[i] })
}

// followers returns the number of followers by rank.
func (w *workload) followers() []int {
	weight := func(rank int) float64 { return math.Pow(float64(rank), -1/(exponent-1)) }
	sum := 0.0
	for rank := 1; rank < w.users; rank++ {
		sum += weight(rank)
	}
	counts, carry := make([]int, w.users), 0.0
	counts[0] = w.giant
	for rank := 1; rank < w.users; rank++ {
		want := float64(w.users*w.meanFollowers-w.giant)*weight(rank)/sum + carry
		counts[rank] = min(int(want), w.users/4)
		carry = want - float64(counts[rank])
	}
	return counts
}

func line(e schemas.Input) schemas.Line { return schemas.NewLine(e) }

func (w *workload) profiles() iter.Seq[schemas.Line] {
	return func(yield func(schemas.Line) bool) {
		rng := w.rng(2)
		for n := range w.users {
			ok := yield(line(&schemas.UserEvent{
				Event: schemas.Event{
					ID: fmt.Sprint("u-", n), Time: w.start() - schemas.Micros(w.users-n), Actor: user(n), Verb: schemas.Update, Object: schemas.ID(user(n)),
				},
				Interests: drawInterests(rng, 5), Attributes: map[string]string{"country": fmt.Sprint("c", rng.IntN(20)), "age": fmt.Sprint(13 + rng.IntN(60))},
			}))
			if !ok {
				return
			}
		}
	}
}

func drawInterests(rng *rand.Rand, most int) []schemas.InterestID {
	ids := make([]schemas.InterestID, 0, most)
	for n := 1 + rng.IntN(most); len(ids) < n; {
		if id := schemas.InterestID(fmt.Sprint("interest:", rng.IntN(interests))); !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids
}

// follows are the edges in random order, with earlier edges removed in between.
func (w *workload) follows() iter.Seq[schemas.Line] {
	return func(yield func(schemas.Line) bool) {
		rng, n, due, removed := w.rng(6), 0, 0.0, make([]bool, len(w.edges))
		send := func(e edge, verb schemas.Verb) bool {
			n++
			return yield(line(&schemas.FollowEvent{Event: schemas.Event{
				ID: fmt.Sprint("f-", n), Time: w.start() - schemas.Micros(2*len(w.edges)-n), Actor: user(int(e.reader)), Verb: verb, Object: schemas.ID(user(int(e.author))),
			}}))
		}
		for i, e := range w.edges {
			if !send(e, schemas.Follow) {
				return
			}
			for due += unfollows; due >= 1; due-- {
				j := rng.IntN(i + 1)
				if removed[j] {
					continue
				}
				removed[j] = rng.IntN(5) > 0
				if !send(w.edges[j], schemas.Unfollow) || !removed[j] && !send(w.edges[j], schemas.Follow) {
					return
				}
			}
		}
	}
}

func (w *workload) pinEvents() iter.Seq[schemas.Line] {
	return func(yield func(schemas.Line) bool) {
		rng := w.rng(5)
		centers := make([][dimensions]float64, interests)
		for i := range centers {
			for k := range dimensions {
				centers[i][k] = rng.NormFloat64() / 4
			}
		}
		for i, at := range w.pinned {
			author := w.rank[1+rng.IntN(w.users-1)]
			if each := w.pins / w.giantPins; i%each == each/2 {
				author = w.rank[0]
			}
			w.by = append(w.by, author)
			about := drawInterests(rng, 3)
			center, vector := centers[len(about[0])*7%interests], make([]float32, dimensions)
			for k := range vector {
				vector[k] = float32(center[k] + rng.NormFloat64()/16)
			}
			ok := yield(line(&schemas.PinEvent{
				Event: schemas.Event{ID: fmt.Sprint("p-", i), Time: at, Actor: user(author), Verb: schemas.Create, Object: pinID(i)},
				Board: board(author, rng), Interests: about, Title: fmt.Sprint("blue garden ", i), Link: fmt.Sprint("https://example.com/", i),
				Attributes: map[string]string{"kind": []string{"image", "video", "product"}[rng.IntN(3)]}, Embedding: vector,
			}))
			if !ok {
				return
			}
		}
	}
}

// readers is the number of users that send requests: the first ones, whose activity is random.
func (w *workload) readers() int { return min(w.users, 5000) }

// offers are random pins for each reader, from another system: enough for twenty visits.
func (w *workload) offers(salt uint64) iter.Seq[schemas.Line] {
	return func(yield func(schemas.Line) bool) {
		rng := w.rng(salt)
		for n := range w.readers() {
			o := &schemas.Offer{ID: fmt.Sprint("o-", salt, "-", n), Time: schemas.MicrosOf(w.end), User: user(n), Source: "editors"}
			for _, pin := range rng.Perm(w.pins)[:min(500, w.pins)] {
				o.Candidates = append(o.Candidates, schemas.Candidate{
					Pin: schemas.PinID(pinID(pin)), Facets: schemas.Facets{Author: user(w.by[pin])}, Created: w.pinned[pin], PoolScore: schemas.PoolScore(rng.Float64()),
				})
			}
			if !yield(line(o)) {
				return
			}
		}
	}
}

func board(owner int, rng *rand.Rand) schemas.BoardID {
	return schemas.BoardID(fmt.Sprintf("board:%d-%d", owner, rng.IntN(3)))
}

// acts are the actions in the order of their times. The newest pins are the most popular. A pin exists when it is acted on.
func (w *workload) acts() iter.Seq[schemas.Line] {
	return func(yield func(schemas.Line) bool) {
		rng := w.rng(7)
		actors := rand.NewZipf(rng, 1.1, 20, uint64(w.users-1))
		popular := rand.NewZipf(rng, 1.05, 50, uint64(w.pins-1))
		first := w.pinned[min(10, w.pins-1)]
		step := int64(schemas.MicrosOf(w.end)-first) / int64(w.actions+1)
		known := 0
		for i := range w.actions {
			at := first + schemas.Micros(int64(i+1)*step+rng.Int64N(max(1, step/2)))
			for known < w.pins && w.pinned[known] < at {
				known++
			}
			actor := w.rank[actors.Uint64()]
			e := &schemas.ActionEvent{
				Event: schemas.Event{
					ID: fmt.Sprint("a-", i), Time: at, Actor: user(actor), Verb: drawVerb(rng), Object: pinID(known - 1 - int(popular.Uint64())%known),
				},
				Surface:    []string{"home", "home", "search", "related", "board"}[rng.IntN(5)],
				Attributes: map[string]string{"device": []string{"ios", "android", "web"}[rng.IntN(3)], "dwell_ms": fmt.Sprint(rng.IntN(30_000))},
			}
			if e.Verb == schemas.Save {
				e.Board = board(actor, rng)
			}
			if !yield(line(e)) {
				return
			}
		}
	}
}

func drawVerb(rng *rand.Rand) schemas.Verb {
	switch x := rng.IntN(100); {
	case x < 72:
		return schemas.View
	case x < 87:
		return schemas.Click
	case x < 98:
		return schemas.Save
	}
	return schemas.Hide
}
