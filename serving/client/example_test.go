package client_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"

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

// The stream reports the number of new items until the loop stops. When the server ends the stream, or the connection is
// lost, the caller opens it again later.
func ExampleClient_WaitingStream() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "event: new\ndata: {\"count\":3}\n\n: keep-alive\n\nevent: new\ndata: {\"count\":5}\n\n")
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
	// count new items of user:ada: EOF
}
