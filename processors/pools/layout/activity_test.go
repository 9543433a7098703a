package layout

import (
	"encoding/hex"
	"testing"

	"github.com/smartfeed/smartfeed/internal/packed"
)

func TestActivity_KeepsItsFormat(t *testing.T) {
	want := Activity{
		LastSeen: 1, Inactive: true, CheckAt: 2, BackfillID: 3, Expected: 5, Received: 4,
		Notification: Notification{After: "user:a", Source: "x", Unawaited: true},
	}
	b := packed.Encode(&want)
	if got, format := hex.EncodeToString(b), "0203"+"0204060a08"+"06757365723a61"+"0178"; got != format {
		t.Errorf("written as %s, want %s", got, format)
	}
	if got, err := packed.Decode[Activity](b); err != nil || got != want {
		t.Errorf("read as %+v, %v, want %+v", got, err, want)
	}
}
