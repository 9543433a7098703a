package schemas

import (
	"fmt"
	"strconv"
)

// ShardedID is a 64-bit name that contains the location of the object: two zero bits, 16 bits of shard, 10 bits of type,
// and 36 bits of a number that is unique within both. In ids it is decimal text: "pin:241294492511762325" is shard 3429,
// type 1, local 7075733. The layout is Pinterest's ("Sharding Pinterest: How we scaled our MySQL fleet").
type ShardedID uint64

// The maximum values of a ShardedID's parts.
const (
	MaxShard = 1<<16 - 1
	MaxType  = 1<<10 - 1
	MaxLocal = 1<<36 - 1
)

const (
	typeShift  = 36
	shardShift = typeShift + 10
	maxSharded = 1<<62 - 1
)

// MakeShardedID builds an id from its parts. It returns an error for a part above its maximum.
func MakeShardedID(shard, typ uint32, local uint64) (ShardedID, error) {
	switch {
	case shard > MaxShard:
		return 0, fmt.Errorf("sharded id: shard %d, at most %d", shard, MaxShard)
	case typ > MaxType:
		return 0, fmt.Errorf("sharded id: type %d, at most %d", typ, MaxType)
	case local > MaxLocal:
		return 0, fmt.Errorf("sharded id: local %d, at most %d", local, uint64(MaxLocal))
	}
	return ShardedID(uint64(shard)<<shardShift | uint64(typ)<<typeShift | local), nil
}

// ParseShardedID parses the decimal form. It returns an error for any text that String does not return: signs, leading
// zeros, spaces, and numbers with one of the upper two bits set.
func ParseShardedID(s string) (ShardedID, error) {
	n, err := strconv.ParseUint(s, 10, 64)
	switch {
	case err != nil || strconv.FormatUint(n, 10) != s:
		return 0, fmt.Errorf("sharded id %s: not a decimal number", quote(s))
	case n > maxSharded:
		return 0, fmt.Errorf("sharded id %s: the upper two bits must be zero", quote(s))
	}
	return ShardedID(n), nil
}

// Split returns the parts of the id.
func (id ShardedID) Split() (shard, typ uint32, local uint64) {
	return uint32(id>>shardShift) & MaxShard, uint32(id>>typeShift) & MaxType, uint64(id) & MaxLocal
}

// String returns the decimal form.
func (id ShardedID) String() string { return strconv.FormatUint(uint64(id), 10) }
