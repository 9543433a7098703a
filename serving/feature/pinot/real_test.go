package pinot

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/smartfeed/smartfeed/internal/eventually"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/serving/feature"
	"github.com/smartfeed/smartfeed/topics"
	"github.com/smartfeed/smartfeed/topics/embedded"
)

// realPinot is the host:port of a Pinot controller whose broker listens on the next port, as .ci/services starts it.
const realPinot = "SMARTFEED_TEST_PINOT"

// partitions is how many the topic has.
const partitions = 4

// cluster is a real Pinot that ingests from an embedded broker.
type cluster struct {
	store   *Store
	client  *Client
	admin   *Admin
	stream  Stream
	streams *topics.Streams
	kafka   *kgo.Client
}

func startCluster(t testing.TB) *cluster {
	t.Helper()
	controller := os.Getenv(realPinot)
	if controller == "" {
		t.Skip(realPinot + " is not set: no Pinot to test with")
	}
	cfg := embedded.DefaultConfig()
	cfg.Dir, cfg.Kafka, cfg.Registry = t.TempDir(), "127.0.0.1:0", "127.0.0.1:0"
	server, err := embedded.Start(t.Context(), cfg, slog.New(slog.DiscardHandler))
	must(t, err)
	t.Cleanup(func() { _ = server.Close() })
	kafka := server.Kafka(partitions)
	_, err = topics.Apply(t.Context(), kafka, topics.Catalogue(topics.Profile{Partitions: partitions, Embedded: true}))
	must(t, err)
	registry, err := schemas.NewRegistry(server.RegistryURL())
	must(t, err)
	c := &cluster{stream: Stream{Brokers: kafka.Brokers, Registry: server.RegistryURL(), Partitions: partitions, Replicas: 1}}
	c.streams, err = topics.Open(t.Context(), registry)
	must(t, err)
	c.kafka, err = kafka.Client()
	must(t, err)
	t.Cleanup(c.kafka.Close)
	pinot := DefaultConfig()
	pinot.Controller, pinot.Brokers = controller, []string{nextPort(t, controller)}
	c.admin, err = NewAdmin(pinot)
	must(t, err)
	c.client, err = NewClient(pinot)
	must(t, err)
	t.Cleanup(c.client.Close)
	c.store = NewStore(feature.DefaultConfig(), c.client, nil)
	c.remove(t)
	t.Cleanup(func() { c.remove(t) })
	return c
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func nextPort(t testing.TB, address string) string {
	t.Helper()
	host, port, err := net.SplitHostPort(address)
	must(t, err)
	n, err := strconv.Atoi(port)
	must(t, err)
	return net.JoinHostPort(host, strconv.Itoa(n+1))
}

// remove takes table and schema away, if they are there.
func (c *cluster) remove(t testing.TB) {
	t.Helper()
	for _, path := range []string{"/tables/" + TableName, "/schemas/" + TableName} {
		_, _ = c.admin.call(context.Background(), "DELETE", path, nil)
	}
}

func (c *cluster) produce(t testing.TB, actions ...schemas.EnrichedAction) {
	t.Helper()
	var records []*kgo.Record
	for i := range actions {
		value, err := c.streams.ActionsEnriched.Encode(&actions[i])
		must(t, err)
		records = append(records, &kgo.Record{Topic: topics.ActionsEnriched, Key: []byte(actions[i].Actor), Value: value})
	}
	must(t, c.kafka.ProduceSync(t.Context(), records...).FirstErr())
}

// await returns when Pinot's servers have all that is in the topic and its brokers ask all of them, and holds the table to n
// rows then.
func (c *cluster) await(t testing.TB, n int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	outsider := topics.Outsider{Name: Name, Topic: topics.ActionsEnriched, Reached: c.admin.Reached}
	must(t, topics.AwaitOutsiders(ctx, topics.Kafka{Brokers: c.stream.Brokers, Partitions: partitions, Embedded: true}, nil, outsider))
	var found struct {
		NumConsumingSegmentsQueried int
		ResultTable                 struct{ Rows [][]int }
	}
	eventually.True(t, "brokers ask all partitions of a table", func() bool { // that is new
		body, err := c.client.post(ctx, "SELECT COUNT(*) FROM "+TableName)
		return err == nil && json.Unmarshal(body, &found) == nil && found.NumConsumingSegmentsQueried == partitions
	})
	if rows := found.ResultTable.Rows; !slices.EqualFunc(rows, [][]int{{n}}, slices.Equal) {
		t.Fatalf("rows: %v, want %d", rows, n)
	}
}

func TestRealPinot(t *testing.T) {
	c := startCluster(t)
	must(t, c.admin.Apply(t.Context(), c.stream))
	must(t, c.admin.Apply(t.Context(), c.stream)) // an update that changes nothing
	differ, err := c.admin.Verify(t.Context(), c.stream)
	must(t, err)
	if len(differ) > 0 {
		t.Errorf("verify: %s", strings.Join(differ, "\n"))
	}
	other := c.stream
	other.Partitions = 8
	if differ, err := c.admin.Verify(t.Context(), other); err != nil || len(differ) != 1 || !strings.Contains(differ[0], "numPartitions: 4, want 8") {
		t.Errorf("with other partitions: %v, %v", differ, err)
	}
	w := newWorld(40, 15)
	c.produce(t, w.all...)
	c.produce(t, w.all[:50]...) // again: each id counts once
	c.await(t, len(w.all))
	t.Run("conformance", func(t *testing.T) { w.conforms(t, c.store) })
	t.Run("hostile ids", func(t *testing.T) { c.hostile(t, len(w.all)) })
	t.Run("freshness", func(t *testing.T) { c.freshness(t) })
	t.Run("what was taken back", func(t *testing.T) { c.aborted(t) })
}

// aborted produces in a transaction that is taken back, and in one that is not.
func (c *cluster) aborted(t *testing.T) {
	tx, err := topics.Kafka{Brokers: c.stream.Brokers, Partitions: partitions, Embedded: true}.Client(kgo.TransactionalID("test"))
	must(t, err)
	defer tx.Close()
	now := schemas.MicrosOf(time.Now())
	for i, end := range []kgo.TransactionEndTry{kgo.TryAbort, kgo.TryCommit} {
		must(t, tx.BeginTransaction())
		a := schemas.EnrichedAction{ID: fmt.Sprint("tx-", i), Actor: "user:tx", Verb: "save", Object: schemas.ID(fmt.Sprint("pin:", i)), Timestamp: now}
		value, err := c.streams.ActionsEnriched.Encode(&a)
		must(t, err)
		must(t, tx.ProduceSync(t.Context(), &kgo.Record{Topic: topics.ActionsEnriched, Key: []byte(a.Actor), Value: value}).FirstErr())
		must(t, tx.EndTransaction(t.Context(), end))
	}
	def := define(t, "- {name: f, entity: user, aggregate: last}\n")
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(2 * time.Minute); ; <-tick.C {
		got, _, err := c.store.Actions(t.Context(), "user:tx", feature.Span{Now: now, AsOf: now}, def)
		must(t, err)
		if last := got[0].Value.(feature.Last); len(last) > 0 {
			if len(last) != 1 || last[0].Object != "pin:1" {
				t.Errorf("got %v, want the committed one alone", last)
			}
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("what was committed is not there after two minutes")
		}
	}
}

// world is the actions of some users, and a source of definitions.
type world struct {
	random *rand.Rand
	now    schemas.Micros
	byUser map[schemas.UserID][]schemas.EnrichedAction
	all    []schemas.EnrichedAction
}

func newWorld(users, each int) *world {
	w := &world{random: rand.New(rand.NewPCG(1, 2)), now: schemas.MicrosOf(time.Now()), byUser: map[schemas.UserID][]schemas.EnrichedAction{}}
	for u := range users {
		user := schemas.UserID(fmt.Sprint("user:", u))
		for range each {
			a := w.action(user)
			a.ID = fmt.Sprintf("%s%d", pick(w, "", "a", "ä", "\uff5e", "\U0001F600"), len(w.all))
			w.byUser[user], w.all = append(w.byUser[user], a), append(w.all, a)
		}
	}
	return w
}

func pick[T any](w *world, of ...T) T { return of[w.random.IntN(len(of))] }

// windows are few, so that actions fall on their edges.
var windows = []string{"1ms", "1s", "1h", "24h", "95h", "96h"}

func (w *world) action(user schemas.UserID) schemas.EnrichedAction {
	at := w.now - schemas.Micros(w.random.Int64N(int64(120*time.Hour/time.Microsecond)))
	if w.random.IntN(2) == 0 {
		d, _ := time.ParseDuration(pick(w, windows...))
		at = w.now - schemas.Micros(d.Microseconds()) + pick[schemas.Micros](w, -1000, -1, 0, 1, 999, 1000)
	}
	interests := func() []schemas.InterestID {
		return [][]schemas.InterestID{{}, {"interest:1"}, {"interest:2", "interest:1"}, {"interest:it's", "interest:3"}}[w.random.IntN(4)]
	}
	attributes := func() map[string]string {
		m := map[string]string{}
		for range w.random.IntN(3) {
			m[pick(w, "x", "x.y", "author")] = pick(w, "", "1", "2.5", "-3e2", "x", "NaN", " 1", "1.7e308", `"'\`, "null", strings.Repeat("long ", 150))
		}
		return m
	}
	vector := func() []float32 {
		v := make([]float32, w.random.IntN(4))
		for i := range v {
			v[i] = float32(w.random.NormFloat64())
		}
		return v
	}
	return schemas.EnrichedAction{
		Actor: user, Timestamp: at, Verb: pick[schemas.Verb](w, "view", "click", "save"), Object: pick[schemas.ID](w, "pin:1", "pin:2", "pin:it's"),
		ActorAttributes:  schemas.ActorAttributes{Interests: interests(), Embedding: vector(), Attributes: attributes()},
		VerbAttributes:   schemas.VerbAttributes{Board: pick[schemas.BoardID](w, "", "board:1"), Surface: pick(w, "", "home"), Attributes: attributes()},
		ObjectAttributes: schemas.ObjectAttributes{Facets: schemas.Facets{Author: pick[schemas.UserID](w, "", "user:a", "user:b"), Board: pick[schemas.BoardID](w, "", "board:2"), Interests: interests()}, Embedding: vector(), Attributes: attributes()},
	}
}

var paths = []string{
	"verb", "object", "actor", "objectAttributes.author", "objectAttributes.board", "objectAttributes.interests", "actorAttributes.interests",
	"verbAttributes.board", "verbAttributes.surface", "objectAttributes.x", "actorAttributes.x", "verbAttributes.x.y",
}

// definition returns a random one, as it stands in a file.
func (w *world) definition(name string) string {
	var b strings.Builder
	aggregate := pick(w, "count", "count", "rate", "sum", "mean", "min", "max", "distinct", "last", "top", "mean_embedding", "cosine")
	entity := pick(w, "user", "user", "pair")
	grouped := slices.Contains([]string{"count", "rate", "sum", "mean", "min", "max", "distinct"}, aggregate)
	if aggregate == "cosine" {
		entity = "pair"
	} else if !grouped {
		entity = "user"
	}
	fmt.Fprintf(&b, "- name: %s\n  entity: %s\n  aggregate: %s\n  window: %s\n", name, entity, aggregate, pick(w, windows...))
	if w.random.IntN(2) == 0 {
		fmt.Fprintf(&b, "  verbs: %s\n", pick(w, "[save]", "[click, view]", "[none]"))
	}
	if w.random.IntN(2) == 0 {
		fmt.Fprintf(&b, "  where: {%s: %s}\n", pick(w, paths...), pick(w, `[""]`, "[save, home, user:a]", `["interest:it's", board:1]`, `["1", x, "pin:it's"]`))
	}
	switch {
	case grouped && entity == "pair":
		fmt.Fprintf(&b, "  group_by: %s\n", pick(w, "object", "objectAttributes.author", "objectAttributes.interests", "objectAttributes.x"))
	case grouped && w.random.IntN(2) == 0:
		fmt.Fprintf(&b, "  group_by: %s\n", pick(w, paths...))
	}
	switch aggregate {
	case "sum", "mean", "min", "max":
		fmt.Fprintf(&b, "  of: %s\n", pick(w, "objectAttributes.x", "actorAttributes.x", "verbAttributes.x.y"))
	case "distinct", "top":
		fmt.Fprintf(&b, "  of: %s\n", pick(w, paths...))
	case "mean_embedding":
		fmt.Fprintf(&b, "  of: %s\n", pick(w, "objectAttributes.embedding", "actorAttributes.embedding"))
	}
	if slices.Contains([]string{"count", "sum", "mean", "mean_embedding", "cosine"}, aggregate) && w.random.IntN(3) == 0 {
		fmt.Fprintf(&b, "  half_life: %s\n", pick(w, "1m", "5h"))
	}
	return b.String()
}

// cases is how many definitions are compared: each over one user's actions.
const cases = 4000

// equal is what readings are held to.
var equal = cmp.Options{
	cmpopts.EquateApprox(1e-6, 1e-9),
	cmp.Comparer(func(a, b feature.Number) bool {
		return math.Abs(float64(a-b)) <= max(1e-9, 1e-9*math.Abs(float64(a)))
	}),
}

// conforms compares the store with the reference: a few definitions a question, every fourth time one alone.
func (w *world) conforms(t *testing.T, s feature.Store) {
	compared, alone := 0, 0
	for compared < cases && !t.Failed() {
		n := pick(w, 1, 1, 1, 1, 5, 12)
		var text strings.Builder
		for i := range n {
			text.WriteString(w.definition(fmt.Sprint("f", i)))
		}
		defs := define(t, text.String())
		user := schemas.UserID(fmt.Sprint("user:", w.random.IntN(len(w.byUser)+1))) // the last has done nothing
		span := feature.Span{Now: w.now, AsOf: w.now - pick[schemas.Micros](w, 0, 0, 5*3600e6, 90*3600e6, 97*3600e6)}
		got, _, err := s.Actions(t.Context(), user, span, defs)
		if err != nil {
			t.Fatalf("%v\n%s", err, text.String())
		}
		for i, d := range defs {
			want := feature.Reference(d, span, w.byUser[user])
			slices.Sort(want.Reasons)
			slices.Sort(got[i].Reasons)
			if diff := cmp.Diff(want, got[i], equal, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s as of %d, definition %d of\n%s(-reference +pinot):\n%s", user, span.AsOf, i, text.String(), diff)
			}
		}
		compared += n
		if n == 1 {
			alone++
		}
	}
	t.Logf("%d definitions compared, %d asked for alone", compared, alone)
}

// hostile asks for users whose ids look like SQL: each has done one thing, nobody else's is seen, nothing fails.
func (c *cluster) hostile(t *testing.T, before int) {
	ids := []string{
		`'`, `''`, `'''`, `\`, `\'`, `?`, `--`, `' --`, `' OR 1=1 --`, `x'; DROP TABLE actions_enriched`, `;SET timeoutMs=1`, `;SET a='b';`,
		`/*`, `*/`, `option(timeoutMs=1)`, ` OPTION(timeoutMs=1)`, `' option(a=b)`, "‘’“”", "ʼ", "＇", "%", "_", `"`, "`", "{}", "$1", ":a", "@x", "\u202e", "😀", "é", "e\u0301",
	}
	var actions []schemas.EnrichedAction
	for i, id := range ids {
		user := schemas.UserID("user:" + id)
		if _, err := schemas.ParseUserID(string(user)); err != nil {
			t.Fatalf("%q is no id: %v", user, err)
		}
		actions = append(actions, schemas.EnrichedAction{
			ID: fmt.Sprint("hostile-", i), Actor: user, Verb: "save", Object: schemas.ID("pin:" + id), Timestamp: schemas.MicrosOf(time.Now()),
			ObjectAttributes: schemas.ObjectAttributes{Attributes: map[string]string{"x": id + "\x00"}},
		})
	}
	c.produce(t, actions...)
	c.await(t, before+len(ids))
	now := schemas.MicrosOf(time.Now())
	var one bytes.Buffer
	for i, id := range ids {
		fmt.Fprintf(&one, "- {name: f%d, entity: user, aggregate: count, where: {object: %q}}\n", i, "pin:"+id)
		fmt.Fprintf(&one, "- {name: g%d, entity: user, aggregate: count, group_by: objectAttributes.x}\n", i)
	}
	defs := define(t, one.String())
	for i, a := range actions {
		for _, d := range defs[2*i : 2*i+2] {
			got, _, err := c.store.Actions(t.Context(), a.Actor, feature.Span{Now: now, AsOf: now}, []feature.Definition{d})
			want := feature.Reference(d, feature.Span{Now: now, AsOf: now}, actions[i:i+1])
			if err != nil || cmp.Diff(want, got[0]) != "" {
				t.Errorf("%q: got %v, %v, want %v", a.Actor, got, err, want)
			}
		}
	}
}

// freshness has each of some actions become a feature.
func (c *cluster) freshness(t *testing.T) {
	took := c.freshAfter(t, 40)
	slices.Sort(took)
	t.Logf("an action is a feature after %v at half of %d times, %v at worst", took[len(took)/2], len(took), took[len(took)-1])
	now := schemas.MicrosOf(time.Now())
	_, fresh, err := c.store.Actions(t.Context(), "user:fresh-0", feature.Span{Now: now, AsOf: now}, define(t, "- {name: f, entity: user, aggregate: count}\n"))
	if ago := time.Since(fresh); err != nil || ago < 0 || ago > 5*time.Minute {
		t.Errorf("fresh to %v, %v, want a moment ago", fresh, err)
	}
}

// freshAfter measures n times how long after its acknowledgement an action is a feature.
func (c *cluster) freshAfter(t testing.TB, n int) []time.Duration {
	def := define(t, "- {name: f, entity: user, aggregate: count}\n")
	took := make([]time.Duration, n)
	for i := range took {
		user := schemas.UserID(fmt.Sprint("user:fresh-", i))
		c.produce(t, schemas.EnrichedAction{ID: fmt.Sprint("fresh-", i), Actor: user, Verb: "save", Object: "pin:1", Timestamp: schemas.MicrosOf(time.Now())})
		start := time.Now()
		for {
			now := schemas.MicrosOf(time.Now())
			got, _, err := c.store.Actions(t.Context(), user, feature.Span{Now: now, AsOf: now}, def)
			must(t, err)
			if got[0].Value == feature.Number(1) {
				break
			}
			if time.Since(start) > time.Minute {
				t.Fatal("not a feature after a minute")
			}
		}
		took[i] = time.Since(start)
	}
	return took
}
