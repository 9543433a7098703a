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
