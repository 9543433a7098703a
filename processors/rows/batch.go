package rows

import (
	"bytes"
	"cmp"
	"slices"
	"time"
)

// batch holds the contents of one transaction: everything that the callbacks of consecutive records wrote, in order. The
// bytes of all keys and values are in one arena. Therefore a row needs no allocation, and the changelog records and the
// store's batch refer to the arena. A write is only appended. An owner's writes are sorted when they are first read.
type batch struct {
	data         []byte
	writes       []write
	emits        []emit
	gathered     []gathered // their records are added to emits when the batch is sealed
	traces       traces
	firstArrival arrival    // the first record, which has waited the longest; zero: none
	envelopes    []envelope // of emits that need one
	owners       map[string]*ownerLog
	logs         [][]ownerLog // the elements of owners, logsPerChunk each, kept for reuse
	newWrites    []int32      // scratch space of ordered
	applied      []int64      // by input: offset of the last applied record; -1: none
	counts       []counted    // what callbacks counted: drops by reason, effects by name
	deadLetters  []string     // reasons of records sent to the dead-letter topic

	messages      int
	gatheredBytes int
	prompt        bool      // there is a record whose effects must not wait
	started       time.Time // when the first record was added, unless it was prompt
	misplaced     int       // records forwarded to the partition of their key
	advanced      bool      // applied offsets have advanced over markers or aborted records
	skipped       []int32   // indexes of the replaced writes, each once
	timers        bool      // timers were set, dropped or fired
	ticked        bool      // a tick was processed …
	nextTickSent  bool      // … and emitted the next one
	sealed        bool      // being committed: its writes must not change
}

// span is a range of the arena.
type span struct{ off, len uint32 }

// write is a put or a deletion of a row.
type write struct {
	key      span // owner 0x00 row
	value    span
	prev     int32 // previous write of the same owner; -1: none
	row      uint32
	deleted  bool
	replaced bool // by a later write of the batch: not sent to the changelog or the store
}

// counted is a count by a callback: drops by reason, or an effect by name.
type counted struct {
	name    string
	n       int
	dropped bool
}

// emit is an output record.
type emit struct {
	topic      uint16 // index into the group's outputs
	partition  int32
	key        span
	value      span
	noValue    bool
	row        int32  // index of the write whose row has the record's state + 1; 0: none
	traced     uint16 // index of the record's span in traces + 1; 0: not traced
	envelope   int32  // index into envelopes + 1; 0: none
	originTime int64
}

// envelope holds the topic, headers and time of a record that is not an ordinary output: a record forwarded to its correct
// partition, or a retry.
type envelope struct {
	topic   string
	headers map[string][]byte
	micros  int64
	isNew   bool // micros is not set: use the time of the commit
}

// ownerLog holds the writes of one owner in a batch.
type ownerLog struct {
	last    int32   // newest write; -1: none
	indexed int32   // writes up to this one are in sorted
	sorted  []int32 // newest write of each row, ordered by row name
	shared  bool    // a scan uses sorted: copy it before a change
}

func newBatch(inputs int) *batch {
	b := &batch{owners: map[string]*ownerLog{}, applied: make([]int64, inputs)}
	b.reset()
	return b
}

// maxKept is the memory that an empty batch keeps for reuse, in bytes. Only a single oversized record makes a batch exceed
// it.
const maxKept = 4 << 20

func (b *batch) reset() {
	if cap(b.data) > maxKept {
		b.data = nil
	}
	if cap(b.writes)*writeBytes > maxKept {
		b.writes = nil
	}
	b.data, b.writes, b.emits, b.envelopes = b.data[:0], b.writes[:0], b.emits[:0], b.envelopes[:0]
	b.counts, b.deadLetters, b.skipped = b.counts[:0], b.deadLetters[:0], b.skipped[:0]
	clear(b.owners)
	clear(b.gathered) // items refer to records
	b.gathered, b.gatheredBytes = b.gathered[:0], 0
	for i := range b.applied {
		b.applied[i] = -1
	}
	b.traces.reset()
	b.firstArrival = arrival{}
	b.prompt, b.started = false, time.Time{}
	b.messages, b.misplaced, b.advanced, b.timers, b.ticked, b.nextTickSent, b.sealed = 0, 0, false, false, false, false, false
}

const writeBytes = 28

// needsCommit reports whether the batch holds anything to commit.
func (b *batch) needsCommit() bool { return b.messages > 0 || b.advanced }

// add counts a processed record. It reports whether the committer must reconsider when to commit.
func (b *batch) add(deferred bool, now func() time.Time) bool {
	before := b.needsCommit() && (b.prompt || deferred)
	if deferred && !b.needsCommit() {
		b.started = now()
	}
	b.messages++
	b.prompt = b.prompt || !deferred
	return !before
}

// deferredFor returns how much longer a batch may wait if its effects may wait for interval.
func (b *batch) deferredFor(now time.Time, interval time.Duration) time.Duration {
	if b.prompt || b.started.IsZero() {
		return 0
	}
	return interval - now.Sub(b.started)
}

// bytes returns the approximate size of the batch on the wire.
func (b *batch) bytes() int {
	return len(b.data) + 16*(len(b.writes)+len(b.emits)) + b.gatheredBytes
}

func (b *batch) at(s span) []byte { return b.data[s.off : s.off+s.len : s.off+s.len] }

func (b *batch) keep(p []byte) span {
	s := span{uint32(len(b.data)), uint32(len(p))}
	b.data = append(b.data, p...)
	return s
}

func (b *batch) keepString(p string) span {
	s := span{uint32(len(b.data)), uint32(len(p))}
	b.data = append(b.data, p...)
	return s
}

// emit adds an output record of the record being processed, and returns it. Callbacks emit through state.emit.
func (b *batch) emit(topic uint16, partition int32, key string, value []byte, originTime int64) *emit {
	b.emits = append(b.emits, emit{
		topic: topic, partition: partition, key: b.keepString(key), value: b.keep(value), noValue: value == nil,
		originTime: originTime, traced: b.traces.now,
	})
	return &b.emits[len(b.emits)-1]
}

// wrap attaches an envelope to an emit.
func (b *batch) wrap(e *emit, in envelope) {
	b.envelopes = append(b.envelopes, in)
	e.envelope = int32(len(b.envelopes))
}

// isSuperseded reports whether a later record of the batch has the newer state of the same row.
func (b *batch) isSuperseded(e *emit) bool { return e.row != 0 && b.writes[e.row-1].replaced }

// sentEmits returns the number of output records that are sent.
func (b *batch) sentEmits() (n int) {
	for i := range b.emits {
		if !b.isSuperseded(&b.emits[i]) {
			n++
		}
	}
	return n
}

// topicOf returns the name of an emit's topic.
func (b *batch) topicOf(e *emit, topo *topology) string {
	if e.envelope != 0 {
		return b.envelopes[e.envelope-1].topic
	}
	return topo.outputNames[e.topic]
}

const logsPerChunk = 256

// log returns the writes of an owner. It creates an empty log if there is none.
func (b *batch) log(owner string) *ownerLog {
	l := b.owners[owner]
	if l == nil {
		n := len(b.owners)
		if n/logsPerChunk == len(b.logs) {
			b.logs = append(b.logs, make([]ownerLog, logsPerChunk))
		}
		l = &b.logs[n/logsPerChunk][n%logsPerChunk]
		*l = ownerLog{last: -1, indexed: -1, sorted: l.sorted[:0]}
		b.owners[owner] = l
	}
	return l
}

// put appends a write to l, the log of owner.
func (b *batch) put(l *ownerLog, owner string, row, value []byte, deleted bool) {
	w := write{key: b.keepString(owner), row: uint32(len(owner)) + 1, prev: l.last, deleted: deleted}
	b.data = append(b.data, separator)
	b.data = append(b.data, row...)
	w.key.len = uint32(len(b.data)) - w.key.off
	w.value = b.keep(value)
	l.last = int32(len(b.writes))
	b.writes = append(b.writes, w)
}

func (b *batch) rowName(i int32) []byte {
	w := &b.writes[i]
	return b.data[w.key.off+w.row : w.key.off+w.key.len]
}

// find returns the position of row in the sorted writes, or the position where it would be inserted.
func (b *batch) find(sorted []int32, row []byte) (int, bool) {
	return slices.BinarySearchFunc(sorted, row, func(i int32, row []byte) int { return bytes.Compare(b.rowName(i), row) })
}

// ordered returns the newest write of each of the owner's rows, ordered by row name. Later writes do not change the result.
func (b *batch) ordered(l *ownerLog) []int32 {
	if l.last == l.indexed {
		return l.sorted
	}
	news := b.newWrites[:0]
	for i := l.last; i > l.indexed; i = b.writes[i].prev {
		news = append(news, i)
	}
	slices.Reverse(news) // oldest first
	b.newWrites = news
	if l.shared {
		l.sorted, l.shared = slices.Clone(l.sorted), false
	}
	if len(news) <= len(l.sorted)/4+4 {
		for _, i := range news {
			b.insert(l, i)
		}
	} else {
		b.merge(l, news)
	}
	l.indexed = l.last
	return l.sorted
}

func (b *batch) insert(l *ownerLog, i int32) {
	at, found := b.find(l.sorted, b.rowName(i))
	if !found {
		l.sorted = slices.Insert(l.sorted, at, i)
		return
	}
	b.replace(l.sorted[at])
	l.sorted[at] = i
}

// merge adds many writes to the sorted ones at once.
func (b *batch) merge(l *ownerLog, news []int32) {
	all := append(l.sorted, news...)
	slices.SortFunc(all, func(i, j int32) int {
		if c := bytes.Compare(b.rowName(i), b.rowName(j)); c != 0 {
			return c
		}
		return int(i - j)
	})
	kept := all[:0]
	for n, i := range all {
		if n+1 < len(all) && bytes.Equal(b.rowName(i), b.rowName(all[n+1])) {
			b.replace(i)
			continue
		}
		kept = append(kept, i)
	}
	l.sorted = kept
}

// replace marks a write that a later one replaces. After an undo, an owner's writes are sorted from scratch, so the write
// may already be marked.
func (b *batch) replace(i int32) {
	if !b.sealed && !b.writes[i].replaced {
		b.writes[i].replaced = true
		b.skipped = append(b.skipped, i)
	}
}

// get returns the newest write of a row. It returns false if the batch has none.
func (b *batch) get(owner string, row []byte) (w *write, found bool) {
	l := b.owners[owner]
	if l == nil || l.last < 0 {
		return nil, false
	}
	sorted := b.ordered(l)
	at, found := b.find(sorted, row)
	if !found {
		return nil, false
	}
	return &b.writes[sorted[at]], true
}

// keyed is a write with the first distinguishing bytes of its key.
type keyed struct {
	head  uint64
	write int32
}

// inOrder appends the writes that are not replaced, ordered by key. Writes of the same key keep their order. Pebble inserts
// neighboring keys faster than keys in random order.
func (b *batch) inOrder(list []keyed) []keyed {
	common := b.commonPrefix()
	for i := range b.writes {
		if !b.writes[i].replaced {
			list = append(list, keyed{headOf(b.at(b.writes[i].key), common), int32(i)})
		}
	}
	slices.SortFunc(list, func(x, y keyed) int {
		if x.head != y.head {
			return cmp.Compare(x.head, y.head)
		}
		if c := bytes.Compare(b.at(b.writes[x.write].key), b.at(b.writes[y.write].key)); c != 0 {
			return c
		}
		return cmp.Compare(x.write, y.write)
	})
	return list
}

// commonPrefix returns the length of the common prefix of all keys except those of reserved rows.
func (b *batch) commonPrefix() int {
	var first []byte
	common := 0
	for i := range b.writes {
		key := b.at(b.writes[i].key)
		if key[0] == separator {
			continue
		}
		if first == nil {
			first, common = key, len(key)
		}
		n := 0
		for n < min(common, len(key)) && key[n] == first[n] {
			n++
		}
		common = n
	}
	return common
}

// headOf returns the eight bytes after the prefix as a number. It returns 0 for reserved rows, which sort first.
func headOf(key []byte, prefix int) (head uint64) {
	if key[0] == separator {
		return 0
	}
	for _, c := range key[prefix:min(len(key), prefix+8)] {
		head = head<<8 | uint64(c)
	}
	return head << (8 * (8 - min(len(key)-prefix, 8)))
}
