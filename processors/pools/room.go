package pools

import (
	"github.com/smartfeed/smartfeed/processors/rows"
)

// A step that writes as much as fits leaves this many rows and bytes of the record's bounds for its last writes.
const (
	freeRows  = 100
	freeBytes = 64 << 10
)

// roomy reports whether a step of unbounded size may write more in this record.
func roomy(tx *rows.Tx) bool {
	rows, bytes := tx.Room()
	return rows >= freeRows && bytes >= freeBytes
}
