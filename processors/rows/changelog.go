package rows

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
)

// The changelog of a group also contains the applied offsets of its inputs. If the changelog was recreated or lost its end, the
// group would read inputs again and emit their effects twice. Two places outside the changelog record its length: the local
// store, and the metadata of the consumer group's committed offsets, which starts with changelogMark.

// errLost is returned when the changelog has lost records that the group wrote.
var errLost = errors.New("records of the changelog were lost")

// lostChangelog returns a *FatalError that says what to do. forget names what to delete to start the group anyway.
func lostChangelog(group, forget string, err error) error {
	return &FatalError{fmt.Errorf("%w: restore the topics as of one moment, or rebuild the group %s; then delete %s", err, group, forget)}
}

const changelogMark = "changelog "

// formatMark returns the metadata of committed offsets: the changelog's topic id and an offset in it.
func formatMark(at position) string { return changelogMark + hex.EncodeToString(at.append(nil)) }

// parseMark parses the metadata of a committed offset. It returns false if another program committed the offset.
func parseMark(metadata string) (at position, ok bool) {
	text, found := strings.CutPrefix(metadata, changelogMark)
	value, err := hex.DecodeString(text)
	if !found || err != nil {
		return position{}, false
	}
	at, err = parsePosition(value)
	return at, err == nil
}

// offsetMetadata returns the metadata for offsets that are committed now.
func (p *partition) offsetMetadata() string {
	return formatMark(position{topic: p.session.ids[p.run.r.topo.table], offset: p.store.offset.Load()})
}

// checkChangelog compares the end offset of a partition's changelog with the metadata of the committed offsets.
func (s *session) checkChangelog(topo *topology, partition int32, end int64) error {
	for _, topic := range topo.reads() {
		committed, _ := s.committed.Lookup(topic, partition)
		was, marked := parseMark(committed.Metadata)
		if !marked {
			continue
		}
		forget := "the offsets of the consumer group " + topo.name
		if was.topic != s.ids[topo.table] {
			return lostChangelog(topo.base, forget, fmt.Errorf("%w: topic %s was recreated since the group committed its offsets of %s/%d",
				errLost, topo.table, topic, partition))
		}
		if was.offset >= end {
			return lostChangelog(topo.base, forget, fmt.Errorf("%w: %s/%d ends at %d, but the group wrote up to offset %d",
				errLost, topo.table, partition, end, was.offset))
		}
	}
	return nil
}
