package insight_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/serving/insight"
	"github.com/smartfeed/smartfeed/topics"
)

// noneDeleted is an empty set of deleted users.
type noneDeleted struct{}

func (noneDeleted) Has(schemas.UserID) bool { return false }

// Of two users who viewed, one saved soon after. A record that is applied twice counts once, by its offset.
func ExampleService_Funnel() {
	if err := funnel(context.Background()); err != nil {
		fmt.Println(err)
	}
	// Output:
	// view 2
	// save 1
}

func funnel(ctx context.Context) (err error) {
	dir, err := os.MkdirTemp("", "example-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	store, err := insight.Open(dir, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()

	now := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	action := func(offset int64, who schemas.UserID, verb schemas.Verb, ago time.Duration) insight.Applied {
		return insight.Applied{Offset: offset, Action: &schemas.EnrichedAction{
			Actor: who, Verb: verb, Object: "pin:tea", Timestamp: schemas.MicrosOf(now.Add(-ago)),
		}}
	}
	actions := []insight.Applied{
		action(0, "user:ada", schemas.View, 3*time.Minute), action(1, "user:dan", schemas.View, 2*time.Minute),
		action(2, "user:ada", schemas.Save, time.Minute),
	}
	to := map[int32]topics.PartitionCheckpoint{0: {Next: 3}}
	if err := errors.Join(store.Apply(actions, to), store.Apply(actions, to)); err != nil {
		return err
	}
	service := insight.NewService(insight.DefaultConfig(), store, noneDeleted{}, func() time.Time { return now })
	steps, err := service.Funnel(ctx, []schemas.Verb{schemas.View, schemas.Save}, time.Hour, 7)
	for _, step := range steps {
		fmt.Println(step.Verb, step.Users)
	}
	return err
}
