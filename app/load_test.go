package app

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/smartfeed/smartfeed/internal/testkit/must"
)

// Another process generates the load, so measurements of this process exclude its cost: this test binary with loadVariable
// set. It implements HTTP/1.1 on persistent connections, because a client of net/http would cost as much as the server.
const loadVariable = "SMARTFEED_TEST_LOAD"

// load is the load to generate.
type load struct {
	Address string
	Paths   []string // requested in turn
	Conns   int
	Rate    int // requests per second, independent of earlier responses; 0: each connection sends the next request after a response
	For     time.Duration
}

// loaded is the result of a load.
type loaded struct {
	Seconds float64
	Sent    int
	Codes   map[int]int
	Took    map[int][]time.Duration // sorted, from the due time of a request, by status code
	Late    int                     // requests that were not sent in time, because no connection was free
}

func (l loaded) perSecond(code int) float64 { return float64(l.Codes[code]) / l.Seconds }

func (l loaded) quantile(code int, q float64) time.Duration {
	took := l.Took[code]
	if len(took) == 0 {
		return 0
	}
	return took[min(int(q*float64(len(took))), len(took)-1)]
}

// generate generates the load in another process.
func (l load) generate(b *testing.B) loaded {
	b.Helper()
	what := must.Get(json.Marshal(l))(b)
	ctx, cancel := context.WithTimeout(b.Context(), l.For+time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0], "-test.run", "^TestLoad_GeneratesInOtherProcess$")
	cmd.Env = append(os.Environ(), loadVariable+"="+loadVariable)
	cmd.Stdin = bytes.NewReader(what)
	var out, problems bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problems
	if err := cmd.Run(); err != nil {
		b.Fatalf("%v\n%s%s", err, &out, &problems)
	}
	var result loaded
	must.OK(b, json.NewDecoder(&out).Decode(&result))
	return result
}

// TestLoad_GeneratesInOtherProcess runs in the other process.
func TestLoad_GeneratesInOtherProcess(t *testing.T) {
	if os.Getenv(loadVariable) != loadVariable {
		t.Skipf("%s is not set: only the benchmark of serving runs this", loadVariable)
	}
	var l load
	must.OK(t, json.NewDecoder(os.Stdin).Decode(&l))
	result := must.Get(l.run())(t)
	must.OK(t, json.NewEncoder(os.Stdout).Encode(result))
}

// due is a request with its due time.
type due struct {
	at   time.Time
	path string
}

func (l load) run() (loaded, error) {
	var (
		queue       = make(chan due, l.Conns)
		results     = make([]loaded, l.Conns)
		errs        = make([]error, l.Conns)
		connections sync.WaitGroup
	)
	began := time.Now()
	for i := range l.Conns {
		connections.Go(func() { results[i], errs[i] = l.connection(queue) })
	}
	late := l.feed(queue, began)
	close(queue)
	connections.Wait()
	total := loaded{Seconds: time.Since(began).Seconds(), Codes: map[int]int{}, Took: map[int][]time.Duration{}, Late: late}
	for i, r := range results {
		if errs[i] != nil {
			return total, errs[i]
		}
		for code, took := range r.Took {
			total.Took[code] = append(total.Took[code], took...)
			total.Codes[code] += len(took)
			total.Sent += len(took)
		}
	}
	for _, took := range total.Took {
		slices.Sort(took)
	}
	return total, nil
}

// feed queues the due requests for the duration of the load, and counts those for which no connection was free.
func (l load) feed(queue chan<- due, began time.Time) (late int) {
	for i := 0; time.Since(began) < l.For; i++ {
		d := due{time.Now(), l.Paths[i%len(l.Paths)]}
		if l.Rate == 0 {
			queue <- d
			continue
		}
		d.at = began.Add(time.Duration(i) * time.Second / time.Duration(l.Rate))
		time.Sleep(time.Until(d.at))
		select {
		case queue <- d:
		default:
			late++
		}
	}
	return late
}

// connection sends due requests on one connection.
func (l load) connection(queue <-chan due) (loaded, error) {
	r := loaded{Took: map[int][]time.Duration{}}
	conn, err := net.Dial("tcp", l.Address)
	if err != nil {
		return r, err
	}
	defer conn.Close()
	in := bufio.NewReaderSize(conn, 64<<10)
	for d := range queue {
		if l.Rate == 0 {
			d.at = time.Now()
		}
		if _, err := fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n", d.path); err != nil {
			return r, err
		}
		code, err := readResponse(in)
		if err != nil {
			return r, err
		}
		r.Took[code] = append(r.Took[code], time.Since(d.at))
	}
	return r, nil
}

// readResponse reads a response with a Content-Length.
func readResponse(in *bufio.Reader) (code int, err error) {
	length := -1
	for first := true; ; first = false {
		line, err := in.ReadSlice('\n')
		if err != nil {
			return 0, err
		}
		text := strings.TrimRight(string(line), "\r\n")
		name, value, _ := strings.Cut(text, ":")
		switch {
		case first && len(text) > 12:
			code, err = strconv.Atoi(text[9:12])
		case strings.EqualFold(name, "Content-Length"):
			length, err = strconv.Atoi(strings.TrimSpace(value))
		case text == "" && length < 0:
			err = fmt.Errorf("response %d without Content-Length", code)
		case text == "":
			_, err = io.CopyN(io.Discard, in, int64(length))
			return code, err
		}
		if err != nil {
			return 0, err
		}
	}
}
