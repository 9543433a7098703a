package outside_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"time"

	"github.com/smartfeed/smartfeed/processors/outside"
)

// A service answers once and then fails. After Failures failures, calls fail immediately, until Rest has passed.
func ExampleService_Ask() {
	var asked atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if asked.Add(1) > 1 {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		_, _ = io.WriteString(w, `{"scores":{"pin:tea":5}}`)
	}))
	defer server.Close()
	now := time.Now()
	service := outside.New(outside.Config{URL: server.URL, Timeout: 5 * time.Second}, nil, func() time.Time { return now })
	defer service.Close()

	ctx := context.Background()
	question := map[string]string{"user": "user:ada"}
	var answer struct{ Scores map[string]float64 }
	fmt.Println(service.Ask(ctx, question, &answer, 10), answer.Scores)
	resting := func() bool { return errors.Is(service.Ask(ctx, question, &answer, 10), outside.ErrResting) }
	for range outside.Failures {
		resting()
	}
	fmt.Println("resting:", resting())
	now = now.Add(outside.Rest)
	fmt.Println("resting:", resting())
	fmt.Println("asked:", asked.Load())
	// Output:
	// <nil> map[pin:tea:5]
	// resting: true
	// resting: false
	// asked: 7
}
