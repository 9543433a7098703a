package feedstore_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"

	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/serving/feedstore"
)

// The entries of a feed may be written repeatedly and in any order. They are read newest first.
func ExampleStore() {
	if err := materialize(context.Background()); err != nil {
		fmt.Println(err)
	}
	// Output:
	// 2 pin:tea
	// 1 pin:boat
}

func materialize(ctx context.Context) (err error) {
	dir, err := os.MkdirTemp("", "example-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	store, err := feedstore.Open(dir, feedstore.DefaultConfig(), slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()

	entry := func(position int64, pin schemas.PinID) schemas.FeedEntry {
		e := schemas.FeedEntry{User: "user:ada", Position: position, Time: 1}
		e.Pin = pin
		return e
	}
	batch := feedstore.Batch{Entries: []schemas.FeedEntry{entry(2, "pin:tea"), entry(1, "pin:boat")}}
	if err := errors.Join(store.Write(ctx, batch), store.Write(ctx, batch)); err != nil {
		return err
	}
	entries, _, err := store.Page(ctx, "user:ada", math.MaxInt64, 25)
	for _, e := range entries {
		fmt.Println(e.Position, e.Pin)
	}
	return err
}
