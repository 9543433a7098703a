package schemas

// BaseScore is the write-time score of a pin, the same for every receiver: quality and age; see package score.
type BaseScore float64

// PoolScore is the write-time score of a candidate in a user's pool: the BaseScore with the weight of the edge that delivered
// it, or the score that an external source gave it. It is comparable only within the pool.
type PoolScore float64

// RankScore is the score of an item in a chunk: the PoolScore with the terms of the feed's rules. Responses carry it.
type RankScore float64
