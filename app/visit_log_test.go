package app

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// numberedModel answers each candidate with the number of the request, and stores the values that it received.
type numberedModel struct {
	mu       sync.Mutex
	requests []map[schemas.PinID]map[string]float32
}

func (m *numberedModel) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var q struct {
		Candidates []struct {
			Pin      schemas.PinID
			Features map[string]float32
		}
	}
	_ = json.NewDecoder(r.Body).Decode(&q)
	received, scores := map[schemas.PinID]map[string]float32{}, map[schemas.PinID]int{}
	m.mu.Lock()
	for _, c := range q.Candidates {
		received[c.Pin], scores[c.Pin] = c.Features, len(m.requests)
	}
	m.requests = append(m.requests, received)
	m.mu.Unlock()
	_ = json.NewEncoder(w).Encode(map[string]any{"scores": scores})
}

// visitLogChild returns a program that logs every visit of three readers, who follow an author of many pins.
func visitLogChild(t *testing.T, model string) *child {
	dir := t.TempDir()
	features := filepath.Join(dir, "features.yaml")
	define(t, features, `features:
- {name: pin_saves, entity: pin, verbs: save, aggregate: count}
- {name: user_actions, entity: user, aggregate: count}
`)
	define(t, filepath.Join(dir, "smartfeed.yaml"), fmt.Sprintf(`
visit_log: {share: 1}
outgoing: {allowed_networks: [127.0.0.0/8]}
features_file: %q
generator:
  feeds: {home: {randomize: {candidates: 5, temperature: 2}}}
  model: {url: %q, timeout: 10s, features: [pin_saves, user_actions]}
`, features, model))
	c := newChild(t, t.TempDir())
	c.args = append(c.args, "--config", filepath.Join(dir, "smartfeed.yaml"))
	c.start()
	s := story{now: time.Now().Add(-time.Hour)}
	for n := range 3 {
		s.add("follows", fmt.Sprint("user:reader-", n), "follow", "user:author", nil)
	}
	for n := range 300 {
		s.add("pins", "user:author", "create", fmt.Sprint("pin:", n), nil)
	}
	c.publish(s.events...)
	return c
}

// read reads a topic of the program.
func read[T any](c *child, stream func(*topics.Streams) topics.Stream[T]) (list []*T) {
	c.t.Helper()
	registry := must.Get(schemas.NewRegistry("http://" + c.flags[3]))(c.t)
	defer registry.Close()
	streams := must.Get(topics.Open(c.t.Context(), registry))(c.t)
	l := must.Get(topics.NewLog(topics.Kafka{Brokers: c.flags[1:2], Partitions: topics.EmbeddedPartitions}))(c.t)
	defer l.Close()
	s := stream(streams)
	must.OK(c.t, l.ReadAll(c.t.Context(), s.Name, func(r *kgo.Record) error {
		rec, err := s.Decode(r.Value)
		list = append(list, rec)
		return err
	}))
	return list
}

// Visits continue while the program is killed. Each visit that was recorded is logged once, with the values that the model received
// in the request that determined the visit.
func TestVisitLog_HasValuesOfModelThroughKills(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes: not with -short")
	}
	t.Parallel()
	model := &numberedModel{}
	server := httptest.NewServer(model)
	t.Cleanup(server.Close)
	c := visitLogChild(t, server.URL)
	var readers sync.WaitGroup
	ended := make(chan struct{})
	for n := range 3 {
		readers.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-ended:
					return
				default:
					c.visitAndSave(fmt.Sprint("user:reader-", n), i)
				}
			}
		})
	}
	for kill := range 3 {
		had := model.count()
		c.until(fmt.Sprint("visits before kill ", kill), func() bool { return model.count() >= had+9 })
		c.kill()
		c.start()
	}
	had := model.count()
	c.until("visits after the kills", func() bool { return model.count() >= had+9 })
	close(ended)
	readers.Wait()
	c.wait()
	c.checkVisitLog(model)
}

// count returns the number of requests.
func (m *numberedModel) count() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.requests)
}

// visitAndSave makes a visit, and publishes an action that changes the values of the next one. The program may be down.
func (c *child) visitAndSave(user string, n int) {
	client := &http.Client{Timeout: patience}
	if res, err := client.Get(c.http + "/v1/users/" + user + "/feed?limit=2"); err == nil {
		res.Body.Close()
	} else {
		time.Sleep(10 * time.Millisecond) // until the program runs again
	}
	save := event(time.Now(), fmt.Sprint(user, n), "actions", user, "save", fmt.Sprint("pin:", n), nil)
	if res, err := client.Post(c.http+"/v1/events", "application/x-ndjson", strings.NewReader(lines(c.t, save))); err == nil {
		res.Body.Close()
	}
}

// checkVisitLog compares the log with the recorded visits and with the requests to the model.
func (c *child) checkVisitLog(model *numberedModel) {
	c.t.Helper()
	model.mu.Lock()
	defer model.mu.Unlock()
	recorded := map[string][]schemas.PinID{}
	for _, s := range read(c, func(s *topics.Streams) topics.Stream[schemas.Served] { return s.Served }) {
		for _, it := range s.Items {
			recorded[s.ID] = append(recorded[s.ID], it.Pin)
		}
	}
	numbers, distinct := 0, map[schemas.LoggedNumber]bool{}
	for _, v := range read(c, func(s *topics.Streams) topics.Stream[schemas.LoggedVisit] { return s.VisitLog }) {
		want, known := recorded[v.ID]
		if delete(recorded, v.ID); !known {
			c.t.Fatalf("visit %s is logged twice, or was not recorded", v.ID)
		}
		if slices.Contains(v.Degraded, "model") {
			continue
		}
		for i, it := range v.Items {
			received := model.requests[int(it.Outputs[0])][it.Pin]
			if it.Pin != want[i] || len(it.Values) != 2 || len(received) != 2 {
				c.t.Fatalf("visit %s, item %d: %+v, want %s", v.ID, i, it, want[i])
			}
			for j, f := range v.Features {
				numbers++
				distinct[it.Values[j]] = true
				expect.Equal(c.t, float64(it.Values[j]), float64(received[f.Name]), "visit %s, item %d: %s that the model received", v.ID, i, f.Name)
			}
		}
	}
	if len(recorded) > 0 || numbers < 60 || len(distinct) < 4 {
		c.t.Errorf("%d visits are not logged; %d logged numbers, %d different ones", len(recorded), numbers, len(distinct))
	}
	c.t.Logf("%d logged numbers equal those that the model received, %d different ones", numbers, len(distinct))
}
