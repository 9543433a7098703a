package generator

import (
	"github.com/smartfeed/smartfeed/processors/rules"
	"github.com/smartfeed/smartfeed/schemas"
)

// maxShownBytes bounds the encoded items of a chunk. The items go into a Served and into a FeedEntries, which is also a row:
//
//   - A FeedEntries must not exceed rows.Config.MaxValueBytes, which is at least 512 KiB.
//   - A Served must not exceed schemas.MaxRecordBytes, 1 MiB. Besides the items it has rules.MaxDeferred deferred and as many
//     expired pins, about 110 KB together, and two numbers for each source.
//
// 448 KiB are 26 items with the longest facets of an event, or all 100 items of a visit with facets of 4 KB each.
const maxShownBytes = 448 << 10

// fit makes a chunk with make, and makes it again with a lower limit while its items exceed maxShownBytes. No item is removed
// from a finished chunk, so its shares and its deferred pins count only what it shows. The other candidates wait for the next
// visit. fit returns the visit with the limit that the chunk has.
func fit(v rules.Visit, make func(rules.Visit) rules.Chunk) (rules.Visit, rules.Chunk) {
	for {
		made := make(v)
		n := fitting(made.Items)
		if n == len(made.Items) {
			return v, made
		}
		v.Limit = n
	}
}

// fitting returns how many of the first items fit in maxShownBytes, at least one if there is one.
func fitting(items []schemas.ServedItem) int {
	size := 0
	for i := range items {
		if size += items[i].MaxEncodedBytes(); size > maxShownBytes && i > 0 {
			return i
		}
	}
	return len(items)
}
