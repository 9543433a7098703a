package app

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/processors"
	"github.com/smartfeed/smartfeed/serving/api"
)

// The shutdown ends after the timeout, and the error names the running components.
func TestStopWithin_NamesRunningComponents(t *testing.T) {
	states := []processors.ComponentState{
		{Name: "http", Condition: processors.Stopped},
		{Name: "pools", Condition: processors.Running, LastError: "disk refuses writes"},
	}
	why := func() string { return runningComponents(states) }
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		ended, came := make(chan error, 1), make(chan error, 1)
		go func() { came <- stopWithin(ctx, time.Minute, ended, why) }()
		time.Sleep(time.Hour) // no shutdown before ctx is done
		select {
		case err := <-came:
			t.Fatalf("stopped before ctx was done: %v", err)
		default:
		}
		cancel()
		began := time.Now()
		err := <-came
		if took := time.Since(began); took != time.Minute || err == nil || !strings.Contains(err.Error(), "still running: pools (disk refuses writes)") {
			t.Errorf("after %s: %v", took, err)
		}
	})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	broken := errors.New("broken")
	ended := make(chan error, 1)
	ended <- broken
	expect.Is(t, stopWithin(ctx, time.Minute, ended, why), broken, "stopWithin")
	expect.Equal(t, runningComponents(states[:1]), "a store or the embedded broker is still closing", "with all components ended")
}

// ShutdownTimeout must cover the maximum time for requests in flight, and as long again for their asynchronous writes.
func TestShutdownTimeout_CoversRequests(t *testing.T) {
	const closes = 5 * time.Second // of stores and the broker
	expect.AtMost(t, 2*api.MaxShutdownTimeout+closes, ShutdownTimeout, "time that requests can take")
}

// Requests in flight need the stores, the groups and the global tables.
func TestShutdown_StopsServerFirst(t *testing.T) {
	p := must.Get(openApp(t.Context(), testConfig(t.TempDir()), slog.New(slog.DiscardHandler), everything()))(t)
	defer p.Close()
	var first []string
	for _, component := range p.components {
		if component.Serves {
			first = append(first, component.Name)
		}
	}
	expect.NoDiff(t, first, []string{"http"}, "components that stop first")
}
