package processors_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/smartfeed/smartfeed/processors"
)

// A component that loses its broker is restarted. The other component continues to run in the meantime.
func ExampleSupervisor() {
	ctx, stop := context.WithCancel(context.Background())
	starts := 0
	group := func(ctx context.Context) error {
		if starts++; starts == 1 {
			return errors.New("no broker answers")
		}
		stop() // the restarted component runs: stop the example
		<-ctx.Done()
		return nil
	}
	serve := func(ctx context.Context) error { <-ctx.Done(); return nil }
	backoff := processors.DefaultBackoff()
	backoff.InitialInterval = time.Millisecond
	s := processors.NewSupervisor(backoff, nil,
		processors.Component{Name: "pools", Run: group}, processors.Component{Name: "http", Run: serve})
	fmt.Println(s.Run(ctx))
	for _, component := range s.State() {
		fmt.Println(component.Name, component.Condition, "restarts:", component.Restarts, component.LastError)
	}
	// Output:
	// <nil>
	// pools stopped restarts: 1 no broker answers
	// http stopped restarts: 0
}
