package feed_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/serving/feed"
	"github.com/smartfeed/smartfeed/serving/feedstore"
)

// unavailable is a content generator that returns errors.
type unavailable struct{}

var errUnavailable = errors.New("unavailable")

func (unavailable) Chunk(context.Context, schemas.ChunkRequest) (*schemas.Chunk, error) {
	return nil, errUnavailable
}
func (unavailable) Settle(schemas.UserID, string, schemas.Outcome)       {}
func (unavailable) Waiting(context.Context, schemas.UserID) (int, error) { return 0, errUnavailable }

type acknowledging struct{}

func (acknowledging) Publish(context.Context, *schemas.Served) (schemas.Outcome, error) {
	return schemas.Acknowledged, nil
}

const viewer schemas.UserID = "user:viewer"

// materialized returns a materialized feed of two pins by an author whom the viewer follows.
func materialized() (b feedstore.Batch) {
	for i, pin := range []schemas.PinID{"pin:1", "pin:2"} {
		b.Entries = append(b.Entries, schemas.FeedEntry{User: viewer, Position: int64(i + 1), ServedItem: schemas.ServedItem{
			Pin: pin, Source: schemas.Following, Facets: schemas.Facets{Author: "user:author"},
		}})
	}
	b.Edges = []schemas.Edge{{User: viewer, Other: "user:author", Kind: schemas.FollowEdge, Live: true, Time: 1}}
	return b
}

// A visit always gets an answer. Without the generator it is the materialized feed, and Degraded names the missing part.
func ExampleService_Visit() {
	if err := visit(context.Background()); err != nil {
		fmt.Println(err)
	}
	// Output:
	// pin:2 pin:1
	// missing: [generator]
}

func visit(ctx context.Context) (err error) {
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
	if err := store.Write(ctx, materialized()); err != nil {
		return err
	}

	svc, err := feed.New(feed.DefaultConfig(), feed.Deps{
		Generator: unavailable{}, Store: store, Served: acknowledging{}, CursorKey: make([]byte, 16), Metrics: prometheus.NewRegistry(),
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, svc.Close(ctx)) }()
	page, err := svc.Visit(ctx, viewer, "home", 25)
	if err != nil {
		return err
	}
	for i, item := range page.Items {
		if i > 0 {
			fmt.Print(" ")
		}
		fmt.Print(item.ID)
	}
	fmt.Printf("\nmissing: %v\n", page.Degraded)
	return nil
}
