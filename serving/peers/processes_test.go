package peers

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/smartfeed/smartfeed/internal/testkit/eventually"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
)

// fakeProcess is a process that returns a status, or fails.
type fakeProcess struct {
	text string
	err  error
}

func (s fakeProcess) Process(context.Context) (json.RawMessage, error) {
	return json.RawMessage(s.text), s.err
}

// everyone is a directory of processes.
type everyone struct {
	addresses []string
	err       error
}

func (e *everyone) Addresses(context.Context) ([]string, error) { return e.addresses, e.err }

// hanging returns the address of a process that accepts requests but does not answer before the test ends.
func hanging(t *testing.T) (address string, requests *atomic.Int64) {
	t.Helper()
	requests = new(atomic.Int64)
	release := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		requests.Add(1)
		<-release
	}))
	t.Cleanup(func() { close(release); s.Close() })
	return s.Listener.Addr().String(), requests
}

// completed counts the requests that have failed, and the responses that the client has read.
type completed struct {
	next http.RoundTripper
	n    atomic.Int64
}

func (c *completed) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := c.next.RoundTrip(r)
	if err != nil {
		c.n.Add(1)
		return nil, err
	}
	res.Body = closing{res.Body, &c.n}
	return res, nil
}

type closing struct {
	io.ReadCloser
	n *atomic.Int64
}

func (c closing) Close() error {
	c.n.Add(1)
	return c.ReadCloser.Close()
}

// Every process except the caller's is queried. One that hangs, fails, is down, or is of a release without this call does not
// delay the others, and the result names it.
func TestProcesses_QueriesAllInParallel(t *testing.T) {
	hangs, hung := hanging(t)
	gone := httptest.NewServer(http.NotFoundHandler())
	e := &everyone{addresses: []string{
		serve(t, Handler(Local{Process: fakeProcess{text: `{"ready":true}`}})),
		hangs, hangs, hangs,
		gone.Listener.Addr().String(),
		serve(t, Handler(Local{Process: fakeProcess{err: errors.New("it broke")}})),
		serve(t, Handler(Local{})),
		serve(t, Handler(Local{Process: fakeProcess{text: `{"ready":false}`}})),
		"self:1",
	}}
	gone.Close() // only now, because another server could otherwise get its port
	c := newClient(t, Deps{Processes: e})
	done := &completed{next: c.http.Transport}
	c.http.Transport = done
	c.timeout, c.processes.timeout = time.Hour, time.Hour // a busy machine may not answer within a second
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var heard []StatusResult
	var err error
	var calling sync.WaitGroup
	calling.Go(func() { heard, err = c.Processes(ctx, "self:1") })
	eventually.True(t, "three calls hang, and all others have a result", func() bool { return hung.Load() == 3 && done.n.Load() == 5 })
	cancel()
	calling.Wait()
	must.OK(t, err)
	var got []string
	for i, h := range heard {
		expect.Equal(t, h.Address, e.addresses[i], "address of answer %d", i)
		text := string(h.Status)
		for _, cause := range []string{"context canceled", "connection refused", "it broke", "404 Not Found"} {
			if h.Err != nil && strings.Contains(h.Err.Error(), cause) {
				text = cause
			}
		}
		got = append(got, text)
	}
	late := "context canceled"
	want := []string{`{"ready":true}`, late, late, late, "connection refused", "it broke", "404 Not Found", `{"ready":false}`}
	expect.NoDiff(t, got, want, "answers")
}

// Calls to a process that hangs time out, and so do reads of a directory that hangs.
func TestProcesses_TimesOut(t *testing.T) {
	address, hung := hanging(t)
	e := &everyone{addresses: []string{address}}
	c := newClient(t, Deps{Processes: e})
	expect.Equal(t, c.timeout, time.Second, "timeout of an answer")
	expect.Equal(t, c.processes.timeout, time.Second, "timeout of the list")
	for c.timeout = 100 * time.Millisecond; hung.Load() == 0; c.timeout *= 2 { // until a call arrives within the timeout
		heard, err := c.Processes(t.Context(), "")
		if err != nil || len(heard) != 1 || !errors.Is(heard[0].Err, context.DeadlineExceeded) {
			t.Fatalf("%v, %v: want a timeout of one process", heard, err)
		}
	}
	c.processes = processes{lister: hangingDirectory{}, timeout: time.Millisecond}
	if heard, err := c.Processes(t.Context(), ""); !errors.Is(err, context.DeadlineExceeded) || len(heard) != 0 {
		t.Errorf("%v, %v: want a timeout of the list", heard, err)
	}
}

// hangingDirectory is a directory that hangs.
type hangingDirectory struct{}

func (hangingDirectory) Addresses(ctx context.Context) ([]string, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// While the processes cannot be listed, the last known ones are queried.
func TestProcesses_QueriesLastKnown(t *testing.T) {
	e := &everyone{err: errors.New("no broker")}
	c := newClient(t, Deps{Processes: e})
	if heard, err := c.Processes(t.Context(), ""); !errors.Is(err, e.err) || len(heard) != 0 {
		t.Errorf("%v, %v: want only the error", heard, err)
	}
	there := serve(t, Handler(Local{Process: fakeProcess{text: "1"}}))
	*e = everyone{addresses: []string{there}}
	if heard, err := c.Processes(t.Context(), ""); err != nil || len(heard) != 1 || string(heard[0].Status) != "1" {
		t.Errorf("%v, %v: want an answer", heard, err)
	}
	*e = everyone{addresses: []string{there}, err: errors.New("half of the groups")}
	heard, err := c.Processes(t.Context(), "")
	if !errors.Is(err, e.err) || len(heard) != 1 || string(heard[0].Status) != "1" {
		t.Errorf("%v, %v: want the answer, once, and the error", heard, err)
	}
	*e = everyone{err: errors.New("no broker")}
	if heard, err = c.Processes(t.Context(), ""); !errors.Is(err, e.err) || len(heard) != 1 || string(heard[0].Status) != "1" {
		t.Errorf("%v, %v: want the previous answer and the error", heard, err)
	}
}
