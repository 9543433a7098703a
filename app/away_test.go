package app

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// said is a log that tests can read.
type said struct {
	mu   sync.Mutex
	text strings.Builder
}

func (s *said) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *said) holds(what string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Contains(s.text.String(), what)
}

// A serving process starts without its external stores, reports which are missing, and answers: feeds, features, and
// why they are incomplete.
func TestServingStartsWithoutItsStores(t *testing.T) {
	broker := startBroker(t)
	cfg := roleConfig(t, broker)
	nobody := []string{"127.0.0.1:1"}
	cfg.FeedStore.Cassandra.Primary.Hosts = nobody
	cfg.Pinot.Brokers, cfg.Pinot.Controller = nobody, nobody[0]
	log := new(said)
	p, err := openProduct(t.Context(), cfg, slog.New(slog.NewTextHandler(log, nil)), serving())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		if err := p.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	defer func() {
		cancel()
		running.Wait()
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}()
	ask := func(method, path, body string) string {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, "http://"+p.server.Addr()+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			return err.Error()
		}
		defer res.Body.Close()
		text, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	for _, c := range []struct{ method, path, body, want string }{
		{"GET", "/readyz", "", "no feed store can be reached"},
		{"GET", "/v1/users/user:ada/feed", "", `"degraded":["generator","store"]`},
		{"POST", "/v1/features", `{"features":["interests_24h"],"users":["user:ada"]}`, `"missing":[{"entity":"user:ada","feature":"interests_24h"`},
	} {
		got, deadline := "", time.Now().Add(time.Minute)
		for !strings.Contains(got, c.want) && time.Now().Before(deadline) {
			got = ask(c.method, c.path, c.body)
			time.Sleep(20 * time.Millisecond)
		}
		if !strings.Contains(got, c.want) {
			t.Errorf("%s answers %s, want %q in it", c.path, got, c.want)
		}
	}
	if !log.holds("feed store cannot be reached") {
		t.Errorf("the log does not say that the feed store is away:\n%s", log.text.String())
	}
}
