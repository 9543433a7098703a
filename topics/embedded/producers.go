package embedded

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"maps"
	"math"
	"os"
	"slices"
)

// producerEntry is one entry of pids.log.
type producerEntry struct {
	Type    string `json:"type"` // init, endtx, timeout
	PID     int64  `json:"pid"`
	Epoch   int16  `json:"epoch"`
	TxID    string `json:"txid,omitempty"`
	Timeout int32  `json:"timeout,omitempty"`
	Commit  *bool  `json:"commit,omitempty"`
}

// endProducers assigns the next epoch to the producers of completed transactions, unless they have it already. When such a
// producer retries, a commit that recovery completed succeeds, and a transaction that it aborted is fenced.
func endProducers(path string, ends map[txn]bool, d disk) error {
	if len(ends) == 0 {
		return nil
	}
	raw, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	known, complete := readProducers(raw)
	out := raw[:complete:complete]
	for _, t := range slices.SortedFunc(maps.Keys(ends), txn.compare) {
		p, ok := known[t.pid]
		commit, last := ends[t], max(p.Epoch, t.epoch)
		if !ok || last == math.MaxInt16 || p.Epoch > t.epoch && p.Commit != nil && *p.Commit == commit {
			continue // an interrupted recovery has already written the entry
		}
		next := producerEntry{Type: "init", PID: p.PID, Epoch: last + 1, TxID: p.TxID, Timeout: p.Timeout, Commit: &commit}
		data, err := json.Marshal(next)
		if err != nil {
			return err
		}
		out = appendEntry(out, data)
	}
	if len(out) == complete {
		return nil
	}
	return d.replace(path, out)
}

const entryHeadBytes = 10 // length, checksum, version

// readProducers returns the last state of each producer, and the size of the complete entries in bytes.
func readProducers(raw []byte) (map[int64]producerEntry, int) {
	known, at := map[int64]producerEntry{}, 0
	for at+entryHeadBytes <= len(raw) {
		end := at + 8 + int(binary.LittleEndian.Uint32(raw[at:]))
		if end > len(raw) || end < at+entryHeadBytes ||
			checksum(raw[at+8:end]) != binary.LittleEndian.Uint32(raw[at+4:]) {
			break
		}
		var e producerEntry
		if json.Unmarshal(raw[at+entryHeadBytes:end], &e) == nil {
			if old, ok := known[e.PID]; ok && e.Type != "init" {
				e.TxID, e.Timeout = old.TxID, old.Timeout
			}
			known[e.PID] = e
		}
		at = end
	}
	return known, at
}

func appendEntry(out, data []byte) []byte {
	body := binary.LittleEndian.AppendUint16(nil, formatVersion)
	body = append(body, data...)
	out = binary.LittleEndian.AppendUint32(out, uint32(len(body)))
	out = binary.LittleEndian.AppendUint32(out, checksum(body))
	return append(out, body...)
}
