package proctest

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
)

// Case describes events and the state that a group must reach from them, independent of their order and repetitions.
type Case[E, S any] struct {
	Events  []E
	Start   func(w *Wire) *Member // on a new Wire, once per arrangement
	Publish func(w *Wire, event E)
	State   func(w *Wire) S // called when all records are processed
	Want    S               // computed without Kafka, by an oracle
	Options []cmp.Option    // for the comparison of State and Want
}

// Converge publishes the events of a case in n arrangements and compares each end state with Want. The first arrangement is
// the events as they are. The others are shuffled, repeat some events, and are cut into pieces. Between two pieces, the
// member is killed or stopped, and restarted. The arrangements are the same in each run of the test. A failure reports the
// arrangement and its order.
func Converge[E, S any](t *testing.T, n int, c Case[E, S]) {
	t.Helper()
	for i := range n {
		t.Run(fmt.Sprintf("arrangement_%d", i), func(t *testing.T) {
			pieces := [][]E{c.Events}
			if i > 0 {
				pieces = Arrange(rand.New(rand.NewPCG(1, uint64(i))), c.Events)
			}
			w := New(t)
			m := c.Start(w)
			for at, piece := range pieces {
				if at > 0 {
					interrupt(m, at)
				}
				for _, e := range piece {
					c.Publish(w, e)
				}
			}
			w.WaitIdle()
			expect.NoDiffBut(t, cmp.Options(c.Options), c.State(w), c.Want, "end state in the order %v", pieces)
		})
	}
}

// interrupt kills or stops the member, in turn, and restarts it.
func interrupt(m *Member, at int) {
	if at%2 == 1 {
		m.Kill()
	} else {
		m.Stop()
	}
	m.Restart()
}

// Arrange shuffles events, repeats about a third of them once or more, and cuts the sequence into one to four pieces.
func Arrange[E any](random *rand.Rand, events []E) [][]E {
	var all []E
	for _, e := range events {
		all = append(all, e)
		for random.IntN(3) == 0 {
			all = append(all, e)
		}
	}
	random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	var pieces [][]E
	for cuts := random.IntN(4); cuts > 0 && len(all) > 1; cuts-- {
		at := 1 + random.IntN(len(all)-1)
		pieces, all = append(pieces, all[:at]), all[at:]
	}
	return append(pieces, all)
}
