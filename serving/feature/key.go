package feature

import (
	"bytes"
	"encoding/binary"
	"time"

	"github.com/smartfeed/smartfeed/internal/packed"
	"github.com/smartfeed/smartfeed/schemas"
)

// The keys of the embedded store. Numbers are big-endian with the sign bit inverted, so that bytes sort like numbers.
//
//	'a' day  actor 0x00  time, id: both descending  → appendAction
//	'i' day  pin   0x00                             → appendSteps: the counts of the pin
//	'p' pin  0x00  'c'                              → rank, version, deleted, facets: those of the newest version
//	'p' pin  0x00  'v'                              → rank, version, appendAttributes: those of the newest version
//	'p' pin  0x00  'e'                              → rank, version, appendVector: the newest version's embedding
//	'p' pin  0x00  'm'                              → version, appendVector: the mean of recent actors' embeddings
//	'o' topic 0x00  partition                       → topics.PartitionCheckpoint: the applied offset
//	's' period  actor 0x00  number modulo 512       → number, time, id, appendAction: that of the highest number
//	'v'                                             → the format version, see stored.Open
//
// The day precedes the actor because of how actions expire. After 96 hours, one range deletion removes a day of
// all actors, and Pebble drops the files without reading them. Deleting the tail of each actor would leave one range
// tombstone per actor in the way of every scan. The price is one seek per day, at most five, for each scan.
const (
	actionTable   = 'a'
	itemTable     = 'i'
	pinTable      = 'p'
	sequenceTable = 's'
	markTable     = 'o'

	facetsRow     = 'c'
	attributesRow = 'v'
	embeddingRow  = 'e'
	actorsRow     = 'm'
)

const (
	dayMillis  = millis(24 * time.Hour / time.Millisecond)
	stepMillis = millis(schemas.ItemStep / 1000)
)

// dayOf returns the number of the UTC day, floored.
func dayOf(t millis) int32 { return int32(floorDiv(t, dayMillis)) }

func appendDay(dst []byte, table byte, day int32) []byte {
	return binary.BigEndian.AppendUint32(append(dst, table), uint32(day)^1<<31)
}

// dayPrefix returns the prefix of the keys of one owner and day.
func dayPrefix(dst []byte, table byte, day int32, owner string) []byte {
	return append(append(appendDay(dst, table, day), owner...), 0)
}

func actionKey(dst []byte, actor schemas.UserID, t millis, id string) []byte {
	dst = dayPrefix(dst, actionTable, dayOf(t), string(actor))
	dst = packed.AppendOrdered(dst, ^t)
	for i := range len(id) {
		dst = append(dst, ^id[i])
	}
	return append(dst, 0xff) // if one id is a prefix of another, the longer comes first: no id has a byte 0x00
}

// cutActionKey reads the time from the part of an action's key after the prefix.
func cutActionKey(rest []byte) (t millis, ok bool) {
	if len(rest) < 8 {
		return 0, false
	}
	return ^packed.FirstOrdered[millis](rest), true
}

func itemKey(dst []byte, pin schemas.PinID, day int32) []byte {
	return dayPrefix(dst, itemTable, day, string(pin))
}

func pinKey(dst []byte, pin schemas.PinID, row byte) []byte {
	return append(append(append(dst, pinTable), pin...), 0, row)
}

func checkpointKey(dst []byte, topic string, partition int32) []byte {
	return binary.BigEndian.AppendUint32(append(append(append(dst, markTable), topic...), 0), uint32(partition))
}

// cutCheckpointKey is the reverse of checkpointKey.
func cutCheckpointKey(key []byte) (topic string, partition int32, ok bool) {
	name, number, found := bytes.Cut(key[1:], []byte{0})
	if !found || len(number) != 4 {
		return "", 0, false
	}
	return string(name), int32(binary.BigEndian.Uint32(number)), true
}
