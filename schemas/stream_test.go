package schemas

import "testing"

func TestNewLine_SetsStreamAndKey(t *testing.T) {
	for _, stream := range InputStreams() {
		if got := NewLine(NewInput(stream)); got.Stream != stream || got.Key != "" || got.User() != "" {
			t.Errorf("%s: got %+v", stream, got)
		}
	}
	e := &FollowEvent{goodEvent(Follow, "board:1")}
	if got := NewLine(e); got.Key != "board:1" || got.User() != "user:7" {
		t.Errorf("got key %q and user %q, want board:1 and user:7", got.Key, got.User())
	}
	if got := NewLine(&Offer{User: "user:7"}); got.Key != "user:7" || got.User() != "user:7" {
		t.Errorf("got key %q and user %q, want user:7 for both", got.Key, got.User())
	}
}
