package pinot

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/serving/feature"
)

// scripted is a broker that answers a count, and the newest rows up to their LIMIT.
type scripted struct {
	count string   // the complete answer
	rows  []string // newest first

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
	if strings.Contains(q["sql"], "COUNT(") {
		_, _ = fmt.Fprint(w, s.count)
		return
	}
	most, _ := strconv.Atoi(limit.FindStringSubmatch(q["sql"])[1])
	rows := strings.Join(s.rows[:min(most, len(s.rows))], ",")
	_, _ = fmt.Fprintf(w, `{"resultTable":{"dataSchema":{"columnNames":["id"]},"rows":[%s]},"exceptions":[],"numServersQueried":1,"numServersResponded":1}`, rows)
}

func (s *scripted) all() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sent
}

// Pinot counts by group up to the limit of groups. Above it, the store returns the newest groups, which it reads from
// rows.
func TestStore_CountsGroupsUpToLimit(t *testing.T) {
	const tail = `,"numServersQueried":1,"numServersResponded":1}`
	counts := func(rows string) string { return `{"resultTable":{"rows":[` + rows + `]}` + tail }
	row := func(id, surface string, ago int64) string {
		return fmt.Sprintf(`["%s","user:1","%s",%d]`, id, surface, int64(now)/1000-ago)
	}
	rows := []string{row("c", "search", 0), row("b", "", 1), row("a", "home", 2)}
	newest := feature.Result{Value: feature.Groups{"search": 1}, Reasons: []feature.Reason{feature.Cap}}
	const oneKey, twoKeys = "verbAttributes.surface", "[verbAttributes.surface, actor]"
	newestOfTwo := feature.Result{Value: feature.Groups{"search|user:1": 1}, Reasons: []feature.Reason{feature.Cap}}
	tests := map[string]struct {
		count   string
		want    feature.Result
		queries int
		by      string
	}{
		"at the limit":                  {counts(`["home",1]`), feature.Result{Value: feature.Groups{"home": 1}}, 1, oneKey},
		"at the limit, outside actions": {counts(`["home",1],["",1]`), feature.Result{Value: feature.Groups{"home": 1}}, 1, oneKey},
		"outside actions first":         {counts(`["",1],["home",1]`), feature.Result{Value: feature.Groups{"home": 1}}, 1, oneKey},
		"above the limit":               {counts(`["home",1],["search",1]`), newest, 2, oneKey},
		"above, with outside actions":   {counts(`["home",1],["",1],["search",1]`), newest, 2, oneKey},
		"two keys":                      {counts(`["home","user:1",1],["","user:1",2]`), feature.Result{Value: feature.Groups{"home|user:1": 1}}, 1, twoKeys},
		"two keys, rows cut off":        {counts(`["home","user:1",1],["","user:1",2],["home","",1]`), newestOfTwo, 2, twoKeys},
		"more than Pinot counts":        {`{"resultTable":{"rows":[["home",1]]},"numGroupsLimitReached":true` + tail, newest, 2, oneKey},
		"more than an answer holds":     {counts(`["` + strings.Repeat("x", 64<<10) + `",1]`), newest, 2, oneKey},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := &scripted{count: tt.count, rows: rows}
			cfg := feature.DefaultConfig()
			cfg.MaxGroups = 1
			defs := define(t, "- {name: n, entity: user, aggregate: count, group_by: "+tt.by+"}\n")
			store := NewStore(cfg, broker(t, s.ServeHTTP), nil)
			got, _, err := store.Actions(t.Context(), "user:1", feature.Span{AsOf: now, Now: now}, defs)
			must.OK(t, err)
			if diff := cmp.Diff([]feature.Result{tt.want}, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if sent := s.all(); len(sent) != tt.queries || !strings.HasSuffix(sent[0], " LIMIT 3") {
				t.Errorf("sent %q, want %d, the first with a limit above the groups", sent, tt.queries)
			}
		})
	}
}

// A user whose rows exceed the maximum size of an answer gets the newest that fit. This is not a failure of the store.
func TestStore_ReducesWideRows(t *testing.T) {
	tests := map[string]struct{ rows, bytes, looked, queries int }{
		"all fit":              {6, 10 << 10, 6, 1},
		"some fit":             {40, 2 << 10, 27, 2}, // 31 do; three are reserved for the tail, and one shows that there are more
		"few fit":              {100, 20 << 10, 2, 2},
		"one fits":             {3, 40 << 10, 0, 2},
		"none fits":            {3, 70 << 10, 0, 1},
		"all but the tail fit": {6, 65_460 / 6, 4, 3},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := &scripted{}
			for i := range tt.rows { // one per minute
				s.rows = append(s.rows, wide(t, i, tt.bytes))
			}
			store := NewStore(feature.DefaultConfig(), broker(t, s.ServeHTTP), nil)
			defs := define(t, `
- {name: all, entity: user, aggregate: sum, of: objectAttributes.price}
- {name: newest, entity: user, aggregate: sum, of: objectAttributes.price, window: 1m}
`)
			got, _, err := store.Actions(t.Context(), "user:1", feature.Span{AsOf: now, Now: now}, defs)
			must.OK(t, err)
			sent := s.all()
			if len(sent) != tt.queries {
				t.Errorf("%d queries, want %d: %q", len(sent), tt.queries, sent)
			}
			looked := int(got[0].Value.(feature.Number))
			capped := len(got[0].Reasons) == 1 && got[0].Reasons[0] == feature.Cap
			if looked != tt.looked || capped != (looked < tt.rows) {
				t.Errorf("read %d of %d, reasons %v, want %d", looked, tt.rows, got[0].Reasons, tt.looked)
			}
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
		attributes, err := json.Marshal(map[string]string{"price": "1", "text": `[["]\"` + text})
		must.OK(t, err)
		all, err := json.Marshal([]any{fmt.Sprint(i), "user:1", string(attributes), int64(now)/1000 - int64(i)*60_000})
		must.OK(t, err)
		return string(all)
	}
	return row(strings.Repeat("x", bytes-len(row(""))))
}

func TestCompleteRows(t *testing.T) {
	const answer = `{"resultTable":{"dataSchema":{"columnNames":["id"]},"rows" : [["]",["a","b"]],["\"]\\",[]],[null,[1]]]},"exceptions":[[],[]]}`
	third := strings.Index(answer, `,[null`)
	for beginning, want := range map[string]int{
		answer: 3, answer[:third]: 2, answer[:third-1]: 1, answer[:third+len(`,[null,[1]`)]: 2,
		`{"resultTable":{"rows":[`: 0, "<html>": -1, "": -1,
	} {
		if got := completeRows([]byte(beginning)); got != want {
			t.Errorf("%s: %d rows, want %d", beginning, got, want)
		}
	}
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
		store := NewStore(feature.DefaultConfig(), c, nil)
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
			store := NewStore(cfg, broker(t, s.ServeHTTP), nil)
			defs := define(t, "- {name: n, entity: user, aggregate: count, window: 1h}\n- {name: wider, entity: user, aggregate: count}\n")
			got, _, err := store.Actions(t.Context(), one, feature.Span{AsOf: now, Now: now}, defs)
			must.OK(t, err)
			if diff := cmp.Diff(tt.want, got[0]); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if sent := s.all(); len(sent) != 1 || !strings.Contains(sent[0], " IN (") {
				t.Errorf("sent %q, want both readings of the id at once", sent)
			}
		})
	}
}
