package external_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"time"

	"github.com/smartfeed/smartfeed/processors/external"
)

// A service answers once and then fails. After Failures failures, calls fail immediately, until OpenFor has passed.
func ExampleService_Call() {
	var calls atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if calls.Add(1) > 1 {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		_, _ = io.WriteString(w, `{"scores":{"pin:tea":5}}`)
	}))
	defer server.Close()
	service := external.New(external.Config{URL: server.URL, Timeout: 5 * time.Second}, nil)
	defer service.Close()

	ctx := context.Background()
	question := map[string]string{"user": "user:ada"}
	var answer struct{ Scores map[string]float64 }
	fmt.Println(service.Call(ctx, question, &answer, 10), answer.Scores)
	for range external.Failures {
		_ = service.Call(ctx, question, &answer, 10)
	}
	fmt.Println("open:", errors.Is(service.Call(ctx, question, &answer, 10), external.ErrOpen))
	fmt.Println("calls:", calls.Load())
	// Output:
	// <nil> map[pin:tea:5]
	// open: true
	// calls: 6
}
