package topics

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/smartfeed/smartfeed/schemas"
)

// Generations. A group of rows can be built anew beside itself: under another name, with rows of its own, from the same
// inputs. Which generation is active, and which is being built, is one record a group on a compacted topic that every process
// follows. When a record of an input carries the cut-over to a generation, the one before falls silent behind it, and the
// new one is active from there on: so for every record of an input one of them emits.

// FirstGeneration is the number of a group that was never built anew.
const FirstGeneration = 1

// Generation says which generations of a group there are. Topic generations, key: Group, JSON.
type Generation struct {
	Group    string `json:"group"`
	Active   int    `json:"active"`             // which one answers and emits
	Building int    `json:"building,omitempty"` // 0: none
	// Source says of what is being built whose candidates it was begun without; "": of every source that followees bring.
	Source schemas.Source `json:"source,omitempty"`
	// Command goes on with what is being built; "": it was begun by a release that did not say.
	Command string `json:"command,omitempty"`
	// CuttingOver says that marks of CutOver may be out: what is being built cannot be given up any more. Releases that do not
	// know it run both generations as before, and give up all the same when they are told to.
	CuttingOver bool `json:"cutting_over,omitempty"`
	// Token is in each mark of the cut-over to what is being built. It is chosen when Building is set, and producers cannot
	// read it. "": an earlier release began to build, and marks have none.
	Token string `json:"token,omitempty"`
}

// Believes reports whether a mark is of the cut-over in progress. All readers must decide the same about a mark, however late
// they read it: a producer does not know the token before the first mark is out, and a copy of a mark changes nothing, because
// from then on the generations may change places at any record.
func (g Generation) Believes(m CutOverMark) bool {
	return g.CuttingOver && m == CutOverMark{Group: g.Group, Number: g.Building, Token: g.Token}
}

// GenerationName returns the name of a generation of a group: as a consumer group, and in the names of its topics.
func GenerationName(group string, number int) string {
	if number <= FirstGeneration {
		return group
	}
	return generationPrefix(group) + strconv.Itoa(number)
}

// generationPrefix begins the names of a group's generations after the first, and of their topics: each is a group beside
// the one that it is named after, "pools.2", with topics of its own.
func generationPrefix(group string) string { return group + "." }

// GroupOf returns the group that a name is a generation's of, see GenerationName.
func GroupOf(name string) string {
	group, _, _ := strings.Cut(name, ".")
	return group
}

// CutOverHeader is the header of a mark: a record without key and value, from which on a generation is active. Any producer
// can write the header, see Generation.Believes. Its value is CutOverMark.Value.
const CutOverHeader = "cut-over"

// CutOverMark says which generation of a group is active behind a mark.
type CutOverMark struct {
	Group  string
	Number int
	Token  string // Generation.Token
}

// Value returns the value of CutOverHeader: group/number, or group/number/token.
func (m CutOverMark) Value() []byte {
	value := fmt.Appendf(nil, "%s/%d", m.Group, m.Number)
	if m.Token != "" {
		value = append(append(value, '/'), m.Token...)
	}
	return value
}

// ParseCutOver reads a value of CutOverHeader.
func ParseCutOver(value []byte) (m CutOverMark, ok bool) {
	group, rest, found := strings.Cut(string(value), "/")
	text, token, _ := strings.Cut(rest, "/")
	number, err := strconv.Atoi(text)
	return CutOverMark{Group: group, Number: number, Token: token}, found && err == nil
}

// IsCutOver reports whether a record has the form of a mark: no key, no value, and the header. A record with content is an
// ordinary one, whatever its headers say.
func IsCutOver(r *kgo.Record) bool {
	if len(r.Key) > 0 || r.Value != nil {
		return false
	}
	for _, h := range r.Headers {
		if h.Key == CutOverHeader {
			return true
		}
	}
	return false
}

// GenerationTopics are the topics of a generation's own.
func GenerationTopics(p Profile, group string, number int) []Topic {
	list := groupTopics(GenerationName(group, number))
	settle(list, p.withDefaults())
	return list
}

// GenerationWatch follows the topic generations. The zero value, with a Log, has read nothing: all are the first.
type GenerationWatch struct {
	Log *Log

	mu    sync.Mutex
	ends  Offsets
	known map[string]Generation
}

// Of returns what is known of a group.
func (w *GenerationWatch) Of(group string) Generation {
	w.mu.Lock()
	defer w.mu.Unlock()
	if g, ok := w.known[group]; ok {
		return g
	}
	return Generation{Group: group, Active: FirstGeneration}
}

// Refresh reads what is new. Brokers without the topic have first generations alone.
func (w *GenerationWatch) Refresh(ctx context.Context) error {
	ends, err := w.Log.Ends(ctx, Generations)
	if errors.Is(err, kerr.UnknownTopicOrPartition) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("follow generations: %w", err)
	}
	w.mu.Lock()
	same := w.ends != nil && maps.Equal(w.ends[Generations], ends[Generations])
	w.mu.Unlock()
	if same {
		return nil
	}
	known := map[string]Generation{}
	err = w.Log.ReadAll(ctx, Generations, func(r *kgo.Record) error {
		var g Generation
		if json.Unmarshal(r.Value, &g) == nil && g.Group == string(r.Key) {
			known[g.Group] = g
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("follow generations: %w", err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ends, w.known = ends, known
	return nil
}

// WatchEvery is how often a process looks for other generations: as long as a cut-over takes to reach it.
const WatchEvery = 250 * time.Millisecond

// Run follows the topic until ctx ends, and calls looked after every look with why it failed, if it did.
func (w *GenerationWatch) Run(ctx context.Context, looked func(error)) error {
	for {
		err := w.Refresh(ctx)
		if ctx.Err() != nil {
			return nil
		}
		looked(err)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(WatchEvery):
		}
	}
}

// Readers puts the generations that there are in the place of the groups: the active one, and one that is being
// built.
func (w *GenerationWatch) Readers(readers []Reader) []Reader {
	var list []Reader
	for _, r := range readers {
		g := w.Of(r.Group)
		list = append(list, r.of(g.Active))
		if g.Building != 0 {
			list = append(list, r.of(g.Building))
		}
	}
	return list
}

// Topics returns the topics of the generations that there are, but for first ones: those the catalogue has.
func (w *GenerationWatch) Topics(p Profile) []Topic {
	var list []Topic
	for _, group := range RowGroups() {
		g := w.Of(group)
		for _, number := range []int{g.Active, g.Building} {
			if number > FirstGeneration {
				list = append(list, GenerationTopics(p, group, number)...)
			}
		}
	}
	return list
}

// TopicsOfGenerations asks the brokers which generations there are, and returns their topics as GenerationWatch.Topics does.
// It fails where the user of k may not read the topic generations.
func TopicsOfGenerations(ctx context.Context, k Kafka, p Profile) ([]Topic, error) {
	l, err := NewLog(k)
	if err != nil {
		return nil, err
	}
	defer l.Close()
	w := GenerationWatch{Log: l}
	if err := w.Refresh(ctx); err != nil {
		return nil, err
	}
	return w.Topics(p), nil
}

// of is a generation of the reader: with ticks of its own.
func (r Reader) of(number int) Reader {
	name := GenerationName(r.Group, number)
	own := Reader{Group: name, Each: r.Each}
	for _, t := range r.Topics {
		if t == TicksOf(r.Group) {
			t = TicksOf(name)
		}
		own.Topics = append(own.Topics, t)
	}
	return own
}

// SetGeneration publishes which generations of a group there are.
func SetGeneration(ctx context.Context, client *kgo.Client, g Generation) error {
	value, err := json.Marshal(g)
	if err != nil {
		return fmt.Errorf("encode generation of %s: %w", g.Group, err)
	}
	r := &kgo.Record{Topic: Generations, Key: []byte(g.Group), Value: value}
	if err := Produce(ctx, client, r); err != nil {
		return fmt.Errorf("publish generation of %s: %w", g.Group, err)
	}
	return nil
}

// CutOver writes the marks of g.Building to every partition of the inputs: behind them that generation is active, and the one
// before is silent for ever. g must be published with CuttingOver before. Marks that are written again change nothing.
func CutOver(ctx context.Context, k Kafka, inputs []string, g Generation) error {
	client, err := k.Client(kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		return err
	}
	defer client.Close()
	header := kgo.RecordHeader{Key: CutOverHeader, Value: CutOverMark{g.Group, g.Building, g.Token}.Value()}
	var marks []*kgo.Record
	for _, topic := range inputs {
		for p := range k.Partitions {
			marks = append(marks, &kgo.Record{Topic: topic, Partition: p, Headers: []kgo.RecordHeader{header}})
		}
	}
	if err := Produce(ctx, client, marks...); err != nil {
		return fmt.Errorf("cut %s over to generation %d: %w", g.Group, g.Building, err)
	}
	return nil
}
