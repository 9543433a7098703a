package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"
)

// tables writes answers for people. It keeps the first write error until flush.
type tables struct {
	out *tabwriter.Writer
	err error
}

func newTables(out io.Writer) *tables {
	return &tables{out: tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)}
}

// row writes one line of cells. It replaces control characters, so that a title cannot control the terminal.
func (t *tables) row(cells ...any) {
	texts := make([]string, len(cells))
	for i, c := range cells {
		texts[i] = printed(cell(c))
	}
	t.line(strings.TrimRight(strings.Join(texts, "\t"), "\t"))
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

func (t *tables) degraded(without []string) {
	if len(without) > 0 {
		t.row("answered without: " + strings.Join(without, ", "))
	}
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

func score[T ~float64](s T) string { return strconv.FormatFloat(float64(s), 'f', 3, 64) }

// cell formats a time in the local time zone, an integer in full, any other number with six digits, and decoded lists and
// objects as JSON. A nil time is a dash.
func cell(v any) string {
	switch v := v.(type) {
	case nil:
		return "none"
	case time.Time:
		return local(v)
	case *time.Time:
		if v == nil {
			return "–"
		}
		return local(*v)
	case float64:
		if v == math.Trunc(v) && math.Abs(v) < 1e15 {
			return strconv.FormatFloat(v, 'f', 0, 64)
		}
		return strconv.FormatFloat(v, 'g', 6, 64)
	case map[string]any, []any:
		text, _ := json.Marshal(v) // it was read from JSON
		return string(text)
	}
	return fmt.Sprint(v)
}
