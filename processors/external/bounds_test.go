package external

import (
	"bytes"
	"errors"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/smartfeed/smartfeed/internal/testkit/eventually"
)

// largest has the size of a decoded candidate.
type largest struct{ Values [11]uint64 }

// A response within MaxResponseBytes could take hundreds of MiB when decoded. Call limits that.
func TestCall_BoundsDecodedSize(t *testing.T) {
	list := []byte(`{"candidates":[` + strings.Repeat("{},", MaxResponseBytes/3-10) + `{}]}`)
	scores := []byte(`{"scores":{` + strings.Repeat(`"":0,`, MaxResponseBytes/5-10) + `"":0}}`)
	nested := []byte(`{"candidates":[{"interests":[` + strings.Repeat(`"",`, MaxResponseBytes/3-20) + `""]}]}`)
	for name, text := range map[string][]byte{"list": list, "map": scores, "nested list": nested} {
		t.Run(name, func(t *testing.T) {
			s := New(Config{URL: "http://source.example/", Timeout: time.Minute}, nil)
			s.client = &http.Client{Transport: roundTrip(func() (int, []byte) { return http.StatusOK, text })}
			var answer struct {
				Candidates []struct {
					largest
					Interests []string
				}
				Scores map[string]float64
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			err := s.Call(t.Context(), 1, &answer, 1000*128)
			runtime.ReadMemStats(&after)
			if err == nil || !strings.Contains(err.Error(), "JSON values: want at most 128000") {
				t.Errorf("got %v, want an error about the number of values", err)
			}
			if got := (after.TotalAlloc - before.TotalAlloc) >> 20; got > 32 { // reading 4 MiB into a growing buffer takes 20
				t.Errorf("allocated %d MiB, want at most 32", got)
			}
		})
	}
}

// All responses in flight share one budget, whether they are decoded or not.
func TestCall_BoundsResponsesInFlight(t *testing.T) {
	const size, calls = 128 << 10, 3
	release := make(chan struct{})
	s := serve(t, patience, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write(bytes.Repeat([]byte(" "), size))
		_ = http.NewResponseController(w).Flush()
		<-release
		_, _ = w.Write([]byte("1"))
	})
	s.held = semaphore.NewWeighted(calls*size + size/2)
	ask := func() error { return s.Call(t.Context(), 1, new(any), 10) }
	errs := make(chan error, calls)
	for range calls {
		go func() { errs <- ask() }()
	}
	eventually.True(t, "all responses are held", func() bool {
		room := s.held.TryAcquire(size)
		if room {
			s.held.Release(size)
		}
		return !room
	})
	for range Failures + 1 { // ErrBusy is no failure of the service: its circuit breaker stays closed
		if err := ask(); !errors.Is(err, ErrBusy) {
			t.Errorf("got %v, want %v", err, ErrBusy)
		}
	}
	close(release)
	for range calls {
		if err := <-errs; err != nil {
			t.Errorf("got %v, want nil", err)
		}
	}
	if err := ask(); err != nil {
		t.Errorf("after the last call ended: got %v, want nil", err)
	}
	if !s.held.TryAcquire(calls*size + size/2) {
		t.Error("a part of the budget was not released")
	}
}

// Decoded values count in addition to their text.
func TestCall_CountsDecodedValues(t *testing.T) {
	s := New(Config{URL: "http://source.example/", Timeout: time.Minute}, nil)
	s.client = &http.Client{Transport: roundTrip(func() (int, []byte) {
		return http.StatusOK, []byte("[" + strings.Repeat("{},", 1000) + "{}]")
	})}
	s.held = semaphore.NewWeighted(100 << 10)
	if err := s.Call(t.Context(), 1, new(any), 1<<20); !errors.Is(err, ErrBusy) {
		t.Errorf("got %v, want %v", err, ErrBusy)
	}
}
