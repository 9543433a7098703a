package rows

import (
	"strconv"

	"github.com/smartfeed/smartfeed/topics"
)

// commonMark begins the names of those owners that are partitions. No id holds a control character, so they are nobody's.
const commonMark = "common\x01"

// CommonOwner returns the owner of a partition's common rows, see Tx.Common: the first of its names that the partition has.
func CommonOwner(partition, partitions int32) string {
	for n := 0; ; n++ {
		if name := commonMark + strconv.Itoa(n); topics.Partition(name, partitions) == partition {
			return name
		}
	}
}

// Common returns the rows that all owners of the partition have in common, which every callback may touch, be its input
// keyed or batched. A View reads them as those of CommonOwner.
func (tx *Tx) Common() Owner {
	if tx.s == nil {
		tx.fail(errUsedAfter)
		return Owner{tx: tx}
	}
	return Owner{tx: tx, name: tx.s.common}
}
