package featurelog

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

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
	value, err := s.Encode(rec)
	must.OK(c.t, err)
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
func (c cluster) history(rows string, names ...string) (string, Filled, error) {
	c.t.Helper()
	dir := c.t.TempDir()
	files := HistoryFiles{Rows: filepath.Join(dir, "rows"), Out: filepath.Join(dir, "out")}
	must.OK(c.t, os.WriteFile(files.Rows, []byte(rows), 0o600))
	filled, err := History(c.t.Context(), Setup{Setup: c.Setup(), Definitions: definitions(c.t)}, names, files)
	out, readErr := os.ReadFile(files.Out)
	if err == nil {
		must.OK(c.t, readErr)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*.open")); len(left) > 0 {
		c.t.Errorf("files are left: %v", left)
	}
	return string(out), filled, err
}

func stamp(at time.Time) string { return at.Format(time.RFC3339) }

// A value includes what had arrived by the row's time: not a late action, nor a later one.
func TestHistory_AddsValuesAsOfEachRow(t *testing.T) {
	c := newCluster(t)
	rows := "label,user,pin,time\n" +
		"x,user:1,pin:1," + stamp(minutes(4)) + "\n" + // out of order
		"\"y, z\",user:1,pin:1," + stamp(minutes(2)) + "\n" +
		"x,user:1,pin:1," + fmt.Sprint(minutes(12).UnixMicro()) + "\n" +
		"x,user:gone,pin:1," + stamp(minutes(3)) + "\n" +
		"x,user:none,pin:none," + stamp(minutes(12)) + "\n"
	names := []string{"saves", "pins", "pin_saves", "shown", "crowd", "pair_author"}
	got, filled, err := c.history(rows, names...)
	must.OK(t, err)
	want := "label,user,pin,time,crowd,pair_author,pin_saves,pins,saves,shown,missing\n" +
		"x,user:1,pin:1," + stamp(minutes(4)) + `,,1,3,"{""pin:1"":1}",1,1,"{""crowd"":[""order""]}"` + "\n" +
		`"y, z",user:1,pin:1,` + stamp(minutes(2)) + `,,,3,"{""pin:1"":1}",1,0,"{""crowd"":[""order""],""pair_author"":[""pin""]}"` + "\n" +
		"x,user:1,pin:1," + fmt.Sprint(minutes(12).UnixMicro()) + `,,3,5,"{""pin:1"":3}",3,1,"{""crowd"":[""order""]}"` + "\n" +
		"x,user:gone,pin:1," + stamp(minutes(3)) + `,,,3,,,0,"{""crowd"":[""order""],""pair_author"":[""deleted""],""pins"":[""deleted""],""saves"":[""deleted""]}"` + "\n" +
		"x,user:none,pin:none," + stamp(minutes(12)) + `,,,0,{},0,0,"{""crowd"":[""order""],""pair_author"":[""pin""]}"` + "\n"
	if diff := cmp.Diff(strings.Split(want, "\n"), strings.Split(got, "\n")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	var text strings.Builder
	must.OK(t, filled.Text(&text))
	if want := "wrote 5 rows\nmissing values, deleted: 3\nmissing values, order: 5\nmissing values, pin: 2\n"; text.String() != want {
		t.Errorf("got %s, want %s", &text, want)
	}
}

func TestHistory_JSONLines(t *testing.T) {
	c := newCluster(t)
	rows := `{"label": [1, {"a": "}"}], "user": "user:1", "time": "` + stamp(minutes(4)) + "\"}\n\n" +
		fmt.Sprintf(`{"user":"user:2","time":%d}`, minutes(1).UnixMicro())
	got, _, err := c.history(rows, "saves", "mean", "saves")
	must.OK(t, err)
	want := `{"label": [1, {"a": "}"}], "user": "user:1", "time": "` + stamp(minutes(4)) + `","missing":{"mean":["empty"]},"values":{"mean":null,"saves":1}}` + "\n" +
		fmt.Sprintf(`{"user":"user:2","time":%d,"missing":{"mean":["empty"]},"values":{"mean":null,"saves":0}}`, minutes(1).UnixMicro()) + "\n"
	if got != want {
		t.Errorf("got\n%s, want\n%s", got, want)
	}
	for line := range strings.Lines(got) {
		if !json.Valid([]byte(line)) {
			t.Errorf("not JSON: %s", line)
		}
	}
}

// With a small batch, the topics are read several times. Each batch has only the data of its own rows.
func TestHistory_Batches(t *testing.T) {
	c := newCluster(t)
	rows := "user,pin,time\n"
	for i := range 20 {
		rows += fmt.Sprintf("user:%d,pin:1,%s\n", 1+i%2, stamp(minutes(19-i)))
	}
	want, _, err := c.history(rows, "saves", "pair_author", "shown")
	must.OK(t, err)
	path := filepath.Join(t.TempDir(), "rows")
	must.OK(t, os.WriteFile(path, []byte(rows), 0o600))
	defs := must.Get(chosen(definitions(t), []string{"saves", "pair_author", "shown"}))(t)
	h := &history{defs: defs, log: c.Log(), streams: c.Streams, progress: c.Setup().Start("", 0), deleted: map[schemas.UserID]bool{}, batch: 3, done: Filled{Missing: map[string]int{}}}
	var got bytes.Buffer
	must.OK(t, h.run(t.Context(), path, &got))
	if got.String() != want || h.done.Rows != 20 {
		t.Errorf("%d rows\n%s, want\n%s", h.done.Rows, &got, want)
	}
}

// Only the actions of the batch's users, in its time and the 96 hours before it, are in memory.
func TestHistory_ReadsOnlyTheNeededActions(t *testing.T) {
	h := &history{defs: definitions(t)[:1]}
	p := h.needed([]historyRow{{user: "user:1", at: at}, {user: "user:1", at: at - 10*second}})
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
	offsets := kadm.Offsets{}
	offsets.AddOffset(topics.ActionsEnriched, lost, last, -1)
	done, err := c.Admin().DeleteRecords(t.Context(), offsets)
	must.OK(t, err)
	must.OK(t, done.Error())
	rows := fmt.Sprintf("user,pin,time\nuser:1,pin:1,%[1]s\n%[2]s,pin:1,%[1]s\n", stamp(minutes(40)), other)
	defs, err := feature.Parse("f", []byte("features:\n- {name: hour, entity: user, aggregate: count, window: 1h}\n"+
		"- {name: minutes, entity: user, aggregate: count, window: 10m}\n- {name: pin_hour, entity: pin, aggregate: count, window: 1h}\n"))
	must.OK(t, err)
	dir := t.TempDir()
	files := HistoryFiles{Rows: filepath.Join(dir, "rows"), Out: filepath.Join(dir, "out")}
	must.OK(t, os.WriteFile(files.Rows, []byte(rows), 0o600))
	filled, err := History(t.Context(), Setup{Setup: c.Setup(), Definitions: defs}, []string{"hour", "minutes", "pin_hour"}, files)
	must.OK(t, err)
	lines := strings.Split(string(must.Get(os.ReadFile(files.Out))(t)), "\n")
	if !strings.HasSuffix(lines[1], `,,0,,"{""hour"":[""retention""],""pin_hour"":[""retention""]}"`) {
		t.Errorf("user of the partition: %s", lines[1])
	}
	if !strings.HasSuffix(lines[2], `,"{""pin_hour"":[""retention""]}"`) || strings.Contains(lines[2], ",,0") || filled.Missing["retention"] != 3 {
		t.Errorf("user of another partition: %s; %+v", lines[2], filled)
	}
}

// All bad rows are listed with their lines, and nothing is written.
func TestHistory_RejectsBadRows(t *testing.T) {
	c := start(t)
	future := stamp(time.Now().Add(time.Hour))
	for name, tt := range map[string]struct {
		rows  string
		names []string
		want  []string
	}{
		"CSV": {
			"user,pin,time\nuser:1,,2026-01-02T00:00:00Z\nada,pin:1,2026-01-02T00:00:00Z\nuser:1,pin:1,yesterday\nuser:1,pin:1\nuser:1,pin:1," + future + "\n,pin:1,1\n",
			[]string{"pair_author"},
			[]string{"rows:2: pin is empty, but pair_author is a feature of a pair", `rows:3: id "ada"`, `rows:4: time: "yesterday": want a time such as`, "rows:5: wrong number of fields", "rows:6: time is in the future", "rows:7: user is empty"},
		},
		"JSON lines": {
			`{"user":"user:1","time":1}` + "\n{\n" + `{"user":"user:1","time":1,"values":{}}` + "\n" + `{"user":7,"time":1}`,
			[]string{"saves"},
			[]string{"rows:2: unexpected end of JSON input", "rows:3: the row has values or missing already", "rows:4: json: cannot unmarshal number"},
		},
		"a long line":       {"{" + strings.Repeat(" ", maxLineBytes), []string{"saves"}, []string{"token too long"}},
		"no time":           {"user,pin\nuser:1,pin:1\n", []string{"saves"}, []string{"rows: read the header: no column time"}},
		"an empty file":     {"", []string{"saves"}, []string{"rows: read the header: EOF"}},
		"a column twice":    {"user,time,saves\n", []string{"saves"}, []string{`two columns "saves"`}},
		"an unknown name":   {"user,time\n", []string{"savings"}, []string{`features: "savings" is not defined`}},
		"an unknown set":    {"user,time\n", []string{"@saves"}, []string{`features: "@saves" is not defined`}},
		"an unknown letter": {"user,time\nuser:1,1\nuser:1,1\x00\n", []string{"saves"}, []string{"rows:3: time"}},
	} {
		t.Run(name, func(t *testing.T) {
			out, _, err := c.history(tt.rows, tt.names...)
			if err == nil || out != "" {
				t.Fatalf("got %q, %v, want an error", out, err)
			}
			for _, want := range tt.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("got %v, want %s in it", err, want)
				}
			}
		})
	}
}

// A previous result is unchanged if the next one fails.
func TestReplaceFile_KeepsThePreviousFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out")
	must.OK(t, os.WriteFile(path, []byte("before"), 0o600))
	if err := replaceFile(path, func(w io.Writer) error {
		_, err := w.Write([]byte("half"))
		must.OK(t, err)
		return os.ErrDeadlineExceeded
	}); err == nil {
		t.Error("no error")
	}
	if got := must.Get(os.ReadFile(path))(t); string(got) != "before" {
		t.Errorf("got %q, want the file before", got)
	}
}

func TestChosen_ReturnsEachDefinitionOnce(t *testing.T) {
	defs, err := feature.Parse("f", []byte("features:\n- {name: a, entity: user, aggregate: count}\n- {name: b, entity: user, aggregate: count}\nfeature_sets: {both: [a, b]}\n"))
	must.OK(t, err)
	list, err := chosen(defs, []string{"b", "@both", "b"})
	if err != nil || !slices.EqualFunc(list, []string{"a", "b"}, func(d feature.Definition, name string) bool { return d.Name == name }) {
		t.Errorf("got %+v, %v", list, err)
	}
}
