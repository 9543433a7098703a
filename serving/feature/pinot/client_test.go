package pinot

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	logrus "github.com/sirupsen/logrus/hooks/test"
	"go.uber.org/goleak"

	"github.com/smartfeed/smartfeed/internal/secure"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/serving/feature"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// broker returns a client of a broker that answers every query with answer.
func broker(t *testing.T, answer http.HandlerFunc) *Client {
	t.Helper()
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	cfg := DefaultConfig()
	cfg.Brokers, cfg.MaxResponseBytes = []string{strings.TrimPrefix(server.URL, "http://")}, 64<<10
	c := must.Get(NewClient(cfg))(t)
	t.Cleanup(c.Close)
	return c
}

func says(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, body) }
}

const secret = "user:secret"

// Without the deadline, the broker would run the query for its configured maximum without a caller.
func TestQuery_SendsDeadline(t *testing.T) {
	var sent struct{ SQL, QueryOptions string }
	c := broker(t, func(w http.ResponseWriter, r *http.Request) {
		expect.Error(t, json.NewDecoder(r.Body).Decode(&sent), "", "body")
		_, _ = io.WriteString(w, none)
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	must.Get(c.query(ctx, "SELECT n", 1))(t)
	_, timeout, _ := strings.Cut(sent.QueryOptions, "timeoutMs=")
	if ms, err := strconv.Atoi(timeout); err != nil || ms <= 0 || ms > 60_000 {
		t.Errorf("query options %q, want at most the remaining minute", sent.QueryOptions)
	}
}

func TestQuery_AcceptsOnlyCompleteAnswers(t *testing.T) {
	table := `"resultTable":{"dataSchema":{"columnNames":["n"],"columnDataTypes":["LONG"]},"rows":[[3]]}`
	tests := map[string]struct {
		answer http.HandlerFunc
		want   func(error) bool
	}{
		"complete":   {says(`{` + table + `,"numServersQueried":1,"numServersResponded":1}`), func(err error) bool { return err == nil }},
		"no server":  {says(`{` + table + `,"numServersQueried":0}`), func(err error) bool { return errors.Is(err, ErrPartial) }},
		"exceptions": {says(`{` + table + `,"exceptions":[{"errorCode":710,"message":"` + secret + `"}]}`), func(err error) bool { var q *QueryError; return errors.As(err, &q) && q.Code == 710 }},
		"partial":    {says(`{` + table + `,"numServersQueried":2,"numServersResponded":1}`), func(err error) bool { return errors.Is(err, ErrPartial) }},
		"no table":   {says(`{"numServersQueried":1,"numServersResponded":1}`), func(err error) bool { return err != nil }},
		"wide rows":  {says(`{"resultTable":{"rows":[[1,2]]},"numServersQueried":1,"numServersResponded":1}`), func(err error) bool { return err != nil }},
		"many values": {says(`{"numServersQueried":1,"numServersResponded":1,"resultTable":{"rows":[` + strings.Repeat("[],", 8<<10) + `[]]}}`), func(err error) bool {
			return err != nil && strings.Contains(err.Error(), "JSON values: want at most 8192")
		}},
		"no JSON":      {says(`<html>`), func(err error) bool { return err != nil }},
		"huge":         {func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, 65<<10)) }, func(err error) bool { return errors.Is(err, ErrTooLarge) }},
		"another code": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }, func(err error) bool { return err != nil }},
		"a status that repeats the query": {func(w http.ResponseWriter, _ *http.Request) {
			conn, _, err := w.(http.Hijacker).Hijack()
			if err == nil {
				_, _ = io.WriteString(conn, "HTTP/1.1 400 "+secret+"\r\nContent-Length: 0\r\n\r\n")
				_ = conn.Close()
			}
		}, func(err error) bool { return err != nil && strings.Contains(err.Error(), "400 Bad Request") }},
		"cut": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, "{")
		}, func(err error) bool { return err != nil }},
	}
	logged := logrus.NewGlobal()
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := broker(t, tt.answer).query(t.Context(), "SELECT n WHERE actor = '"+secret+"'", 1)
			expect.True(t, tt.want(err), "expected error: %v", err)
			expect.False(t, err != nil && strings.Contains(err.Error(), secret), "the error contains the query: %v", err)
			for _, entry := range logged.AllEntries() {
				t.Errorf("the client logs %q", entry.Message)
			}
		})
	}
}

func TestQuery_KeepsLongIntegers(t *testing.T) {
	const long = "9007199254740993" // not a float64
	a, err := broker(t, says(`{"resultTable":{"rows":[[`+long+`]]},"numServersQueried":1,"numServersResponded":1}`)).query(t.Context(), "SELECT n", 1)
	if err != nil || len(a.rows) != 1 || a.rows[0][0] != json.Number(long) {
		t.Errorf("got %v, %v, want %s", a.rows, err, long)
	}
}

// A broker may close a connection while the next query is sent on it.
func TestQuery_SentAgainOnNewConnection(t *testing.T) {
	var queries atomic.Int64
	c := broker(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if queries.Add(1) != 2 {
			_, _ = io.WriteString(w, none)
			return
		}
		if conn, _, err := w.(http.Hijacker).Hijack(); err == nil {
			_ = conn.Close()
		}
		if _, sent := r.Header["X-Idempotency-Key"]; sent {
			t.Error("the mark of a repeatable request is sent")
		}
	})
	for range 2 {
		must.Get(c.query(t.Context(), "SELECT n", 1))(t)
	}
	expect.Equal(t, queries.Load(), 3, "requests: the second connection fails")
}

func TestQuery_RejectsRedirectToAnotherServer(t *testing.T) {
	c := broker(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", "http://another.invalid/")
		w.WriteHeader(http.StatusTemporaryRedirect)
	})
	expect.Error(t, expect.ErrorOf(c.query(t.Context(), "SELECT n", 1)), "redirected to another server", "error")
}

func TestWithoutSQL(t *testing.T) {
	const sql = "SELECT n WHERE actor = '" + secret + "'"
	cause := errors.New("connection refused")
	for name, tt := range map[string]struct {
		err  error
		want string
	}{
		"none":         {nil, "<nil>"},
		"without":      {cause, "connection refused"},
		"around":       {fmt.Errorf("query %s: %w", sql, fmt.Errorf("send %s: %w", sql, cause)), "connection refused"},
		"no cause":     {errors.New("query " + sql), "no cause without the SQL"},
		"in all parts": {fmt.Errorf("query: %w", errors.New(sql)), "no cause without the SQL"},
	} {
		expect.Equal(t, fmt.Sprint(withoutSQL(tt.err, sql)), tt.want, "%s", name)
	}
}

func TestQuery_EndsWithContext(t *testing.T) {
	release := make(chan struct{})
	defer close(release)
	c := broker(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // otherwise the server does not notice that the caller cancels
		select {
		case <-release:
		case <-r.Context().Done():
		}
	})
	before := runtime.NumGoroutine()
	for range 20 {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
		_, err := c.query(ctx, "SELECT 1", 1)
		cancel()
		expect.Is(t, err, context.DeadlineExceeded, "error")
	}
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(time.Minute); runtime.NumGoroutine() > before+10; <-tick.C {
		if time.Now().After(deadline) {
			t.Fatalf("%d goroutines before, %d after", before, runtime.NumGoroutine())
		}
	}
}

// A store reads the columns, in any order of the ids, and reports its freshness.
func TestStore_ReadsRows(t *testing.T) {
	var sent []string
	row := func(id, object string, ts int64) string {
		return fmt.Sprintf(`["%s","user:1","save","%s",["",  "interest:a"],["-Infinity"],"{\"price\":\"2.5\"}",%d]`, id, object, ts)
	}
	c := broker(t, func(w http.ResponseWriter, r *http.Request) {
		var q map[string]string
		_ = json.NewDecoder(r.Body).Decode(&q)
		sent = append(sent, q["sql"])
		ms := int64(now) / 1000
		fmt.Fprintf(w, `{"resultTable":{"rows":[%s,%s,%s,["other","user:2","save","pin:9",[],[],"{\"price\":\"100\"}",%d]]},"numServersQueried":1,"numServersResponded":1,"minConsumingFreshnessTimeMs":%d}`,
			row("\U0001F600", "pin:2", ms), row("\uff5e", "pin:1", ms), row("c", "pin:3", ms-1), ms, ms)
	})
	s := NewStore(feature.DefaultConfig(), c)
	defs := define(t, `
- {name: last, entity: user, aggregate: last, n: 2}
- {name: price, entity: user, aggregate: sum, of: objectAttributes.price}
- {name: taste, entity: user, aggregate: mean_embedding, of: objectAttributes.embedding}
- {name: interests, entity: user, aggregate: count, group_by: objectAttributes.interests}
`)
	got, fresh, err := s.Actions(t.Context(), "user:1", feature.Span{AsOf: now, Now: now}, defs)
	must.OK(t, err)
	at := now.Time()
	want := []feature.Result{
		{Value: feature.Last{{Object: "pin:2", Verb: "save", Timestamp: at}, {Object: "pin:1", Verb: "save", Timestamp: at}}}, // ordered by bytes
		{Value: feature.Number(7.5)},
		{Reasons: []feature.Reason{feature.Empty}},
		{Value: feature.Groups{"interest:a": 3}},
	}
	expect.NoDiff(t, got, want, "values")
	expect.NoDiff(t, fresh, at, "fresh to")
	expect.Equal(t, len(sent), 1, "queries for four features, %q", sent)
}

// The freshness of a user is what the answer for this user reports, for any kind of query, and not that of another
// partition.
func TestStore_ReportsFreshnessPerAnswer(t *testing.T) {
	ms := int64(now) / 1000
	says := map[string]int64{"user:1": ms - 3_600_000, "user:2": ms, "user:3": math.MaxInt64, "user:4": 0}
	c := broker(t, func(w http.ResponseWriter, r *http.Request) {
		var q map[string]string
		_ = json.NewDecoder(r.Body).Decode(&q)
		for user, fresh := range says {
			if strings.Contains(q["sql"], "'"+user+"'") {
				fmt.Fprintf(w, `{"resultTable":{"rows":[]},"numServersQueried":1,"numServersResponded":1,"minConsumingFreshnessTimeMs":%d}`, fresh)
			}
		}
	})
	s := NewStore(feature.DefaultConfig(), c)
	defs := define(t, "- {name: n, entity: user, aggregate: count}\n- {name: last, entity: user, aggregate: last}\n")
	for n := range defs {
		for _, tt := range []struct {
			user schemas.UserID
			want time.Time
		}{{"user:2", time.UnixMilli(ms)}, {"user:1", time.UnixMilli(ms - 3_600_000)}, {"user:3", time.Time{}}, {"user:4", time.Time{}}} {
			_, fresh, err := s.Actions(t.Context(), tt.user, feature.Span{AsOf: now, Now: now}, defs[:n+1])
			if err != nil || !fresh.Equal(tt.want) {
				t.Errorf("%s, %d definitions: fresh to %v, %v, want %v", tt.user, n+1, fresh, err, tt.want)
			}
		}
	}
}

func TestRead_RejectsWrongRows(t *testing.T) {
	for name, tt := range map[string]struct{ column, value string }{
		"a number for a text": {"object", "7"}, "a text for a time": {timeColumn, `"now"`}, "no list": {"objectInterests", `"x"`},
		"numbers in a list": {"objectInterests", "[1]"}, "texts in a vector": {"objectEmbedding", `[1,"x"]`}, "beyond 32 bits": {"objectEmbedding", "[1e39]"},
		"no object": {"objectAttributesMap", `"["`}, "not a text": {"objectAttributesMap", "7"},
		"counts of texts": {"countsMap", `"{\"save\":\"1\"}"`}, "counts not a text": {"countsMap", "[1]"}, "no sketch": {"actors", `"xyz"`},
	} {
		t.Run(name, func(t *testing.T) {
			dec := json.NewDecoder(strings.NewReader(tt.value))
			dec.UseNumber()
			var v any
			must.OK(t, dec.Decode(&v))
			for _, c := range slices.Concat(actionColumns(), countColumns()) {
				expect.False(t, c.name == tt.column && c.read(&row{}, v) == nil, "%s was read as %s", tt.value, tt.column)
			}
		})
	}
}

// The client and Admin send the configured login over TLS. The error for a wrong answer does not contain it.
func TestClient_LoginOverTLS(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); user != "ada" || password != "correct-horse" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		if r.URL.Path == "/version" {
			_, _ = io.WriteString(w, `{"pinot-controller":"0.11.0"}`)
			return
		}
		_, _ = io.WriteString(w, `{"resultTable":{"rows":[[3]]},"numServersQueried":1,"numServersResponded":1}`)
	}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // handshakes are meant to fail
	server.StartTLS()
	t.Cleanup(server.Close)
	ca := filepath.Join(t.TempDir(), "ca.pem")
	must.OK(t, os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600))
	for _, c := range []struct{ name, password, ca, says string }{
		{"right", "correct-horse", ca, ""},
		{"wrong", "battery-staple", ca, "401"},
		{"untrusted CA", "correct-horse", "", "certificate"},
	} {
		cfg := DefaultConfig()
		cfg.Brokers, cfg.Controller = []string{server.URL}, server.URL
		cfg.Client = secure.HTTP{TLS: secure.Certificates{CAFile: c.ca}, Login: secure.Login{User: "ada", Password: secure.Secret(c.password)}}
		client := must.Get(NewClient(cfg))(t)
		t.Cleanup(client.Close)
		admin := must.Get(NewAdmin(cfg))(t)
		_, sent := client.query(t.Context(), "SELECT 1", 1)
		_, administered := admin.Release(t.Context())
		for what, err := range map[string]error{"client": sent, "admin": administered} {
			if (err == nil) != (c.says == "") || err != nil && (!strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), c.password)) {
				t.Errorf("%s, %s: got %v, want %q", c.name, what, err, c.says)
			}
		}
	}
}

// The credentials of Pinot's servers for Kafka are in the table, and not in reported differences.
func TestAdmin_HidesStreamSecrets(t *testing.T) {
	const jaas = "PlainLoginModule required password=correct-horse"
	s := Setup{Config: DefaultConfig(), Partitions: 4}
	s.Config.StreamConfig = map[string]secure.Secret{"sasl.jaas.config": jaas}
	for _, r := range []Release{V0, V1} {
		applied := must.Get(s.table(TableName, r))(t)
		expect.Contains(t, string(applied.config), jaas, "%s: applied configuration", r)
	}
	var want, got any = object{"sasl.jaas.config": jaas}, object{"sasl.jaas.config": "another-horse"}
	differ := differences("table", mask(want, s.Config.StreamConfig), mask(got, s.Config.StreamConfig))
	if len(differ) != 1 || strings.Contains(differ[0], "horse") {
		t.Errorf("differences: got %q, want one, without a secret", differ)
	}
}
