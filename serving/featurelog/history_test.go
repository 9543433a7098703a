package featurelog

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/internal/testkit/topicstest"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/serving/feature"
	"github.com/smartfeed/smartfeed/topics"
)

// base is the time of the test's events.
var base = time.Now().Add(-time.Hour).UTC().Truncate(time.Second)

func minutes(n int) time.Time { return base.Add(time.Duration(n) * time.Minute) }

type cluster struct {
	*topicstest.Cluster
	t        *testing.T
	producer *kgo.Client
}

func start(t *testing.T) cluster {
	c := topicstest.Start(t, 2)
	old := kgo.RecordDeliveryTimeout(0) // otherwise, old records time out
	return cluster{c, t, c.Client(kgo.RecordPartitioner(kgo.ManualPartitioner()), old)}
}

// send sends a record that arrives at a time.
func send[T any](c cluster, s topics.Stream[T], key string, at time.Time, rec *T) {
	c.t.Helper()
	value := must.Get(s.Encode(rec))(c.t)
	r := &kgo.Record{Topic: s.Name, Key: []byte(key), Value: value, Timestamp: at, Partition: topics.Partition(key, c.Kafka.Partitions)}
	must.OK(c.t, c.producer.ProduceSync(c.t.Context(), r).FirstErr())
}

// save sends a save of pin:1 that happened and arrived at the times.
func (c cluster) save(id string, user schemas.UserID, happened, arrived time.Time) {
	c.t.Helper()
	send(c, c.Streams.ActionsEnriched, string(user), arrived, &schemas.EnrichedAction{
		ID: id, Actor: user, Verb: "save", Object: "pin:1", Timestamp: schemas.MicrosOf(happened),
		ObjectAttributes: schemas.ObjectAttributes{Facets: schemas.Facets{Author: "user:ada"}},
	})
}

// newCluster has three saves by user:1 and one by user:2, one impression and the deletion of user:gone.
func newCluster(t *testing.T) cluster {
	c := start(t)
	c.save("a", "user:1", minutes(0), minutes(0))
	c.save("b", "user:1", minutes(1), minutes(5)) // late
	c.save("c", "user:1", minutes(10), minutes(10))
	c.save("d", "user:2", minutes(2), minutes(2))
	c.save("e", "user:gone", minutes(2), minutes(2))
	send(c, c.Streams.PinAttributes, "pin:1", minutes(3), &schemas.PinAttributes{Pin: "pin:1", Version: 1, Facets: schemas.Facets{Author: "user:ada"}})
	send(c, c.Streams.Impressions, "", minutes(4), &schemas.Impressions{User: "user:2", Time: schemas.MicrosOf(minutes(4)), Pins: []schemas.ShownPin{{Pin: "pin:1", Source: schemas.Related}}})
	send(c, c.Streams.UsersDeleted, "user:gone", minutes(20), &schemas.DeletedUser{User: "user:gone", Time: schemas.MicrosOf(minutes(20))})
	return c
}

// history writes the rows to a file and returns the result.
func (c cluster) history(defs []feature.Definition, rows string, names ...string) (string, error) {
	c.t.Helper()
	dir := c.t.TempDir()
	files := HistoryFiles{Rows: filepath.Join(dir, "rows"), Out: filepath.Join(dir, "out")}
	must.OK(c.t, os.WriteFile(files.Rows, []byte(rows), 0o600))
	n, err := History(c.t.Context(), Setup{Setup: c.Setup(), Definitions: defs}, names, files)
	out, readErr := os.ReadFile(files.Out)
	if err == nil {
		must.OK(c.t, readErr)
		expect.Equal(c.t, n, strings.Count(string(out), "\n"), "rows")
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*.open")); len(left) > 0 {
		c.t.Errorf("files are left: %v", left)
	}
	return string(out), err
}

// row returns a row of a user and pin:1.
func row(user schemas.UserID, at time.Time) string {
	return fmt.Sprintf(`{"user":%q,"pin":"pin:1","time":%q}`, user, at.Format(time.RFC3339))
}

// A value includes what had arrived by the row's time: not a late action, nor a later one.
func TestHistory_AddsValuesAsOfEachRow(t *testing.T) {
	c := newCluster(t)
	labeled := fmt.Sprintf(`  {"label": [1, {"a": "}"}], "time": %q, "pin": "pin:none", "user": "user:none" } `, minutes(12).Format(time.RFC3339))
	rows := []string{row("user:1", minutes(4)), row("user:1", minutes(2)), row("user:1", minutes(12)), row("user:gone", minutes(3)), labeled}
	got, err := c.history(definitions(t), strings.Join(rows, "\n"), "saves", "pins", "pin_saves", "shown", "crowd", "pair_author", "mean")
	must.OK(t, err)
	const nulls = `"crowd":["order"],"mean":["empty"]`
	want := []string{
		`"missing":{` + nulls + `},"values":{"crowd":null,"mean":null,"pair_author":1,"pin_saves":3,"pins":{"pin:1":1},"saves":1,"shown":1}}`,
		`"missing":{` + nulls + `,"pair_author":["pin"]},"values":{"crowd":null,"mean":null,"pair_author":null,"pin_saves":3,"pins":{"pin:1":1},"saves":1,"shown":0}}`,
		`"missing":{` + nulls + `},"values":{"crowd":null,"mean":null,"pair_author":3,"pin_saves":5,"pins":{"pin:1":3},"saves":3,"shown":1}}`,
		`"missing":{"crowd":["order"],"mean":["deleted"],"pair_author":["deleted"],"pins":["deleted"],"saves":["deleted"]},` +
			`"values":{"crowd":null,"mean":null,"pair_author":null,"pin_saves":3,"pins":null,"saves":null,"shown":0}}`,
		`"missing":{` + nulls + `,"pair_author":["pin"]},"values":{"crowd":null,"mean":null,"pair_author":null,"pin_saves":0,"pins":{},"saves":0,"shown":0}}`,
	}
	for i := range want {
		want[i] = strings.TrimSuffix(strings.TrimSpace(rows[i]), "}") + "," + want[i]
	}
	expect.NoDiff(t, strings.Split(got, "\n"), append(want, ""), "result")
	for line := range strings.Lines(got) {
		expect.True(t, json.Valid([]byte(line)), "the line is JSON: %s", line)
	}
}

// With a small batch, the topics are read several times. Each batch has only the data of the rows in it.
func TestHistory_Batches(t *testing.T) {
	c := newCluster(t)
	var rows strings.Builder
	for i := range 20 {
		fmt.Fprintln(&rows, row(schemas.UserID(fmt.Sprint("user:", 1+i%2)), minutes(19-i)))
	}
	names := []string{"saves", "pair_author", "shown"}
	want := must.Get(c.history(definitions(t), rows.String(), names...))(t)
	path := filepath.Join(t.TempDir(), "rows")
	must.OK(t, os.WriteFile(path, []byte(rows.String()), 0o600))
	h := &history{defs: must.Get(chosen(definitions(t), names))(t), log: c.Log(), streams: c.Streams, deleted: map[schemas.UserID]bool{}, batch: 3}
	var got bytes.Buffer
	must.OK(t, h.run(t.Context(), path, &got, c.Setup().Start("", 0)))
	expect.Equal(t, got.String(), want, "output")
}

// Only the actions of the batch's users, in its time and the 96 hours before it, are in memory.
func TestHistory_ReadsOnlyTheNeededActions(t *testing.T) {
	h := &history{defs: definitions(t)[:1]}
	p := h.needed([]historyRow{{User: "user:1", at: at}, {User: "user:1", at: at - 10*second}})
	for happened, user := range map[schemas.Micros]schemas.UserID{
		at: "user:1", at - 20*second: "user:1", at + second: "user:1", at - 500_000*second: "user:1", at - second: "user:2",
	} {
		p.Add(Arrived{At: happened, EnrichedAction: schemas.EnrichedAction{Actor: user, Object: "pin:1", Timestamp: happened}})
	}
	if len(p.byUser) != 1 || len(p.byUser["user:1"]) != 2 || len(p.byPin)+len(p.pins) != 0 {
		t.Errorf("in memory: %+v, %+v, %+v, want two actions of user:1", p.byUser, p.byPin, p.pins)
	}
}

// A window that may have lost actions has no value, but a shorter one has, and those of users in other partitions.
func TestHistory_MissesWhatTheTopicsDeleted(t *testing.T) {
	c := newCluster(t)
	lost, other := topics.Partition("user:1", 2), schemas.UserID("user:2")
	for i := 3; topics.Partition(string(other), 2) == lost; i++ {
		other = schemas.UserID(fmt.Sprint("user:", i))
	}
	c.save("f", "user:1", minutes(30), minutes(30))
	var last int64
	for _, r := range c.Records(topics.ActionsEnriched) {
		if r.Partition == lost {
			last = max(last, r.Offset)
		}
	}
	c.DeleteBefore(topics.ActionsEnriched, lost, last)
	defs, err := feature.Parse("f", []byte("features:\n- {name: hour, entity: user, aggregate: count, window: 1h}\n"+
		"- {name: minutes, entity: user, aggregate: count, window: 10m}\n- {name: pin_hour, entity: pin, aggregate: count, window: 1h}\n"+
		"- {name: ratio, entity: user, aggregate: ratio, numerator: minutes, denominator: hour}\n"))
	must.OK(t, err)
	got := must.Get(c.history(defs, row("user:1", minutes(40))+"\n"+row(other, minutes(40)), "hour", "minutes", "pin_hour", "ratio"))(t)
	lines := strings.Split(got, "\n")
	const missing = `"missing":{"hour":["retention"],"pin_hour":["retention"],"ratio":["retention"]},"values":{"hour":null,"minutes":0,`
	expect.Contains(t, lines[0], missing, "user of the partition")
	expect.Contains(t, lines[1], `"missing":{"pin_hour":["retention"]`, "user of another partition")
	expect.Omits(t, lines[1], `"hour":null,"m`, "user of another partition")
	c.DeleteBefore(topics.ActionsEnriched, lost, last+1) // no record is left
	got = must.Get(c.history(defs, row("user:1", minutes(40)), "minutes"))(t)
	expect.Contains(t, got, `"missing":{"minutes":["retention"]}`, "empty partition")
}

// A bad row is reported with its line, and nothing is written.
func TestHistory_RejectsBadRows(t *testing.T) {
	c, good := start(t), row("user:1", minutes(1))+"\n"
	for name, tt := range map[string]struct {
		rows, feature, want string
	}{
		"no pin":          {`{"user":"user:1","time":"2026-01-02T00:00:00Z"}`, "pair_author", `rows:1: pair_author is a feature of a pair: id ""`},
		"an invalid user": {good + `{"user":"ada","time":"2026-01-02T00:00:00Z"}`, "saves", `rows:2: saves is a feature of a user: id "ada"`},
		"no time":         {good + good + `{"user":"user:1"}`, "saves", "rows:3: time: 0001-01-01T00:00:00Z: want a time in the past"},
		"a future time":   {row("user:1", time.Now().Add(time.Hour)), "saves", "want a time in the past"},
		"no JSON":         {good + "{", "saves", "rows:2: unexpected end of JSON input"},
		"CSV":             {"user,pin,time\n", "saves", "rows:1: invalid character"},
		"with values":     {`{"user":"user:1","time":"2026-01-02T00:00:00Z","values":{}}`, "saves", "rows:1: the row has values or missing already"},
		"a long line":     {strings.Repeat(" ", maxRowBytes+1), "saves", "token too long"},
		"an unknown name": {good, "savings", `features: "savings" is not defined`},
		"an unknown set":  {good, "@saves", `features: "@saves" is not defined`},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := c.history(definitions(t), tt.rows, tt.feature)
			if err == nil || out != "" || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %q, %v, want the error %s", out, err, tt.want)
			}
		})
	}
}

func TestChosen_IncludesSets(t *testing.T) {
	defs, err := feature.Parse("f", []byte("features:\n- {name: a, entity: user, aggregate: count}\n- {name: b, entity: user, aggregate: count}\n"+
		"- {name: c, entity: user, aggregate: count}\nfeature_sets: {both: [a, b]}\n"))
	must.OK(t, err)
	list, err := chosen(defs, []string{"c", "@both"})
	if err != nil || !slices.EqualFunc(list, []string{"c", "a", "b"}, func(d feature.Definition, name string) bool { return d.Name == name }) {
		t.Errorf("got %+v, %v", list, err)
	}
}
