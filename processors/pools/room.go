package pools

import "github.com/smartfeed/smartfeed/processors/rows"

// What a step that writes as much as fits leaves of the bounds of a record, for what ends it.
const (
	freeRows  = 100
	freeBytes = 64 << 10
)

// roomy says whether a record may write more of what there may be any number of.
func roomy(tx *rows.Tx) bool {
	rows, bytes := tx.Room()
	return rows >= freeRows && bytes >= freeBytes
}
