package peers_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"strings"

	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/serving/peers"
	"github.com/smartfeed/smartfeed/topics"
)

// local is the generator of the process that owns the pools, such as generator.Generator.
type local struct{ peers.Generator }

func (local) Waiting(context.Context, schemas.UserID) (int, error) { return 7, nil }

// directory maps partitions to owners; peers.Members reads them from the brokers.
type directory map[int32]string

func (d directory) Owners(context.Context) (map[int32]string, error) { return d, nil }

// One process owns the pools. Another process serves requests and calls the owner of the user's partition.
func ExampleClient_Waiting() {
	process := httptest.NewServer(peers.Handler(peers.Local{Generator: local{}}))
	defer process.Close()
	address := strings.TrimPrefix(process.URL, "http://")
	client := peers.NewClient(peers.Deps{Owners: map[string]peers.Directory{topics.Pools: directory{0: address, 1: address}}, Partitions: 2})
	defer client.Close()
	fmt.Println(client.Waiting(context.Background(), "user:ada"))
	// Output: 7 <nil>
}
