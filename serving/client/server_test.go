package client_test

import (
	"context"
	"slices"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/serving/api"
	"github.com/smartfeed/smartfeed/serving/client"
)

// answers implements the part of the server's dependencies that the test calls.
type answers struct{ api.Feed }

func (answers) Pool(_ context.Context, _ schemas.UserID, source schemas.Source, limit int) (*schemas.Pool, error) {
	facets := schemas.Facets{Author: "user:bob", Board: "board:cups"}
	item := schemas.PoolItem{Pin: "pin:tea", PoolScore: 1.5, Time: 1, Facets: facets}
	return &schemas.Pool{Source: source, Total: 7, Items: slices.Repeat([]schemas.PoolItem{item}, limit)}, nil
}

// The client reads the answers of the real server.
func TestClient_ReadsServer(t *testing.T) {
	metrics := prometheus.NewRegistry()
	server := must.Get(api.Listen("127.0.0.1:0", api.DefaultConfig(), api.Deps{Feed: answers{}, Metrics: metrics, Gatherer: metrics}))(t)
	running, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- server.Run(running) }()
	c := must.Get(client.New(client.Config{Address: server.Addr()}))(t)
	defer c.Close()

	pool, err := c.Pool(t.Context(), "user:ada", "interest", 2)
	if err != nil || pool.Source != "interest" || pool.Total != 7 || len(pool.Items) != 2 {
		t.Fatalf("got %+v, %v, want two of seven", pool, err)
	}
	if got := pool.Items[1]; got.Pin != "pin:tea" || got.Score != 1.5 || got.Author != "user:bob" || *got.Board != "board:cups" ||
		got.Time.UnixMicro() != 1 || got.Interests == nil {
		t.Errorf("got %+v, want the pin with its facets", got)
	}

	stop()
	must.OK(t, <-ended)
}
