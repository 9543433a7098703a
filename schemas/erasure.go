package schemas

// ErasureStep is what an Erasure asks for.
type ErasureStep string

// The steps.
const (
	EraseUser     ErasureStep = "user"     // begin: fan-out and pools each erase what the user owns with them
	EraseFollowee ErasureStep = "followee" // fan-out goes on with what the user owns as a followee, or what a shard of it does
	EraseReader   ErasureStep = "reader"   // pools go on with what the user owns
	EraseRest     ErasureStep = "rest"     // pools: whatever is still there goes, in every generation
	EraseFollower ErasureStep = "follower" // a followee forgets the user as one who follows, blocks, or cares
)

// Erasure takes the next rows of a deleted user away. Topic erasures, key: the owner of the rows, which is the user, a
// followee of the user, or a shard of the user's followers. To work one off again changes nothing.
type Erasure struct {
	User UserID      `avro:"user" json:"user"` // who is erased
	Step ErasureStep `avro:"step" json:"step"`
	Time Micros      `avro:"time" json:"time"` // of the delete
}
