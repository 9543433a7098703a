package pinot_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/smartfeed/smartfeed/serving/feature"
	"github.com/smartfeed/smartfeed/serving/feature/pinot"
)

// Pinot returns the rows of a user, and this package evaluates features over them.
func ExampleStore_Actions() {
	broker := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var query struct{ SQL string }
		if err := json.NewDecoder(r.Body).Decode(&query); err == nil {
			fmt.Println(strings.ReplaceAll(query.SQL, " AND ", "\n  AND "))
		}
		_, _ = io.WriteString(w, `{"resultTable":{"rows":[["a","user:ada","save",7000000],["b","user:ada","save",6000000]]},"numServersQueried":1,"numServersResponded":1}`)
	}))
	defer broker.Close()
	cfg := pinot.DefaultConfig()
	cfg.Brokers = []string{broker.URL}
	client, err := pinot.NewClient(cfg)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	saves, err := feature.Parse("features.yaml", []byte(`
features:
- {name: saves_1h, entity: user, verbs: save, aggregate: count, window: 1h}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	now := feature.Span{AsOf: 7_200_000_000, Now: 7_200_000_000}
	results, _, err := pinot.NewStore(feature.DefaultConfig(), client).Actions(context.Background(), "user:ada", now, saves)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(saves[0].Name, "is", results[0].Value)
	// Output:
	// SELECT id, actor, verb, ts FROM actions_enriched WHERE actor IN ('user:ada')
	//   AND ts > 3600000
	//   AND ts <= 7200000
	//   AND verb IN ('save') ORDER BY ts DESC, id DESC LIMIT 100001
	// saves_1h is 2
}
