package rows

import "bytes"

// recentRows keeps rows that callbacks have read lately beside the store: a lookup in Pebble costs one to two microseconds
// however warm its cache is, since it searches every memtable and level, and most records are of owners that others were
// of a moment before. It holds what the store holds once the flying batch has landed; rows that are not there are not
// remembered. Two generations by owner: what was not asked for during a whole one goes. The zero value keeps nothing.
type recentRows struct {
	most  int // bytes of a generation
	bytes int // of young, about
	young map[string]*recentOwner
	old   map[string]*recentOwner
}

// recentOwner are rows of one owner, by place and not by name: few enough to look through.
type recentOwner struct {
	rows []recentRow
	next int // is overwritten when there are recentPerOwner
}

type recentRow struct{ name, value []byte }

const (
	// recentPerOwner has room for what an active user's records touch time and again: a row for each of some dozen
	// interests and authors. With fewer, rows that are asked for in turn would push out one another.
	recentPerOwner = 64
	recentOverhead = 96 // of a row or an owner: headers, map entry
)

func newRecentRows(most int) recentRows {
	return recentRows{most: most, young: map[string]*recentOwner{}}
}

// get returns a row's value, nil if it is not known. The value is good until the next put or landed.
func (r *recentRows) get(owner string, name []byte) []byte {
	o := r.owner(owner)
	if o == nil {
		return nil
	}
	if i := o.find(name); i >= 0 {
		return o.rows[i].value
	}
	return nil
}

// owner returns what is kept of an owner, in the young generation from now on; nil: nothing.
func (r *recentRows) owner(name string) *recentOwner {
	if o := r.young[name]; o != nil {
		return o
	}
	o := r.old[name]
	if o != nil {
		r.keep(name, o)
	}
	return o
}

// keep puts an owner into the young generation, which becomes the old one when it is full.
func (r *recentRows) keep(name string, o *recentOwner) {
	size := len(name) + recentOverhead
	for i := range o.rows {
		size += o.rows[i].size()
	}
	if r.bytes+size > r.most && r.bytes > 0 {
		r.old, r.young, r.bytes = r.young, map[string]*recentOwner{}, 0
	}
	r.young[name] = o
	r.bytes += size
}

func (r *recentRow) size() int { return len(r.name) + cap(r.value) + recentOverhead }

func (o *recentOwner) find(name []byte) int {
	for i := range o.rows {
		if bytes.Equal(o.rows[i].name, name) {
			return i
		}
	}
	return -1
}

// put keeps a copy of a row that the store has, and that no batch has changed.
func (r *recentRows) put(owner string, name, value []byte) {
	if len(value) > r.most/8 || r.most == 0 {
		return
	}
	o := r.owner(owner)
	if o == nil {
		o = &recentOwner{}
		r.keep(owner, o)
	}
	row := recentRow{bytes.Clone(name), append(make([]byte, 0, len(value)), value...)}
	r.bytes += row.size()
	if len(o.rows) < recentPerOwner {
		o.rows = append(o.rows, row)
		return
	}
	r.bytes -= o.rows[o.next].size()
	o.rows[o.next] = row
	o.next = (o.next + 1) % recentPerOwner
}

// landed takes over what a batch has changed of the rows that are kept: the store has it now.
func (r *recentRows) landed(b *batch) {
	if len(r.young)+len(r.old) == 0 {
		return
	}
	for name, l := range b.owners {
		if o := r.young[name]; o != nil {
			r.bytes += o.landed(b, l)
		} else if o := r.old[name]; o != nil {
			o.landed(b, l)
		}
	}
}

// landed returns by how much the rows have grown. l is what the batch has written of the owner.
func (o *recentOwner) landed(b *batch, l *ownerLog) (grown int) {
	if l.last < 0 {
		return 0
	}
	for _, write := range b.ordered(l) {
		i := o.find(b.rowName(write))
		if i < 0 {
			continue
		}
		w, row := &b.writes[write], &o.rows[i]
		grown -= row.size()
		if w.deleted {
			o.drop(i)
			continue
		}
		row.value = append(row.value[:0], b.at(w.value)...)
		grown += row.size()
	}
	return grown
}

func (o *recentOwner) drop(i int) {
	last := len(o.rows) - 1
	o.rows[i] = o.rows[last]
	o.rows[last] = recentRow{}
	o.rows, o.next = o.rows[:last], 0
}
