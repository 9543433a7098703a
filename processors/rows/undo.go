package rows

// mark is a position in a batch to which undo can return.
type mark struct{ data, writes, emits, envelopes, misplaced, counts, deadLetters, skipped, gathered, gatheredBytes int }

func (b *batch) mark() mark {
	return mark{
		len(b.data), len(b.writes), len(b.emits), len(b.envelopes), b.misplaced, len(b.counts), len(b.deadLetters), len(b.skipped),
		len(b.gathered), b.gatheredBytes,
	}
}

// undo removes everything that was added after m. The writes of the affected owners are sorted again when they are next
// read.
func (b *batch) undo(m mark) {
	for _, i := range b.skipped[m.skipped:] {
		b.writes[i].replaced = false
	}
	for i := len(b.writes) - 1; i >= m.writes; i-- {
		w := &b.writes[i]
		l := b.owners[string(b.data[w.key.off:w.key.off+w.row-1])]
		l.last = w.prev
		l.sorted, l.indexed, l.shared = nil, -1, false
	}
	b.data, b.writes, b.emits, b.envelopes = b.data[:m.data], b.writes[:m.writes], b.emits[:m.emits], b.envelopes[:m.envelopes]
	b.counts, b.deadLetters, b.skipped = b.counts[:m.counts], b.deadLetters[:m.deadLetters], b.skipped[:m.skipped]
	clear(b.gathered[m.gathered:])
	b.gathered, b.gatheredBytes = b.gathered[:m.gathered], m.gatheredBytes
	b.misplaced = m.misplaced
}
