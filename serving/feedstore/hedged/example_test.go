package hedged_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/serving/feed"
	"github.com/smartfeed/smartfeed/serving/feedstore/hedged"
)

// store returns one title, or an error.
type store struct {
	feed.Store
	title string
	err   error
}

func (s store) Cards(_ context.Context, pins []schemas.PinID) (map[schemas.PinID]schemas.Card, error) {
	return map[schemas.PinID]schemas.Card{pins[0]: {Title: s.title}}, s.err
}

// The primary is down, and the standby answers. The read fails only if both stores fail.
func ExampleStore_Cards() {
	down := store{err: errors.New("down")}
	for _, standby := range []store{{title: "Tea for two"}, down} {
		both, err := hedged.New(hedged.DefaultConfig(), hedged.Stores{Primary: down, Standby: standby}, prometheus.NewRegistry())
		if err != nil {
			fmt.Println(err)
			return
		}
		cards, err := both.Cards(context.Background(), []schemas.PinID{"pin:tea"})
		fmt.Printf("%q, failed: %t\n", cards["pin:tea"].Title, err != nil)
		both.Close()
	}
	// Output:
	// "Tea for two", failed: false
	// "", failed: true
}
