package topics_test

import (
	"errors"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
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
	expect.Is(t, err, enough, "ReadAll")
	expect.Equal(t, visits, 3, "visited records")
}
