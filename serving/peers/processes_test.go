package peers

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// said is a process that says something, or fails.
type said struct {
	text string
	err  error
}

func (s said) Process(context.Context) (json.RawMessage, error) {
	return json.RawMessage(s.text), s.err
}

// everyone is a directory of processes.
type everyone struct {
	addresses []string
	err       error
}

func (e *everyone) Addresses(context.Context) ([]string, error) { return e.addresses, e.err }

func asking(t *testing.T, e *everyone) *Client {
	t.Helper()
	c, err := NewClient(Deps{Everybody: e, Partitions: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func listening(t *testing.T, h http.Handler) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

// Every process is asked but oneself; who hangs, fails, is gone or is of a release that has no answer holds up nobody, and
// is named.
func TestProcessesAreAskedAllAtOnce(t *testing.T) {
	var hung atomic.Int64
	release := make(chan struct{})
	hangs := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		hung.Add(1)
		<-release
	}))
	t.Cleanup(func() { close(release); hangs.Close() })
	gone := httptest.NewServer(http.NotFoundHandler())
	e := &everyone{addresses: []string{
		listening(t, Handler(Here{Process: said{text: `{"ready":true}`}})),
		hangs.Listener.Addr().String(), hangs.Listener.Addr().String(), hangs.Listener.Addr().String(),
		gone.Listener.Addr().String(),
		listening(t, Handler(Here{Process: said{err: errors.New("it broke")}})),
		listening(t, Handler(Here{})),
		listening(t, Handler(Here{Process: said{text: `{"ready":false}`}})),
		"itself:1",
	}}
	gone.Close() // now that all others listen: one of them could have its port otherwise
	c := asking(t, e)
	began := time.Now()
	heard, err := c.Processes(t.Context(), "itself:1")
	if took := time.Since(began); err != nil || took > everybodyTimeout+processTimeout+time.Second {
		t.Errorf("%v after %s, want an answer within two seconds", err, took)
	}
	if n := hung.Load(); n != 3 {
		t.Fatalf("%d calls hang, want 3", n)
	}
	var got []string
	for i, h := range heard {
		if h.Address != e.addresses[i] {
			t.Errorf("answer %d is of %s, want %s", i, h.Address, e.addresses[i])
		}
		text := string(h.Said)
		for _, cause := range []string{"deadline exceeded", "connection refused", "it broke", "404"} {
			if h.Err != nil && strings.Contains(h.Err.Error(), cause) {
				text = cause
			}
		}
		got = append(got, text)
	}
	late := "deadline exceeded"
	want := []string{`{"ready":true}`, late, late, late, "connection refused", "it broke", "404", `{"ready":false}`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("answers (-want +got):\n%s", diff)
	}
}

// While nobody can say who is there, those are asked who were.
func TestProcessesThatWereThereAreAskedWhileTheGroupsAreNotKnown(t *testing.T) {
	e := &everyone{err: errors.New("no broker")}
	c := asking(t, e)
	if heard, err := c.Processes(t.Context(), ""); !errors.Is(err, e.err) || len(heard) != 0 {
		t.Errorf("%v, %v: want the error alone", heard, err)
	}
	there := listening(t, Handler(Here{Process: said{text: "1"}}))
	*e = everyone{addresses: []string{there}}
	if heard, err := c.Processes(t.Context(), ""); err != nil || len(heard) != 1 || string(heard[0].Said) != "1" {
		t.Errorf("%v, %v: want an answer", heard, err)
	}
	*e = everyone{addresses: []string{there}, err: errors.New("half of the groups")}
	heard, err := c.Processes(t.Context(), "")
	if !errors.Is(err, e.err) || len(heard) != 1 || string(heard[0].Said) != "1" {
		t.Errorf("%v, %v: want the answer, once, and the error", heard, err)
	}
	*e = everyone{err: errors.New("no broker")}
	if heard, err = c.Processes(t.Context(), ""); !errors.Is(err, e.err) || len(heard) != 1 || string(heard[0].Said) != "1" {
		t.Errorf("%v, %v: want the answer of before, and the error", heard, err)
	}
}
