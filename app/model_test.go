package app

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/smartfeed/smartfeed/internal/outgoing"
	"github.com/smartfeed/smartfeed/internal/testkit/eventually"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/processors/inference"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/serving/feed"
)

// tensorModel is a model of the Open Inference Protocol. Its output is the negative first feature of each candidate. It
// stores the rows of its last request.
func tensorModel(t *testing.T) (url string, rows *atomic.Pointer[[][]float32]) {
	rows = &atomic.Pointer[[][]float32]{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var q struct {
			Inputs []struct {
				Shape []int
				Data  []float32
			}
		}
		if err := json.NewDecoder(r.Body).Decode(&q); err != nil || len(q.Inputs) != 1 || len(q.Inputs[0].Shape) != 2 {
			t.Errorf("request: %+v, %v", q, err)
			return
		}
		var matrix [][]float32
		var output []float32
		for data, columns := q.Inputs[0].Data, q.Inputs[0].Shape[1]; len(data) > 0; data = data[columns:] {
			matrix, output = append(matrix, data[:columns]), append(output, -data[0])
		}
		rows.Store(&matrix)
		_ = json.NewEncoder(w).Encode(map[string]any{"outputs": []any{map[string]any{"name": "predict", "shape": []int{len(output), 1}, "datatype": "FP32", "data": output}}})
	}))
	t.Cleanup(server.Close)
	return server.URL, rows
}

// A model receives the values that POST /v1/features answers, and its output orders the feed.
func TestModel_ReceivesFeaturesOfVisit(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t.TempDir())
	cfg.FeaturesFile = filepath.Join(cfg.Dir, "features.yaml")
	define(t, cfg.FeaturesFile, `features:
- {name: clicks_of_pin, entity: pair, group_by: object, aggregate: count}
- {name: pin_saves, entity: pin, verbs: save, aggregate: count}
- {name: user_actions, entity: user, aggregate: count}
- {name: newest, entity: user, aggregate: last}
`)
	url, rows := tensorModel(t)
	cfg.Outgoing = outgoing.Config{AllowedNetworks: []string{"127.0.0.0/8"}}
	cfg.Generator.Model.URL, cfg.Generator.Model.Timeout = url, 10*time.Second
	cfg.Generator.Model.Protocol, cfg.Generator.Model.Features = inference.OpenInference, []string{"pin_saves", "clicks_of_pin", "user_actions"}
	s := start(t, cfg)
	eventually.True(t, "ready", func() bool { return len(s.missing()) == 0 })
	var events story
	now := time.Now()
	events.addAt(now.Add(-2*time.Hour), "follows", "user:reader", "follow", "user:author", nil)
	for i := range 3 {
		pin := fmt.Sprint("pin:", i)
		events.addAt(now.Add(-time.Hour), "pins", "user:author", "create", pin, nil)
		for u := range 2 - i {
			events.addAt(now.Add(-time.Minute), "actions", fmt.Sprint("user:", u), "save", pin, nil)
		}
		events.addAt(now.Add(-time.Minute), "actions", "user:reader", "click", pin, nil)
	}
	s.publish(events.events...)
	pins := []schemas.PinID{"pin:2", "pin:1", "pin:0"} // the fewest saves first
	const want = "[[0 1 3] [1 1 3] [2 1 3]]"
	eventually.True(t, "all actions are in the features", func() bool {
		return fmt.Sprint(must.Get(s.features.Matrix(t.Context(), "user:reader", pins, cfg.Generator.Model.Features))(t)) == want
	})
	page := get[feed.Page](s.api(), "/v1/users/user:reader/feed?limit=25")
	if order := pinsOf(page); !slices.Equal(order, pins) || len(page.Degraded) > 0 {
		t.Fatalf("got %v, degraded %v, want %v", order, page.Degraded, pins)
	}
	received := slices.CompactFunc(slices.SortedFunc(slices.Values(*rows.Load()), slices.Compare), slices.Equal) // a pin has a row for each source
	expect.Equal(t, fmt.Sprint(received), want, "received by the model")
}
