package client_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"

	"github.com/smartfeed/smartfeed/serving/client"
)

// A visit: what a user is shown, and where older items go on.
func ExampleClient_Visit() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"items":[{"pin":"pin:tea","new":true,"source":"following","score":1,"time":"2026-11-20T10:00:00Z","author":"user:bob"}],"next":null,"degraded":[]}`)
	}))
	defer server.Close()
	c, err := client.New(client.Config{Address: server.URL}) // and a Token, where callers are asked
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

// How much is new, for as long as somebody looks. When the server ends the stream, or the connection is lost, it is asked
// for again after a while.
func ExampleClient_WaitingStream() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "event: new\ndata: {\"count\":3}\n\n: still here\n\nevent: new\ndata: {\"count\":5}\n\n")
	}))
	defer server.Close()
	c, err := client.New(client.Config{Address: server.URL})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	for count, err := range c.WaitingStream(context.Background(), "user:ada") {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(count, "new")
	}
	// Output:
	// 3 new
	// 5 new
	// count what waits for user:ada: EOF
}
