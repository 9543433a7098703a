package rows

// recentRows caches rows that callbacks have read recently. A lookup in Pebble takes one to two microseconds even with a
// warm block cache, because it searches every memtable and level. Most records have an owner that was used a moment before.
// Cached values are those of the store after the batch in flight is applied. Missing rows are not cached. The cache has two
// generations: a row that is not read during a whole generation is evicted. The zero value caches nothing.
type recentRows struct {
	maxBytes int // bytes per generation
	bytes    int // of young, approximately
	young    map[string]*recentRow
	old      map[string]*recentRow
}

type recentRow struct {
	key   string // as in the store
	value []byte
}

const recentOverhead = 128 // per row: headers, map entry

func newRecentRows(maxBytes int) recentRows {
	return recentRows{maxBytes: maxBytes, young: map[string]*recentRow{}}
}

func (r *recentRow) size() int { return len(r.key) + cap(r.value) + recentOverhead }

// get returns the value of a row, or nil if it is not cached. The value is valid until the next call of apply.
func (r *recentRows) get(key []byte) []byte {
	row := r.young[string(key)]
	if row == nil {
		if row = r.old[string(key)]; row == nil {
			return nil
		}
		r.keep(row)
	}
	return row.value
}

// keep puts a row into the young generation. If that is full, it becomes the old generation first.
func (r *recentRows) keep(row *recentRow) {
	if r.bytes+row.size() > r.maxBytes && r.bytes > 0 {
		r.old, r.young, r.bytes = r.young, map[string]*recentRow{}, 0
	}
	r.young[row.key] = row
	r.bytes += row.size()
}

// put caches a copy of a row that was read from the store and that no batch has changed.
func (r *recentRows) put(key, value []byte) {
	if r.maxBytes > 0 && len(value) <= r.maxBytes/8 {
		r.keep(&recentRow{string(key), append(make([]byte, 0, len(value)), value...)})
	}
}

// apply updates cached rows with the writes of a batch that the store now contains.
func (r *recentRows) apply(b *batch) {
	if len(r.young)+len(r.old) == 0 {
		return
	}
	for i := range b.writes {
		w := &b.writes[i]
		key := b.at(w.key)
		row, isYoung := r.young[string(key)]
		if !isYoung {
			row = r.old[string(key)]
		}
		if row == nil {
			continue
		}
		if isYoung {
			r.bytes -= row.size()
		}
		if w.deleted {
			delete(r.young, row.key)
			delete(r.old, row.key)
			continue
		}
		row.value = append(row.value[:0], b.at(w.value)...)
		if isYoung {
			r.bytes += row.size()
		}
	}
}
