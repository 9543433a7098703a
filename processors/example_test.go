package processors_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/smartfeed/smartfeed/processors"
)

// A part that loses its broker is restarted. The other part continues to run in the meantime.
func ExampleSupervisor() {
	ctx, stop := context.WithCancel(context.Background())
	starts := 0
	group := func(ctx context.Context) error {
		if starts++; starts == 1 {
			return errors.New("no broker answers")
		}
		stop() // the restarted part runs: stop the example
		<-ctx.Done()
		return nil
	}
	serve := func(ctx context.Context) error { <-ctx.Done(); return nil }
	backoff := processors.DefaultBackoff()
	backoff.InitialInterval = time.Millisecond
	s := processors.NewSupervisor(backoff, nil,
		processors.Part{Name: "pools", Run: group}, processors.Part{Name: "http", Run: serve})
	fmt.Println(s.Run(ctx))
	for _, part := range s.State() {
		fmt.Println(part.Name, part.Condition, "restarts:", part.Restarts, part.LastError)
	}
	// Output:
	// <nil>
	// pools ended restarts: 1 no broker answers
	// http ended restarts: 0
}
