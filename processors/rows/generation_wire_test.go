package rows_test

import (
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/smartfeed/smartfeed/processors/proctest"
	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// counting is a group that counts the records of each key, and says each count.
func counting(w *proctest.Wire, generation int) rows.Group {
	return rows.Group{
		Name: topics.Pools, Generation: generation,
		Inputs: []rows.Input{
			rows.Keyed(w.Streams.Returns, func(tx *rows.Tx, _ *schemas.Return) error {
				own, name := tx.Own(), []byte("n")
				was, err := own.Get(name)
				if err != nil {
					return err
				}
				n := uint64(1)
				if was != nil {
					n += binary.BigEndian.Uint64(was)
				}
				if err := own.Put(name, binary.BigEndian.AppendUint64(nil, n)); err != nil {
					return err
				}
				return tx.Emit(topics.Impressions, tx.Key(), fmt.Append(nil, n))
			}),
		},
		Outputs: []string{topics.Impressions},
	}
}

// generations is a wire with both generations of the counting group on it.
type generations struct {
	*proctest.Wire
	t         *testing.T
	published int
}

const keys = 7

// publish publishes a record of each key, and one that nobody can read.
func (g *generations) publish(rounds int) {
	for range rounds {
		for n := range keys {
			key := fmt.Sprint("user:", n)
			proctest.Publish(g.Wire, g.Streams.Returns, key, &schemas.Return{User: schemas.UserID(key)})
		}
		g.PublishBytes(topics.Returns, "user:0", []byte("nobody can read this"))
		g.published++
	}
}

// set says which generations there are, so that they are waited for.
func (g *generations) set(active, building int) {
	g.t.Helper()
	client, err := g.Kafka.Client()
	if err != nil {
		g.t.Fatal(err)
	}
	defer client.Close()
	now := topics.Generation{Group: topics.Pools, Active: active, Building: building}
	if err := topics.SetGeneration(g.t.Context(), client, now); err != nil {
		g.t.Fatal(err)
	}
}

// said is how often each count of each key was said.
func (g *generations) said() map[string]int {
	said := map[string]int{}
	for _, r := range g.Records(topics.Impressions) {
		said[string(r.Key)+" "+string(r.Value)]++
	}
	return said
}

// Whatever is killed meanwhile, each count is said by one generation, and both come to the same rows.
func TestEachRecordIsSpokenOfByOneGeneration(t *testing.T) {
	spokenOfByOne(t, proctest.New(t))
}

func spokenOfByOne(t *testing.T, w *proctest.Wire) {
	g := &generations{Wire: w, t: t}
	first := g.Start("a", counting(g.Wire, 1))
	g.publish(20)
	g.WaitIdle()
	g.CreateTopics(topics.TableOf("pools.2"))
	g.publish(10) // some of it is under way
	copied, err := rows.Copy(t.Context(), g.Kafka, topics.Pools, 1, 2, func(_, _, _ []byte) bool { return true }, func(int) {})
	if err != nil || copied.Rows == 0 || len(copied.Offsets) != int(g.Kafka.Partitions) {
		t.Fatalf("copied %+v, %v", copied, err)
	}
	g.set(1, 2)
	second := g.Start("b", counting(g.Wire, 2))
	g.publish(20)
	first.Kill()
	second.Kill()
	first.Restart()
	second.Restart()
	for range 2 { // the marks are sent again by a command that is started again
		if err := topics.CutOver(t.Context(), g.Kafka, []string{topics.Returns}, topics.Pools, 2); err != nil {
			t.Fatal(err)
		}
		g.publish(10)
	}
	first.Kill()
	second.Kill()
	second.Restart()
	first.Restart()
	g.publish(10)
	g.WaitIdle()

	want := map[string]int{}
	for n := range keys {
		for count := range g.published {
			want[fmt.Sprintf("user:%d %d", n, count+1)] = 1
		}
	}
	if diff := cmp.Diff(want, g.said()); diff != "" {
		t.Errorf("counts (-want +said):\n%s", diff)
	}
	if letters := len(proctest.Drain(g.Wire, g.Streams.DeadLetters)); letters != g.published {
		t.Errorf("%d dead letters of %d bad records", letters, g.published)
	}
	if diff := cmp.Diff(g.Rows(topics.Pools, ""), g.Rows("pools.2", "")); diff != "" {
		t.Errorf("rows (-first +second):\n%s", diff)
	}
}
