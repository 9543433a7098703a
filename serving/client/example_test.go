package client_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"time"

	"github.com/smartfeed/smartfeed/serving/client"
)

// A visit returns the items for a user and the cursor of older items.
func ExampleClient_Visit() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"items":[{"pin":"pin:tea","new":true,"source":"following","score":1,"time":"2026-11-20T10:00:00Z","author":"user:bob"}],"next":null,"degraded":[]}`)
	}))
	defer server.Close()
	c, err := client.New(client.Config{Address: server.URL}) // plus a Token, if authentication is enabled
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	page, err := c.Visit(context.Background(), "user:ada", client.VisitOptions{Limit: 25})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, item := range page.Items {
		fmt.Println(item.ID, "from", item.Source)
	}
	// Output: pin:tea from following
}

// A program sends events to the channel, and closes it when it stops.
func ExampleClient_PublishAll() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(os.Stdout, r.Body)
		w.WriteHeader(http.StatusAccepted)
		_, _ = io.WriteString(w, `{"accepted":2}`)
	}))
	defer server.Close()
	c, err := client.New(client.Config{Address: server.URL})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	events, done := make(chan client.Event, 10_000), make(chan error)
	rejected := func(r client.Rejection) { fmt.Println(r.Event.ID, r.Reason) }
	go func() { done <- c.PublishAll(context.Background(), events, rejected, client.PublishOptions{}) }()

	at := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC) // without an ID and a Time, an event gets a random ID and the current time
	events <- client.Event{ID: "e-1", Time: at, Stream: "follows", Actor: "user:ada", Verb: "follow", Object: "user:bob"}
	events <- client.Event{ID: "e-2", Time: at, Stream: "actions", Actor: "user:ada", Verb: "save", Object: "pin:tea"}

	close(events)
	if err := <-done; err != nil {
		fmt.Println(err)
	}
	// Output:
	// {"stream":"follows","id":"e-1","time":"2026-11-20T10:00:00Z","actor":"user:ada","verb":"follow","object":"user:bob"}
	// {"stream":"actions","id":"e-2","time":"2026-11-20T10:00:00Z","actor":"user:ada","verb":"save","object":"pin:tea"}
}
