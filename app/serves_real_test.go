package app

import (
	"cmp"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	testchild "github.com/smartfeed/smartfeed/internal/testkit/child"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/serving/feature"
	"github.com/smartfeed/smartfeed/topics"
)

// servesActions is the environment variable with the number of actions in the topics, by default a million. A fifth as many pins
// are in the topics.
const servesActions = "SERVES_ACTIONS"

const (
	servesUsers = 20_000 // with actions
	servesRate  = 40     // requests per second: in turn visits, and ten features of a user
	servesFor   = 30 * time.Second
)

// One, two and four processes of the role serve answer the same load over one Kafka, Cassandra and Pinot. The test prints their start
// times, their CPU times, and how many bytes they read from sockets and files. It fails if a process does much more than its share,
// because it would do work of the others, too.
func TestRealServers_ShareLoad(t *testing.T) {
	r := startReal(t)
	r.role("process")
	r.role("materialize")
	r.fill(must.Get(strconv.Atoi(cmp.Or(os.Getenv(servesActions), "1000000")))(t))
	d := readDataset(t, generated(t, 0.015))
	serves := []*child{r.role("serve")}
	t.Log(r.importSet(d, serves[0]))
	r.warm(serves[0], d.users)
	alone := work{}
	for _, n := range []int{1, 2, 4} {
		for len(serves) < n {
			serves = append(serves, r.role("serve"))
		}
		for i, w := range r.load(serves, d.users) {
			t.Logf("%d of %d serve: %v of CPU time, %.1f MB read", i+1, n, w.cpu, float64(w.read)/1e6)
			if n == 1 {
				alone = w
			}
			expect.AtMost(t, w.cpu, alone.cpu/time.Duration(n)*3/2+time.Second/2, "CPU time of %d of %d", i+1, n)
			expect.AtMost(t, w.read, alone.read/int64(n)*3/2+2<<20, "bytes that %d of %d read", i+1, n)
		}
	}
}

// fill produces enriched actions and attributes of pins, as the groups do.
func (r *realProduct) fill(actions int) {
	r.t.Helper()
	kafka := topics.Kafka{Brokers: []string{r.at[0]}, Partitions: r.partitions}
	registry := must.Get(schemas.NewRegistry("http://" + r.at[1] + "/apis/ccompat/v7"))(r.t)
	streams := must.Get(topics.Open(r.t.Context(), registry))(r.t)
	client := must.Get(kafka.Client())(r.t)
	defer client.Close()
	produced := func(_ *kgo.Record, err error) {
		expect.Error(r.t, err, "", "fill")
	}
	began, now := time.Now(), schemas.MicrosOf(time.Now())
	for i := range actions {
		a := filledAction(i, now)
		value := must.Get(streams.ActionsEnriched.Encode(&a))(r.t)
		client.Produce(r.t.Context(), &kgo.Record{Topic: topics.ActionsEnriched, Key: []byte(a.Actor), Value: value}, produced)
	}
	for i := range actions / 5 {
		p := schemas.PinAttributes{Pin: schemas.PinID(fmt.Sprint("pin:filled-", i)), Version: 1, Attributes: map[string]string{"price": strconv.Itoa(i % 90)}}
		value := must.Get(streams.PinAttributes.Encode(&p))(r.t)
		client.Produce(r.t.Context(), &kgo.Record{Topic: topics.PinAttributes, Key: []byte(p.Pin), Value: value}, produced)
	}
	must.OK(r.t, client.Flush(r.t.Context()))
	r.t.Logf("%d actions and %d pins produced in %s", actions, actions/5, time.Since(began).Round(time.Second))
}

func filledUser(i int) schemas.UserID {
	return schemas.UserID(fmt.Sprint("user:filled-", i%servesUsers))
}

// filledAction returns the i-th action. The actions of a user are spread over the last 90 hours.
func filledAction(i int, now schemas.Micros) schemas.EnrichedAction {
	verbs := []schemas.Verb{schemas.View, schemas.Closeup, schemas.Click, schemas.Save}
	a := schemas.EnrichedAction{
		ID: fmt.Sprint("filled-", i), Actor: filledUser(i), Verb: verbs[i%len(verbs)], Object: schemas.ID(fmt.Sprint("pin:filled-", i%1000)),
		Timestamp: now - schemas.Micros(i/servesUsers)*schemas.Micros(time.Hour.Microseconds())%(90*schemas.Micros(time.Hour.Microseconds())),
	}
	a.ObjectAttributes.Facets = schemas.Facets{Author: schemas.UserID(fmt.Sprint("user:author-", i%50)), Interests: []schemas.InterestID{"interest:1", "interest:2"}}
	return a
}

// work is what a process has done.
type work struct {
	cpu  time.Duration
	read int64 // bytes, from sockets and files
}

func workOf(t *testing.T, c *child) (w work) {
	t.Helper()
	text := must.Get(os.ReadFile(fmt.Sprintf("/proc/%d/io", c.cmd.Process.Pid)))(t)
	must.Get(fmt.Sscanf(string(text), "rchar: %d", &w.read))(t)
	w.cpu = testchild.CPU(t, c.cmd.Process.Pid)
	return w
}

// warm sends one request after the other until the last 2 s of the load take at most 2 s: the JVMs of the servers load and compile the
// classes for the first requests, which at the rate of the load would exceed the limit of requests in flight.
func (r *realProduct) warm(to *child, users []schemas.UserID) {
	r.t.Helper()
	began, n := time.Now(), 2*servesRate
	for i := 0; ; i += n {
		start := time.Now()
		for j := range n {
			r.request(to, i+j, users)
		}
		if took := time.Since(start); took < 2*time.Second || time.Since(began) > patience {
			r.t.Logf("warm after %d requests in %.1f s, the last %d in %.1f s", i+n, time.Since(began).Seconds(), n, took.Seconds())
			return
		}
	}
}

// load sends requests to the processes in turn, at a constant rate, and returns what each of them did for these.
func (r *realProduct) load(serves []*child, users []schemas.UserID) []work {
	r.t.Helper()
	done := make([]work, len(serves))
	for i, c := range serves {
		done[i] = workOf(r.t, c)
	}
	var requests sync.WaitGroup
	tick := time.NewTicker(time.Second / servesRate)
	defer tick.Stop()
	for i := range int(servesFor.Seconds()) * servesRate {
		<-tick.C
		requests.Go(func() { r.request(serves[i/2%len(serves)], i, users) })
	}
	requests.Wait()
	for i, c := range serves {
		w := workOf(r.t, c)
		done[i] = work{w.cpu - done[i].cpu, w.read - done[i].read}
	}
	return done
}

// request sends the i-th request.
func (r *realProduct) request(to *child, i int, users []schemas.UserID) {
	client := http.Client{Timeout: patience}
	send := func() (*http.Response, error) {
		return client.Get(to.http + "/v1/users/" + string(users[i/2%len(users)]) + "/feed?limit=25")
	}
	if i%2 == 1 {
		body := jsonText(r.t, feature.Request{Features: r.features, Users: []schemas.UserID{filledUser(i * 7)}})
		send = func() (*http.Response, error) {
			return client.Post(to.http+"/v1/features", "application/json", strings.NewReader(body))
		}
	}
	res, err := send()
	if err != nil {
		r.t.Error(err)
		return
	}
	defer res.Body.Close()
	if text, err := io.ReadAll(res.Body); err != nil || res.StatusCode != http.StatusOK {
		r.t.Errorf("%d %.300s %v", res.StatusCode, text, err)
	}
}
