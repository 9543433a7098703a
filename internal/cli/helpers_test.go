package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/smartfeed/smartfeed/internal/testkit/must"
)

// childVariable makes the test binary run the program.
const childVariable = "SMARTFEED_TEST_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(childVariable) != "" {
		os.Unsetenv(childVariable)
		os.Exit(Execute(context.Background(), os.Args[1:], os.Environ(), os.Stdin, os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

// execute runs a command line, and returns its exit code and output.
func execute(t *testing.T, environ []string, args ...string) (code int, out, errOut string) {
	t.Helper()
	var o, e bytes.Buffer
	code = Execute(t.Context(), args, environ, strings.NewReader(""), &o, &e)
	return code, o.String(), e.String()
}

// run runs a command line, and returns its output and an error with the exit code.
func run(t *testing.T, args ...string) (string, error) {
	t.Helper()
	code, out, problems := execute(t, nil, args...)
	if code != 0 {
		return out, fmt.Errorf("exit code %d: %s", code, problems)
	}
	return out, nil
}

// smartfeed runs a command line, and returns its output and its error.
func smartfeed(t *testing.T, stdin string, args ...string) (out, errOut string, err error) {
	t.Helper()
	root := (&program{}).root()
	var o, e bytes.Buffer
	root.SetArgs(args)
	root.SetIn(strings.NewReader(stdin))
	root.SetOut(&o)
	root.SetErr(&e)
	err = root.ExecuteContext(t.Context())
	return o.String(), e.String(), err
}

// at runs a command line against the server at an address.
func at(t *testing.T, addr string, args ...string) (string, error) {
	t.Helper()
	out, _, err := smartfeed(t, "", append(args, "--http", strings.TrimPrefix(addr, "http://"))...)
	return out, err
}

// now is the time in the recorded answers.
var now = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// answer is a recorded answer of the HTTP API.
type answer struct {
	Status int
	Body   json.RawMessage
}

// newServer runs a server that gives the answers in testdata/answers.json, and returns its address. It rejects requests
// that were not recorded.
func newServer(t *testing.T) string {
	t.Helper()
	text := must.Get(os.ReadFile("testdata/answers.json"))(t)
	var recorded map[string]answer
	must.OK(t, json.Unmarshal(text, &recorded))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		request := requestLine(r)
		a, known := recorded[request]
		if !known {
			t.Errorf("no answer to %s was recorded", request)
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		if a.Status >= 400 {
			w.Header().Set("Content-Type", "application/problem+json")
		}
		w.WriteHeader(a.Status)
		_ = json.NewEncoder(w).Encode(a.Body)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// requestLine returns the method, path, query and body of a request, with the parameters in alphabetical order.
func requestLine(r *http.Request) string {
	line := r.Method + " " + r.URL.Path
	if r.URL.RawQuery != "" {
		query, _ := url.PathUnescape(r.URL.Query().Encode()) // the client has escaped it
		line += "?" + query
	}
	if body, _ := io.ReadAll(r.Body); len(body) > 0 {
		line += " " + string(body)
	}
	return line
}
