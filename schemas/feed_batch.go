package schemas

// FeedBatch is one write to a feed store. Neither the order of the records nor their repetition matters, except that after
// Erased, and after edges with Erased, no record that they delete is written again.
type FeedBatch struct {
	Entries      []FeedEntry // an entry without a pin is an empty row: the item was swept
	Edges        []Edge
	Publications []Publication // add the pin to the followee's list or remove it
	Cards        []Card
	Deleted      []DeletedUser
	Erased       []DeletedUser // delete all rows of these users but the record of their deletion; all are older than Time
}
