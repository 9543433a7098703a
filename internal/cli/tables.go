package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/serving/feed"
)

// tables writes answers for people. It keeps the first write error until flush.
type tables struct {
	out *tabwriter.Writer
	err error
}

func newTables(out io.Writer) *tables {
	return &tables{out: tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)}
}

// row writes one line of cells. It replaces control characters, because a title must not control a terminal.
func (t *tables) row(cells ...string) {
	for i, c := range cells {
		cells[i] = printed(c)
	}
	t.line(strings.TrimRight(strings.Join(cells, "\t"), "\t"))
}

// line writes a line unchanged. A line without a tab ends the columns above it.
func (t *tables) line(text string) {
	if _, err := fmt.Fprintln(t.out, text); t.err == nil {
		t.err = err
	}
}

func (t *tables) flush() error {
	if err := t.out.Flush(); t.err == nil {
		t.err = err
	}
	if t.err != nil {
		return fmt.Errorf("print answer: %w", t.err)
	}
	return nil
}

func printed(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) { // Cf: for example direction marks
			return '\uFFFD'
		}
		return r
	}, text)
}

func local(at time.Time) string { return at.Local().Format(time.DateTime) }

func score(s float64) string { return strconv.FormatFloat(s, 'f', 3, 64) }

// feed writes a page whose first item has the number shown+1. If where is set, it also writes how to read the next page.
func (t *tables) feed(p feed.Page, shown int, where bool) {
	if shown == 0 {
		t.row("", "PIN", "SOURCE", "SCORE", "CREATED", "AUTHOR", "TITLE")
	}
	for _, item := range p.Items {
		mark := ""
		if item.New {
			mark = "new"
		}
		t.row(mark, string(item.ID), string(item.Source), score(float64(item.RankScore)), local(item.Time), string(item.Author), item.Title)
	}
	t.degraded(p.Degraded)
	switch {
	case !where:
	case p.Next == nil:
		t.row("end of the feed")
	default:
		t.row("older: --cursor " + *p.Next)
	}
}

func (t *tables) degraded(without []string) {
	if len(without) > 0 {
		t.row("answered without: " + strings.Join(without, ", "))
	}
}

func (t *tables) pool(p schemas.Pool) {
	t.row("PIN", "SCORE", "CREATED", "AUTHOR", "BOARD")
	for _, item := range p.Items {
		t.row(string(item.Pin), score(float64(item.PoolScore)), local(item.Time.Time()), string(item.Author), string(item.Board))
	}
	t.row(fmt.Sprintf("%d of %d candidates", len(p.Items), p.Total))
}

// definition is the JSON form of a feature.Definition.
type definition struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Entity      string `json:"entity"`
	Window      string `json:"window"`
	Aggregate   string `json:"aggregate"`
}

func (t *tables) definitions(d struct{ Features []definition }) {
	t.row("NAME", "OF", "WINDOW", "AGGREGATE", "MEANING")
	for _, f := range d.Features {
		t.row(f.Name, f.Entity, f.Window, f.Aggregate, f.Description)
	}
}

// values is the JSON form of a feature.Answer. A value may have any form.
type values struct {
	Values  map[string]map[string]any `json:"values"`
	Missing []struct {
		Entity  string `json:"entity"`
		Feature string `json:"feature"`
		Reason  string `json:"reason"`
	} `json:"missing"`
	Degraded []string  `json:"degraded"`
	AsOf     time.Time `json:"as_of"`
}

func (t *tables) features(v values) {
	t.row("ENTITY", "FEATURE", "VALUE")
	for _, entity := range slices.Sorted(maps.Keys(v.Values)) {
		for _, name := range slices.Sorted(maps.Keys(v.Values[entity])) {
			for _, text := range spelled(v.Values[entity][name]) {
				t.row(entity, name, text)
			}
		}
	}
	for _, m := range v.Missing {
		t.row(fmt.Sprintf("missing: %s of %s: %s", m.Feature, m.Entity, m.Reason))
	}
	t.degraded(v.Degraded)
	t.row("as of " + local(v.AsOf))
}

// spelled formats a value as one text per part: the groups, greatest first, or the entries of a list.
func spelled(value any) (texts []string) {
	switch v := value.(type) {
	case map[string]any:
		groups := slices.Sorted(maps.Keys(v))
		slices.SortStableFunc(groups, func(a, b string) int { return compareNumbers(v[b], v[a]) })
		for _, g := range groups {
			texts = append(texts, cell(v[g])+" "+g)
		}
	case []any:
		texts = spelledList(v)
	default:
		return []string{cell(v)}
	}
	if len(texts) == 0 {
		return []string{"none"}
	}
	return texts
}

func spelledList(list []any) (texts []string) {
	for _, entry := range list {
		switch e, _ := entry.(map[string]any); {
		case e == nil: // a number
			return []string{vector(list)}
		case e["value"] != nil: // of top
			texts = append(texts, cell(e["count"])+" "+cell(e["value"]))
		default: // of last
			texts = append(texts, cell(e["verb"])+" "+cell(e["object"])+" at "+cell(e["timestamp"]))
		}
	}
	return texts
}

// vector formats the first numbers of a vector and how many there are.
func vector(list []any) string {
	const most = 4
	first := make([]string, min(len(list), most))
	for i := range first {
		first[i] = cell(list[i])
	}
	dots := ""
	if len(list) > most {
		dots = " …"
	}
	return fmt.Sprintf("[%s%s] %d numbers", strings.Join(first, " "), dots, len(list))
}

func compareNumbers(a, b any) int {
	x, _ := a.(float64)
	y, _ := b.(float64)
	switch {
	case x < y:
		return -1
	case x > y:
		return 1
	}
	return 0
}

// cell formats an integer in full, any other number with six digits, a text unchanged, and anything else as JSON.
func cell(v any) string {
	switch v := v.(type) {
	case nil:
		return "none"
	case float64:
		if v == math.Trunc(v) && math.Abs(v) < 1e15 {
			return strconv.FormatFloat(v, 'f', 0, 64)
		}
		return strconv.FormatFloat(v, 'g', 6, 64)
	case string:
		return v
	}
	text, _ := json.Marshal(v) // it was read from JSON
	return string(text)
}

// partState is the state of a part of a process.
type partState struct {
	Name      string    `json:"name"`
	Condition string    `json:"condition"`
	Since     time.Time `json:"since"`
	Restarts  int       `json:"restarts"`
	LastError string    `json:"last_error"`
}

// state is the part of /v1/status that is most useful to people.
type state struct {
	Version   string      `json:"version"`
	Ready     bool        `json:"ready"`
	Missing   []string    `json:"missing"`
	Parts     []partState `json:"parts"`
	Processes []struct {
		Address string      `json:"address"`
		Version string      `json:"version"`
		Ready   bool        `json:"ready"`
		Missing []string    `json:"missing"`
		Parts   []partState `json:"parts"`
	} `json:"processes"`
	Unasked []struct {
		What string `json:"what"`
		Why  string `json:"why"`
	} `json:"unasked"`
	Groups []struct {
		Group      string            `json:"group"`
		Restarts   int64             `json:"restarts"`
		Partitions []json.RawMessage `json:"partitions"`
		Counters   struct {
			Records     int64 `json:"records"`
			DeadLetters int64 `json:"dead_letters"`
		} `json:"counters"`
		PerSecond float64          `json:"records_per_second"`
		Lag       map[string]int64 `json:"lag"`
	} `json:"groups"`
}

func (t *tables) status(s state) {
	if s.Ready {
		t.row("smartfeed " + s.Version + " is ready")
	} else {
		t.row("smartfeed " + s.Version + " is not ready: " + strings.Join(s.Missing, "; "))
	}
	for _, u := range s.Unasked {
		t.row("without " + u.What + ": " + u.Why)
	}
	t.line("")
	t.parts(s)
	t.line("")
	t.row("GROUP", "PARTITIONS", "RECORDS", "PER SECOND", "LAG", "RESTARTS", "DEAD LETTERS")
	for _, g := range s.Groups {
		t.row(g.Group, strconv.Itoa(len(g.Partitions)), strconv.FormatInt(g.Counters.Records, 10),
			strconv.FormatFloat(g.PerSecond, 'f', 1, 64), lag(g.Lag), strconv.FormatInt(g.Restarts, 10), strconv.FormatInt(g.Counters.DeadLetters, 10))
	}
}

// parts writes the parts of the process that answered, or of all processes that it asked.
func (t *tables) parts(s state) {
	head := []string{"PART", "CONDITION", "SINCE", "RESTARTS", "LAST ERROR"}
	if len(s.Processes) == 0 {
		t.row(head...)
		for _, p := range s.Parts {
			t.row(p.cells()...)
		}
		return
	}
	t.row("PROCESS", "VERSION", "STATE")
	for _, p := range s.Processes {
		said := strings.Join(p.Missing, "; ")
		if p.Ready {
			said = "ready"
		}
		t.row(p.Address, p.Version, said)
	}
	t.line("")
	t.row(append([]string{"PROCESS"}, head...)...)
	for _, p := range s.Processes {
		for _, part := range p.Parts {
			t.row(append([]string{p.Address}, part.cells()...)...)
		}
	}
}

func (p partState) cells() []string {
	return []string{p.Name, p.Condition, local(p.Since), strconv.Itoa(p.Restarts), p.LastError}
}

// lag returns the sum over all topics.
func lag(byTopic map[string]int64) string {
	if byTopic == nil {
		return "unknown"
	}
	sum := int64(0)
	for _, n := range byTopic {
		sum += n
	}
	return strconv.FormatInt(sum, 10)
}
