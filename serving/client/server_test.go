package client_test

import (
	"context"
	"errors"
	"io"
	"slices"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/serving/api"
	"github.com/smartfeed/smartfeed/serving/client"
)

// answers implements the parts of the server's dependencies that the test calls.
type answers struct {
	api.Feed
	counts chan int
}

func (a answers) Waiting(ctx context.Context, _ schemas.UserID) (int, error) {
	select {
	case n := <-a.counts:
		return n, nil
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

func (answers) Pool(_ context.Context, _ schemas.UserID, source schemas.Source, limit int) (*schemas.Pool, error) {
	facets := schemas.Facets{Author: "user:bob", Board: "board:cups"}
	item := schemas.PoolItem{Pin: "pin:tea", PoolScore: 1.5, Time: 1, Facets: facets}
	return &schemas.Pool{Source: source, Total: 7, Items: slices.Repeat([]schemas.PoolItem{item}, limit)}, nil
}

// The client reads the answers of the real server: its pools, and its stream until the server stops.
func TestClient_ReadsServer(t *testing.T) {
	given := answers{counts: make(chan int, 3)}
	metrics := prometheus.NewRegistry()
	cfg := api.DefaultConfig()
	cfg.StreamPollInterval = cfg.StreamPollInterval / 10
	server, err := api.Listen("127.0.0.1:0", cfg, api.Deps{Feed: given, Metrics: metrics, Gatherer: metrics})
	must.OK(t, err)
	running, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- server.Run(running) }()
	c, err := client.New(client.Config{Address: server.Addr()})
	must.OK(t, err)
	defer c.Close()

	pool, err := c.Pool(t.Context(), "user:ada", "interest", 2)
	if err != nil || pool.Source != "interest" || pool.Total != 7 || len(pool.Items) != 2 {
		t.Fatalf("got %+v, %v, want two of seven", pool, err)
	}
	if got := pool.Items[1]; got.Pin != "pin:tea" || got.Score != 1.5 || got.Author != "user:bob" || *got.Board != "board:cups" ||
		got.Time.UnixMicro() != 1 || got.Interests == nil {
		t.Errorf("got %+v, want the pin with its facets", got)
	}

	given.counts <- 3
	given.counts <- 3
	given.counts <- 5
	var got []int
	var last error
	for n, err := range c.WaitingStream(t.Context(), "user:ada") {
		if got, last = append(got, n), err; n == 5 {
			stop()
		}
	}
	if want := []int{3, 5, 0}; !slices.Equal(got, want) || !errors.Is(last, io.EOF) {
		t.Errorf("got %v, %v, want %v and the end of the stream", got, last, want)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
