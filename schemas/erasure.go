package schemas

// ErasureStep is the kind of an Erasure.
type ErasureStep string

// The steps.
const (
	EraseUser     ErasureStep = "user"     // start: fanout and pools each erase the rows that the user owns
	EraseFollowee ErasureStep = "followee" // fanout continues with the rows of the user as a followee
	EraseReader   ErasureStep = "reader"   // pools continues with the rows that the user owns
	EraseRest     ErasureStep = "rest"     // pools deletes all remaining rows, in every generation
	EraseFollower ErasureStep = "follower" // a followee deletes the user's follow, block, weight and backfill budget
)

// Erasure deletes the next rows of a deleted user. Topic erasures, key: the owner of the rows, which is the user or a
// followee of the user. Repeating a step changes nothing.
type Erasure struct {
	User UserID      `avro:"user" json:"user"` // the erased user
	Step ErasureStep `avro:"step" json:"step"`
	Time Micros      `avro:"time" json:"time"` // time of the delete
}
