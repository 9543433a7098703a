package proctest

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Case says how events come to a group and what they must come to, in whatever order and however often they arrive.
type Case[E, S any] struct {
	Events  []E
	Start   func(w *Wire) *Member // on a new wire, for each arrangement
	Publish func(w *Wire, event E)
	State   func(w *Wire) S // read when all is worked off
	Want    S               // by an oracle that knows no Kafka
	Options []cmp.Option    // of the comparison
}

// Converge publishes the events of a case in n arrangements and holds the end state of each against the oracle's. The
// first arrangement is the events as they are. The others are shuffled, repeat some events, and are cut into pieces,
// between which the member is killed and started again or moves its partitions. They are the same in each run of the
// test; a failure names the arrangement and its order.
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
			if diff := cmp.Diff(c.Want, c.State(w), c.Options...); diff != "" {
				t.Errorf("end state (-want +got):\n%s\nin the order %v", diff, pieces)
			}
		})
	}
}

// interrupt ends the member in turn as a crash would and in order, and starts it again.
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
