package pinot

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/serving/feature"
)

// scripted is a broker that answers the newest rows up to their LIMIT.
type scripted struct {
	rows []string // newest first

	mu   sync.Mutex
	sent []string
}

var limit = regexp.MustCompile(` LIMIT (\d+)$`)

func (s *scripted) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var q map[string]string
	_ = json.NewDecoder(r.Body).Decode(&q)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent = append(s.sent, q["sql"])
	most, _ := strconv.Atoi(limit.FindStringSubmatch(q["sql"])[1])
	rows := strings.Join(s.rows[:min(most, len(s.rows))], ",")
	_, _ = fmt.Fprintf(w, `{"resultTable":{"dataSchema":{"columnNames":["id"]},"rows":[%s]},"exceptions":[],"numServersQueried":1,"numServersResponded":1}`, rows)
}

func (s *scripted) all() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sent
}

// A user whose rows exceed the maximum size of an answer gets the newest, as many as fit after halving. This is not a failure
// of the store.
func TestStore_ReducesWideRows(t *testing.T) {
	for name, tt := range map[string]struct{ rows, bytes, looked, queries int }{
		"all fit":              {6, 10 << 10, 6, 1},
		"some fit":             {40, 2 << 10, 15, 3}, // of 64, 32 and 16, one shows that there are more
		"few fit":              {100, 20 << 10, 1, 6},
		"one fits":             {3, 40 << 10, 0, 7},
		"all but the tail fit": {6, 65_460 / 6, 3, 5},
	} {
		t.Run(name, func(t *testing.T) {
			s := &scripted{}
			for i := range tt.rows { // one per minute
				s.rows = append(s.rows, wide(t, i, tt.bytes))
			}
			cfg := feature.DefaultConfig()
			cfg.MaxActions = 63
			store := NewStore(cfg, broker(t, s.ServeHTTP))
			defs := define(t, `
- {name: all, entity: user, aggregate: sum, of: objectAttributes.price}
- {name: newest, entity: user, aggregate: sum, of: objectAttributes.price, window: 1m}
`)
			got, _, err := store.Actions(t.Context(), "user:1", feature.Span{AsOf: now, Now: now}, defs)
			must.OK(t, err)
			sent := s.all()
			expect.Equal(t, len(sent), tt.queries, "number of queries %q", sent)
			looked := int(got[0].Value.(feature.Number))
			capped := len(got[0].Reasons) == 1 && got[0].Reasons[0] == feature.Cap
			expect.Equal(t, looked, tt.looked, "rows read of %d", tt.rows)
			expect.Equal(t, capped, looked < tt.rows, "capped, with the reasons %v", got[0].Reasons)
			if whole := len(got[1].Reasons) == 0; whole != (looked > 0) || whole && got[1].Value != feature.Number(1) {
				t.Errorf("of the last minute: %+v, want 1 if any row was read", got[1])
			}
		})
	}
}

// wide returns the i-th newest row with the given size. It contains texts that resemble the end of a text or of a row.
func wide(t *testing.T, i, bytes int) string {
	t.Helper()
	row := func(text string) string {
		attributes := must.Get(json.Marshal(map[string]string{"price": "1", "text": `[["]\"` + text}))(t)
		all := must.Get(json.Marshal([]any{fmt.Sprint(i), "user:1", string(attributes), int64(now)/1000 - int64(i)*60_000}))(t)
		return string(all)
	}
	return row(strings.Repeat("x", bytes-len(row(""))))
}

// An oversized body that is not an answer is a failure of the broker, and not caused by the user's rows.
func TestStore_OversizedErrorIsAFailure(t *testing.T) {
	for name, status := range map[string]int{"no table": http.StatusOK, "an error": http.StatusBadRequest} {
		c := broker(t, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			text := "<html>"
			if status != http.StatusOK {
				text = `{"resultTable":{"rows":[`
			}
			_, _ = w.Write(append([]byte(text), make([]byte, 64<<10)...))
		})
		defs := define(t, "- {name: last, entity: user, aggregate: last}\n")
		store := NewStore(feature.DefaultConfig(), c)
		if got, _, err := store.Actions(t.Context(), "user:1", feature.Span{AsOf: now, Now: now}, defs); err == nil {
			t.Errorf("%s: answered %+v", name, got)
		}
	}
}

// Rows above the limit are always reported. This also holds for releases that confuse two ids, where the rows belong to
// another user.
func TestStore_ReportsRowsAboveLimit(t *testing.T) {
	row := func(user string, ago int64) string {
		return fmt.Sprintf(`["%s-%d","%s",%d]`, user, ago, user, int64(now)/1000-ago)
	}
	const one, other = "user:''", "user:''''" // releases may read one as the other
	counted := func(n feature.Number, reasons ...feature.Reason) feature.Result {
		return feature.Result{Value: n, Reasons: reasons}
	}
	tests := map[string]struct {
		rows []string
		want feature.Result
	}{
		"own":                       {[]string{row(one, 0), row(one, 1)}, counted(2)},
		"more of one's own":         {[]string{row(one, 0), row(one, 1), row(one, 2)}, counted(2, feature.Cap)},
		"one of another":            {[]string{row(other, 0), row(one, 1)}, counted(1)},
		"one of another and more":   {[]string{row(other, 0), row(one, 1), row(other, 2)}, counted(1, feature.Cap)},
		"only rows of another":      {[]string{row(other, 0), row(other, 1), row(other, 2)}, counted(0, feature.Cap)},
		"more, all of them too old": {[]string{row(one, 3_600_000), row(one, 3_600_001), row(one, 3_600_002)}, counted(0)},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := &scripted{rows: tt.rows}
			cfg := feature.DefaultConfig()
			cfg.MaxActions = 2
			store := NewStore(cfg, broker(t, s.ServeHTTP))
			defs := define(t, "- {name: n, entity: user, aggregate: count, window: 1h}\n- {name: wider, entity: user, aggregate: count}\n")
			got, _, err := store.Actions(t.Context(), one, feature.Span{AsOf: now, Now: now}, defs)
			must.OK(t, err)
			expect.NoDiff(t, got[0], tt.want, "result")
			if sent := s.all(); len(sent) != 1 || !strings.Contains(sent[0], " IN (") {
				t.Errorf("sent %q, want both readings of the id at once", sent)
			}
		})
	}
}

// ofTable answers queries of each table, and requires that there is an answer for it.
func ofTable(t *testing.T, answers map[string]string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var q map[string]string
		_ = json.NewDecoder(r.Body).Decode(&q)
		for name, rows := range answers {
			if strings.Contains(q["sql"], " FROM "+name+" WHERE pin IN ('pin:1', 'pin:2')") {
				_, _ = fmt.Fprintf(w, `{"resultTable":{"rows":%s},"numServersQueried":1,"numServersResponded":1,"minConsumingFreshnessTimeMs":%d}`, rows, 1000*len(name))
				return
			}
		}
		t.Errorf("no answer for %s", q["sql"])
	}
}

// A step that Pinot returns twice, while its row moves to another segment, counts once. The mean of a deleted pin's actors
// does not count. The freshness is that of the least fresh table.
func TestStore_Items(t *testing.T) {
	defs := define(t, `
- {name: saves, entity: pin, verbs: save, window: 1h, aggregate: count}
- {name: actors, entity: pin, window: 1h, aggregate: distinct}
- {name: mean, entity: pin, aggregate: mean_embedding}
`)
	start := int64(now) / 1000 / 300_000 * 300_000
	actors := hex.EncodeToString(schemas.Sketch(nil).Add("user:1").Add("user:2"))
	s := NewStore(feature.DefaultConfig(), broker(t, ofTable(t, map[string]string{
		CountsTable: fmt.Sprintf(`[["pin:1","{\"save\":2}",%q,%d],["pin:2","{\"save\":5}","",%d],["pin:1","{\"save\":2}",%q,%d],["pin:other","{\"save\":9}","",%d]]`,
			actors, start, start, actors, start, start),
		MeansTable: `[["pin:1",[1,2]],["pin:2",[3,4]]]`, PinsTable: `[["pin:2"]]`,
	})))
	got, fresh, err := s.Items(t.Context(), []schemas.PinID{"pin:1", "pin:2"}, now, defs)
	must.OK(t, err)
	want := [][]feature.Result{
		{{Value: feature.Number(2)}, {Value: feature.Number(2)}, {Value: feature.Vector{1, 2}}},
		{{Value: feature.Number(5)}, {Value: feature.Number(0)}, {Reasons: []feature.Reason{feature.Empty}}},
	}
	expect.NoDiff(t, got, want, "results")
	expect.NoDiff(t, fresh, time.Unix(int64(len(PinsTable)), 0), "fresh to, of the table %s", PinsTable)
}

// Pins whose rows exceed the maximum size of an answer are read in parts, down to a single pin.
func TestStore_ReadsPinsInParts(t *testing.T) {
	var pins []schemas.PinID
	for i := range 10 {
		pins = append(pins, schemas.PinID(fmt.Sprint("pin:", i)))
	}
	read := func(bytes int) (map[schemas.PinID]feature.PinAttributes, error) {
		c := broker(t, func(w http.ResponseWriter, r *http.Request) {
			var q map[string]string
			_ = json.NewDecoder(r.Body).Decode(&q)
			var rows []string
			for _, pin := range pins {
				if strings.Contains(q["sql"], "'"+string(pin)+"'") {
					rows = append(rows, fmt.Sprintf(`[%q,"user:a","",[],"","{\"x\":\"%s\"}"]`, pin, strings.Repeat("x", bytes)))
				}
			}
			_, _ = fmt.Fprintf(w, `{"resultTable":{"rows":[%s]},"numServersQueried":1,"numServersResponded":1}`, strings.Join(rows, ","))
		})
		known, _, err := NewStore(feature.DefaultConfig(), c).Pins(t.Context(), pins, false)
		return known, err
	}
	known := must.Get(read(20 << 10))(t)
	expect.Equal(t, len(known), len(pins), "pins")
	expect.Is(t, expect.ErrorOf(read(64<<10)), ErrTooLarge, "a pin above the limit")
}
