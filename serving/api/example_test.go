package api_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/serving/api"
	"github.com/smartfeed/smartfeed/serving/client"
)

// seven is a feed with seven new pins. In production, use feed.Service.
type seven struct{ api.Feed }

func (seven) Waiting(context.Context, schemas.UserID) (int, error) { return 7, nil }

// A server for your own feed, on a free port. It has no routes for dependencies that are not set.
func ExampleListen() {
	metrics := prometheus.NewRegistry()
	server, err := api.Listen("127.0.0.1:0", api.DefaultConfig(), api.Deps{Feed: seven{}, Metrics: metrics, Gatherer: metrics})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- server.Run(ctx) }()

	c, err := client.New(client.Config{Address: server.Addr()})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(c.Waiting(ctx, "user:ada"))
	var refused *client.Error
	if _, err = c.Definitions(ctx); errors.As(err, &refused) {
		fmt.Println(refused.Status, refused.Title)
	}
	c.Close()
	stop()
	fmt.Println(<-ended)
	// Output:
	// 7 <nil>
	// 404 Not Found
	// <nil>
}
