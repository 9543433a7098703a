package topics_test

import (
	"errors"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/smartfeed/smartfeed/topics"
)

func TestLog_ReadAllReturnsErrorOfVisitor(t *testing.T) {
	w := newWire(t)
	w.produce(topics.Pins, numbered("k", 40)...)
	enough, visits := errors.New("enough"), 0
	err := w.Log().ReadAll(t.Context(), topics.Pins, func(*kgo.Record) error {
		if visits++; visits == 3 {
			return enough
		}
		return nil
	})
	if !errors.Is(err, enough) || visits != 3 {
		t.Errorf("ReadAll visits %d records and returns %v, want 3 and the visitor's error", visits, err)
	}
}
