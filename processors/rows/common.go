package rows

import (
	"strconv"

	"github.com/smartfeed/smartfeed/topics"
)

// commonMark is the prefix of owners that stand for partitions. Ids contain no control characters, so no id has this prefix.
const commonMark = "common\x01"

// CommonOwner returns the owner of a partition's common rows, see Tx.Common: the first such name that hashes to the
// partition.
func CommonOwner(partition, partitions int32) string {
	for n := 0; ; n++ {
		if name := commonMark + strconv.Itoa(n); topics.Partition(name, partitions) == partition {
			return name
		}
	}
}

// Common returns the rows that all owners of the partition share. Every callback may access them, whether its input is keyed
// or batched. A View reads them as the rows of CommonOwner.
func (tx *Tx) Common() Owner {
	if tx.s == nil {
		tx.Fail(errUsedAfter)
		return Owner{tx: tx}
	}
	return Owner{tx: tx, name: tx.s.common}
}
