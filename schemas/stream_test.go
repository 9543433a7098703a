package schemas

import (
	"testing"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
)

func TestNewLine_SetsStreamAndKey(t *testing.T) {
	for _, stream := range InputStreams() {
		got := NewLine(NewInput(stream))
		expect.Equal(t, [3]string{got.Stream, got.Key, string(got.User())}, [3]string{stream}, "stream, key and user")
	}
	e := &FollowEvent{goodEvent(Follow, "board:1")}
	got := NewLine(e)
	expect.Equal(t, [2]string{got.Key, string(got.User())}, [2]string{"board:1", "user:7"}, "key and user")
	offer := NewLine(&Offer{User: "user:7"})
	expect.Equal(t, [2]string{offer.Key, string(offer.User())}, [2]string{"user:7", "user:7"}, "key and user of an offer")
}
