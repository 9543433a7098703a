package rows

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
)

// A store receives the newest write of each row last, for keys with any common prefix.
func TestBatch_InOrderSortsByKey(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := newBatch(1)
		owner := rapid.StringMatching(`[ab]{1,3}`)
		row := rapid.SliceOfN(rapid.SampledFrom([]byte{0, 1, 'a', 0xff}), 0, 12)
		type written struct {
			key   string
			write int32
		}
		var want []written
		for i := range rapid.IntRange(1, 30).Draw(t, "writes") {
			name, rest := owner.Draw(t, "owner"), row.Draw(t, "row")
			if rapid.IntRange(0, 9).Draw(t, "reserved") == 0 {
				name = ""
			}
			b.put(b.log(name), name, rest, nil, false)
			want = append(want, written{name + "\x00" + string(rest), int32(i)})
		}
		slices.SortStableFunc(want, func(x, y written) int { return strings.Compare(x.key, y.key) })
		for i, k := range b.inOrder(nil) {
			must.Equal(t, k.write, want[i].write, "write %d of the store, of %q", i, want[i].key)
		}
	})
}

// undoModel pairs a batch with its expected contents: the value of each row, and a copy for each mark.
type undoModel struct {
	b       *batch
	rows    map[string]string
	undoing []undone
}

type undone struct {
	at   mark
	rows map[string]string
}

// step puts, deletes or reads a row, scans an owner, sets a mark, or undoes to the last mark.
func (m *undoModel) step(t *rapid.T) {
	owner, row := rapid.SampledFrom([]string{"a", "b"}).Draw(t, "owner"), rapid.StringMatching(`[x-z]`).Draw(t, "row")
	switch rapid.SampledFrom([]string{"put", "put", "delete", "get", "scan", "mark", "undo"}).Draw(t, "do") {
	case "put":
		value := rapid.StringMatching(`[0-9]{1,3}`).Draw(t, "value")
		m.b.put(m.b.log(owner), owner, []byte(row), []byte(value), false)
		m.rows[owner+row] = value
	case "delete":
		m.b.put(m.b.log(owner), owner, []byte(row), nil, true)
		m.rows[owner+row] = ""
	case "get":
		m.get(t, owner, row)
	case "scan":
		if l := m.b.owners[owner]; l != nil && l.last >= 0 {
			m.b.ordered(l)
			l.shared = true
		}
	case "mark":
		m.undoing = append(m.undoing, undone{m.b.mark(), maps.Clone(m.rows)})
	case "undo":
		if last := len(m.undoing) - 1; last >= 0 {
			m.b.undo(m.undoing[last].at)
			m.rows, m.undoing = m.undoing[last].rows, m.undoing[:last]
		}
	}
}

func (m *undoModel) get(t *rapid.T, owner, row string) {
	want, written := m.rows[owner+row]
	w, found := m.b.get(owner, []byte(row))
	if found != written || found && (w.deleted != (want == "") || string(m.b.at(w.value)) != want) {
		t.Fatalf("row %s of %s: found %v, want %q, written %v", row, owner, found, want, written)
	}
}

// check compares every row, and the records that fill creates, with the model.
func (m *undoModel) check(t *rapid.T) {
	replaced := 0
	for i := range m.b.writes {
		if m.b.writes[i].replaced {
			replaced++
		}
	}
	must.Equal(t, replaced, len(m.b.skipped), "replaced writes: those in skipped")
	sent := map[string]string{}
	for _, r := range new(transactionRecords).fill(m.b, &topology{table: "t-table"}, 0) {
		sent[strings.Replace(string(r.Key), "\x00", "", 1)] = string(r.Value)
	}
	expect.NoDiff(t, sent, m.rows, "rows sent")
	for name := range m.rows {
		m.get(t, name[:1], name[1:])
	}
}

// After any sequence of writes, reads, marks and undos, a batch holds the rows that were not undone, and counts each
// replaced write once.
func TestBatch_UndoRestoresRowsAndSkipped(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &undoModel{b: newBatch(1), rows: map[string]string{}}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			m.step(t)
		}
		m.check(t)
	})
}
