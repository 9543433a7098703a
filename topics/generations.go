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

// Generations. A group can be rebuilt while it runs: a second generation processes the same inputs under another name, with
// rows of its own. One record per group, on a compacted topic that every process follows, names the active generation and
// the one being built. A cut-over writes a mark to every partition of the inputs. After the mark, the previous generation
// stops emitting and the new one starts. So exactly one of them emits for every input record.

// FirstGeneration is the number of a group that was never rebuilt.
const FirstGeneration = 1

// Generation is the record of a group on the topic generations. The key is Group, the value is JSON.
type Generation struct {
	Group    string `json:"group"`
	Active   int    `json:"active"`             // the generation that answers and emits
	Building int    `json:"building,omitempty"` // 0: none
	// Source is the source whose candidates the generation being built leaves out at its start; "": every source that
	// followees deliver.
	Source schemas.Source `json:"source,omitempty"`
	// Command is the command that continues the build; "": the release that started the build did not record it.
	Command string `json:"command,omitempty"`
	// CuttingOver means that CutOver may have written marks, so the build can no longer be aborted. Releases that do not
	// know this field run both generations as before, and still abort on request.
	CuttingOver bool `json:"cutting_over,omitempty"`
	// Token is part of every mark of the cut-over to Building. It is chosen when Building is set, and producers cannot read
	// it. "": an earlier release started the build, and the marks have no token.
	Token string `json:"token,omitempty"`
}

// Believes reports whether a mark belongs to the cut-over in progress. All readers must decide the same about a mark,
// however late they read it. A producer does not know the token before the first mark is written. A copied mark changes
// nothing, because from then on the active generation may change at any record.
func (g Generation) Believes(m CutOverMark) bool {
	return g.CuttingOver && m == CutOverMark{Group: g.Group, Number: g.Building, Token: g.Token}
}

// GenerationName returns the name of a generation, which is its consumer group and part of the names of its topics.
func GenerationName(group string, number int) string {
	if number <= FirstGeneration {
		return group
	}
	return generationPrefix(group) + strconv.Itoa(number)
}

// generationPrefix returns the prefix of the names of a group's later generations and of their topics. The second
// generation of pools is the group "pools.2", with topics of its own.
func generationPrefix(group string) string { return group + "." }

// GroupOf returns the group of a generation name, see GenerationName.
func GroupOf(name string) string {
	group, _, _ := strings.Cut(name, ".")
	return group
}

// CutOverHeader is the header of a mark: a record without key and value, after which a generation is active. Any producer
// can write the header, see Generation.Believes. Its value is CutOverMark.Value.
const CutOverHeader = "cut-over"

// CutOverMark names the generation of a group that is active after a mark.
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

// ParseCutOver parses a value of CutOverHeader. It returns false if the value is malformed.
func ParseCutOver(value []byte) (m CutOverMark, ok bool) {
	group, rest, found := strings.Cut(string(value), "/")
	text, token, _ := strings.Cut(rest, "/")
	number, err := strconv.Atoi(text)
	return CutOverMark{Group: group, Number: number, Token: token}, found && err == nil
}

// IsCutOver reports whether a record has the form of a mark: no key, no value, and the header. A record with a key or a
// value is an ordinary record, whatever its headers are.
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

// GenerationTopics returns the topics that belong to one generation.
func GenerationTopics(p Profile, group string, number int) []Topic {
	list := groupTopics(GenerationName(group, number))
	settle(list, p.withDefaults())
	return list
}

// GenerationWatch follows the topic generations. Before the first Refresh, every group is at its first generation. Log must
// be set.
type GenerationWatch struct {
	Log *Log

	mu    sync.Mutex
	ends  Offsets
	known map[string]Generation
}

// Of returns the latest known state of a group.
func (w *GenerationWatch) Of(group string) Generation {
	w.mu.Lock()
	defer w.mu.Unlock()
	if g, ok := w.known[group]; ok {
		return g
	}
	return Generation{Group: group, Active: FirstGeneration}
}

// Refresh reads the topic if it has changed. If the topic does not exist, every group stays at its first generation.
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

// WatchEvery is the interval between two reads of the topic. It bounds how long a change takes to reach a process.
const WatchEvery = 250 * time.Millisecond

// Run refreshes every WatchEvery until ctx is canceled. It calls looked after each refresh with its error, or nil.
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

// Readers replaces each group by its current generations: the active one, and the one being built if there is one.
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

// Topics returns the topics of the current generations. It leaves out first generations, which are in the catalogue.
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

// TopicsOfGenerations reads the topic generations and returns the topics as GenerationWatch.Topics does. It returns an
// error if the user of k has no permission to read the topic generations.
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

// of returns the reader for one generation, with the ticks of that generation.
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

// SetGeneration publishes the state of a group.
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

// CutOver writes the marks of g.Building to every partition of the inputs. After its mark, that generation is active, and
// the previous one never emits again. g must have been published with CuttingOver. Repeated marks change nothing.
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
