package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
)

// ProcessCheck is the name of the check on a running process.
const ProcessCheck = "process"

// Process returns the check on the process that serves at a URL.
func Process(client *http.Client, url, version string) Check {
	return Check{Name: ProcessCheck, Look: func(ctx context.Context, found *Findings) {
		var ready struct {
			Ready   *bool    `json:"ready"`
			Missing []string `json:"missing"`
		}
		err := ask(ctx, client, url+"/readyz", &ready)
		var refused *refusal
		switch {
		case isAbsent(err):
			found.Note(`start one: "smartfeed dev", or "smartfeed process" and "smartfeed serve"`, "none at %s", url)
			return
		case errors.As(err, &refused):
			found.Note("", "one at %s does not tell how it is: %v", url, refused)
			return
		case err != nil || ready.Ready == nil:
			found.Problem("another program may listen there: choose another port with --http, or stop it", "%s is no smartfeed, or does not answer: %v", url, orNothing(reason(ctx, err)))
			return
		}
		for _, missing := range ready.Missing {
			found.Problem("wait if it has just started; else see its log and OPERATIONS.md", "%s cannot serve: %s", url, missing)
		}
		state(ctx, client, url, version, found)
	}}
}

// state reports what /v1/status tells.
func state(ctx context.Context, client *http.Client, url, version string, found *Findings) {
	var status struct {
		Version string `json:"version"`
		Parts   []struct {
			Name      string `json:"name"`
			Restarts  int    `json:"restarts"`
			LastError string `json:"last_error"`
		} `json:"parts"`
	}
	err := ask(ctx, client, url+"/v1/status", &status)
	if err != nil {
		found.Note("", "%s does not tell its state: %v", url, reason(ctx, err))
		return
	}
	if status.Version != version {
		found.Warn("use one version for all", "%s is version %s, this is %s", url, status.Version, version)
	}
	for _, p := range status.Parts {
		if p.Restarts > 0 {
			found.Warn("see its log", "%s: %s was started again %s: %s", url, p.Name, count(p.Restarts, "time"), p.LastError)
		}
	}
	if len(*found) == 0 {
		found.OK("%s is ready, %s running", url, count(len(status.Parts), "part"))
	}
}

// refusal is an answer that asks who asks.
type refusal struct{ status string }

func (r *refusal) Error() string { return r.status }

// maxStatusBytes bounds an answer: a status of a thousand partitions is a tenth of it.
const maxStatusBytes = 8 << 20

// ask reads JSON, of a failure, too: /readyz says with a 503 what is missing.
func ask(ctx context.Context, client *http.Client, url string, into any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	res, err := client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	switch res.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden:
		return &refusal{res.Status}
	case http.StatusOK, http.StatusServiceUnavailable:
	default:
		return fmt.Errorf("%s: %s", url, res.Status)
	}
	if kind := res.Header.Get("Content-Type"); !strings.HasPrefix(kind, "application/json") {
		return fmt.Errorf("%s answers %q", url, kind)
	}
	return json.NewDecoder(io.LimitReader(res.Body, maxStatusBytes)).Decode(into)
}

// isAbsent says that nothing listens.
func isAbsent(err error) bool {
	var op *net.OpError
	return errors.Is(err, syscall.ECONNREFUSED) && errors.As(err, &op) && op.Op == "dial"
}

func orNothing(err error) error {
	if err == nil {
		return errors.New("its answer says nothing")
	}
	return err
}
