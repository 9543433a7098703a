package embedded

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

const (
	batchHeadBytes = 61
	indexBytes     = 15
	maxBatchBytes  = 64 << 20 // the broker accepts no larger batch
)

// span is the range of a producer's open or aborted transaction in a log.
type span struct {
	ProducerID  int64 `json:"producer_id"`
	FirstOffset int64 `json:"first_offset"`
	LastOffset  int64 `json:"last_offset"`
	epoch       int16
}

// segment is one file of a log.
type segment struct {
	Base  int64  `json:"base_offset"`
	Size  int64  `json:"size"`
	index []byte // as kfake would have written it
}

// snapshot is kfake's file snapshot.json.
type snapshot struct {
	Version          int       `json:"version"`
	HighWatermark    int64     `json:"high_watermark"`
	LastStableOffset int64     `json:"last_stable_offset"`
	LogStartOffset   int64     `json:"log_start_offset"`
	Epoch            int32     `json:"epoch"`
	MaxTimestamp     int64     `json:"max_timestamp"`
	CreatedAt        time.Time `json:"created_at"`
	AbortedTxns      []span    `json:"aborted_txns,omitempty"`
	Segments         []segment `json:"segments"`
}

// partitionLog is the log of one partition.
type partitionLog struct {
	dir  string
	snap snapshot // to be written
	open map[int64]span
	ends map[txn]markers
}

// markers counts the end markers of one transaction in a log.
type markers struct{ all, commits int32 }

// grownLogs returns the logs that differ from their snapshot. resumes is true if kfake resumes the transactions that were open
// at the last close. If it is false, grownLogs also returns the logs with an open transaction.
func grownLogs(dir string, resumes bool) ([]*partitionLog, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	var logs []*partitionLog
	for _, e := range entries {
		l := &partitionLog{dir: filepath.Join(dir, e.Name()), open: map[int64]span{}, ends: map[txn]markers{}}
		grown, err := l.grown(resumes)
		if err != nil {
			return nil, err
		}
		if grown {
			logs = append(logs, l)
		}
	}
	return logs, err
}

// grown lists the segments, and reports whether they differ from the snapshot.
func (l *partitionLog) grown(resumes bool) (bool, error) {
	files, err := os.ReadDir(l.dir)
	if err != nil {
		return false, err
	}
	for _, f := range files {
		base, isLog := strings.CutSuffix(f.Name(), ".dat")
		offset, err := strconv.ParseInt(base, 10, 64)
		if !isLog || err != nil {
			continue
		}
		info, err := f.Info()
		if err != nil {
			return false, err
		}
		l.snap.Segments = append(l.snap.Segments, segment{Base: offset, Size: info.Size()})
	}
	slices.SortFunc(l.snap.Segments, func(a, b segment) int { return cmp.Compare(a.Base, b.Base) })
	var old snapshot
	found, err := readJSON(filepath.Join(l.dir, "snapshot.json"), &old)
	if err != nil {
		found = false // kfake would not use it either
	}
	same := slices.EqualFunc(l.snap.Segments, old.Segments, func(a, b segment) bool { return a.Base == b.Base && a.Size == b.Size })
	same = same && (resumes || old.LastStableOffset == old.HighWatermark)
	l.snap.CreatedAt, l.snap.LogStartOffset = old.CreatedAt, old.LogStartOffset
	return len(l.snap.Segments) > 0 && !(found && same), nil
}

// scan reads every batch. It truncates a torn batch at the end of the log, which was never acknowledged. Any other damage
// does not result from a crash of the process, and is an error.
func (l *partitionLog) scan(d disk) error {
	l.snap.Version = formatVersion
	for i := range l.snap.Segments {
		if err := l.scanSegment(&l.snap.Segments[i], d); err != nil {
			return err
		}
	}
	return nil
}

func (l *partitionLog) path(s *segment, ext string) string {
	return filepath.Join(l.dir, strconv.FormatInt(s.Base, 10)+ext)
}

func (l *partitionLog) scanSegment(s *segment, d disk) error {
	f, err := os.Open(l.path(s, ".dat"))
	if err != nil {
		return err
	}
	defer f.Close()
	in := bufio.NewReaderSize(f, 1<<20)
	var buf []byte
	complete := int64(0)
	for {
		if buf, err = readBatch(in, buf); err != nil {
			break
		}
		if err := l.add(s, buf); err != nil {
			return err
		}
		complete += int64(len(buf))
	}
	last := s.Base == l.snap.Segments[len(l.snap.Segments)-1].Base
	switch {
	case errors.Is(err, io.EOF):
		return nil
	case errors.Is(err, errTorn) && last: // the write that the crash interrupted
		s.Size = complete
		return d.truncate(f.Name(), complete)
	}
	return fmt.Errorf("%s is damaged at byte %d (%w): restore it, or start with an empty directory", f.Name(), complete, err)
}

// errTorn is returned when a file ends inside a batch.
var errTorn = errors.New("the file ends inside a batch")

// readBatch reads the next batch into buf.
func readBatch(in *bufio.Reader, buf []byte) ([]byte, error) {
	head, err := in.Peek(12)
	if err != nil {
		if len(head) > 0 && errors.Is(err, io.EOF) {
			err = errTorn
		}
		return nil, err
	}
	size := 12 + int64(int32(binary.BigEndian.Uint32(head[8:])))
	if size < batchHeadBytes || size > maxBatchBytes {
		return nil, fmt.Errorf("a batch of %d bytes", size)
	}
	buf = slices.Grow(buf[:0], int(size))[:size]
	if _, err := io.ReadFull(in, buf); err != nil {
		if errors.Is(err, io.ErrUnexpectedEOF) {
			err = errTorn
		}
		return nil, err
	}
	if checksum(buf[21:]) != binary.BigEndian.Uint32(buf[17:]) {
		return nil, errors.New("wrong checksum")
	}
	return buf, nil
}

func checksum(data []byte) uint32 { return crc32.Checksum(data, crc32.MakeTable(crc32.Castagnoli)) }

// add updates the snapshot, the index and the open transactions for one batch.
func (l *partitionLog) add(s *segment, raw []byte) error {
	const transactional, control = 0x10, 0x20
	var b kmsg.RecordBatch
	if err := b.ReadFrom(raw); err != nil {
		return fmt.Errorf("batch at %d: %w", binary.BigEndian.Uint64(raw), err)
	}
	if len(s.index) == 0 && s == &l.snap.Segments[0] {
		l.snap.LogStartOffset = max(l.snap.LogStartOffset, b.FirstOffset)
		if l.snap.CreatedAt.IsZero() {
			l.snap.CreatedAt = time.UnixMilli(b.FirstTimestamp)
		}
	}
	if expected := l.snap.HighWatermark; expected > 0 && b.FirstOffset != expected { // offsets in the embedded broker have no gaps
		return fmt.Errorf("batch has offset %d, want %d: restore the log, or start with an empty directory",
			b.FirstOffset, expected)
	}
	last := b.FirstOffset + int64(b.LastOffsetDelta)
	l.snap.HighWatermark, l.snap.LastStableOffset = last+1, last+1
	l.snap.Epoch = b.PartitionLeaderEpoch
	l.snap.MaxTimestamp = max(l.snap.MaxTimestamp, b.MaxTimestamp)
	inTxn := b.Attributes&transactional != 0 && b.Attributes&control == 0
	s.index = append(s.index, indexEntry(b.PartitionLeaderEpoch, b.MaxTimestamp, inTxn)...)
	switch {
	case inTxn:
		open, ok := l.open[b.ProducerID]
		if !ok {
			open = span{ProducerID: b.ProducerID, FirstOffset: b.FirstOffset}
		}
		open.LastOffset, open.epoch = last, b.ProducerEpoch
		l.open[b.ProducerID] = open
	case b.Attributes&control != 0:
		l.end(&b)
	}
	return nil
}

// end processes an end marker.
func (l *partitionLog) end(b *kmsg.RecordBatch) {
	open, ok := l.open[b.ProducerID]
	delete(l.open, b.ProducerID)
	t := txn{b.ProducerID, b.ProducerEpoch}
	n := l.ends[t]
	n.all++
	if isCommit(b) {
		n.commits++
	} else if ok {
		open.LastOffset = b.FirstOffset
		l.snap.AbortedTxns = append(l.snap.AbortedTxns, open)
	}
	l.ends[t] = n
}

func isCommit(b *kmsg.RecordBatch) bool {
	var r kmsg.Record
	var key kmsg.ControlRecordKey
	return r.ReadFrom(b.Records) == nil && key.ReadFrom(r.Key) == nil && key.Type == kmsg.ControlRecordKeyTypeCommit
}

// writeMarkers writes an end marker for each open transaction.
func (l *partitionLog) writeMarkers(ends map[txn]bool, d disk) error {
	s := &l.snap.Segments[len(l.snap.Segments)-1]
	for _, pid := range slices.Sorted(maps.Keys(l.open)) {
		o := l.open[pid]
		marker := endMarker(o, ends[txn{pid, o.epoch}], l.snap.HighWatermark, l.snap.Epoch)
		if err := d.append(l.path(s, ".dat"), marker); err != nil {
			return err
		}
		s.Size += int64(len(marker))
		if err := l.add(s, marker); err != nil {
			return err
		}
	}
	return nil
}

// save writes the indexes and the snapshot.
func (l *partitionLog) save(d disk) error {
	slices.SortFunc(l.snap.AbortedTxns, func(a, b span) int { return cmp.Compare(a.LastOffset, b.LastOffset) })
	for i := range l.snap.Segments {
		s := &l.snap.Segments[i]
		if err := d.replace(l.path(s, ".idx"), s.index); err != nil {
			return err
		}
	}
	data, err := json.Marshal(l.snap)
	if err != nil {
		return err
	}
	return d.replace(filepath.Join(l.dir, "snapshot.json"), data)
}

// endMarker returns the control batch that the broker would have written.
func endMarker(o span, commit bool, offset int64, epoch int32) []byte {
	key := kmsg.ControlRecordKey{Type: kmsg.ControlRecordKeyTypeAbort}
	if commit {
		key.Type = kmsg.ControlRecordKeyTypeCommit
	}
	r := kmsg.Record{Key: key.AppendTo(nil), Value: new(kmsg.EndTxnMarker).AppendTo(nil)}
	r.Length = int32(len(r.AppendTo(nil)) - 1) // the length itself is one byte
	now := time.Now().UnixMilli()
	b := kmsg.RecordBatch{
		FirstOffset: offset, PartitionLeaderEpoch: epoch, Magic: 2, Attributes: 0x30, // control, transactional
		FirstTimestamp: now, MaxTimestamp: now,
		ProducerID: o.ProducerID, ProducerEpoch: o.epoch, FirstSequence: -1,
		NumRecords: 1, Records: r.AppendTo(nil),
	}
	b.Length = int32(len(b.AppendTo(nil)) - 12)
	b.CRC = int32(checksum(b.AppendTo(nil)[21:]))
	return b.AppendTo(nil)
}

// indexEntry returns version, checksum, epoch, a timestamp that kfake recomputes, and whether the batch is in a
// transaction.
func indexEntry(epoch int32, timestamp int64, inTxn bool) []byte {
	e := make([]byte, indexBytes)
	e[0] = formatVersion
	binary.LittleEndian.PutUint32(e[2:], uint32(epoch))
	binary.LittleEndian.PutUint64(e[6:], uint64(timestamp))
	if inTxn {
		e[14] = 1
	}
	e[1] = byte(checksum(e[2:]))
	return e
}
