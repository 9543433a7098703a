package rows

import "bytes"

// recentRows caches rows that callbacks have read recently. A lookup in Pebble takes one to two microseconds even with a
// warm block cache, because it searches every memtable and level. Most records have an owner that was used a moment before.
// The cache contains what the store contains after the batch in flight is applied. It does not cache missing rows. It has
// two generations of owners: an owner that is not read during a whole generation is evicted. The zero value caches nothing.
type recentRows struct {
	most  int // bytes per generation
	bytes int // of young, approximately
	young map[string]*recentOwner
	old   map[string]*recentOwner
}

// recentOwner holds rows of one owner in no particular order. They are few enough for a linear search.
type recentOwner struct {
	rows []recentRow
	next int // the row to overwrite when there are recentPerOwner rows
}

type recentRow struct{ name, value []byte }

const (
	// recentPerOwner fits the rows that the records of an active user access repeatedly: one for each of dozens of interests
	// and authors. With a lower limit, rows that are read in turn would evict each other.
	recentPerOwner = 64
	recentOverhead = 96 // per row or owner: headers, map entry
)

func newRecentRows(most int) recentRows {
	return recentRows{most: most, young: map[string]*recentOwner{}}
}

// get returns the value of a row, or nil if it is not cached. The value is valid until the next call of put or landed.
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

// owner returns the cached rows of an owner, or nil, and moves them to the young generation.
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

// keep puts an owner into the young generation. If that is full, it becomes the old generation first.
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

// put caches a copy of a row that was read from the store and that no batch has changed.
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

// landed updates cached rows with the writes of a batch that the store now contains.
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

// landed returns the growth of the cached rows in bytes. l holds the batch's writes of the owner.
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
