package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"syscall"

	"github.com/smartfeed/smartfeed/internal/command"
	"github.com/smartfeed/smartfeed/internal/status"
)

// Names of the checks on programs.
const (
	ProgramCheck = "program" // this program
	ProcessCheck = "process" // a running process
)

// Program returns a check that reports version, platform and configuration of this program.
func Program(version, config string) Check {
	return Check{Name: ProgramCheck, Examine: func(_ context.Context, found *Findings) error {
		found.OK("smartfeed %s, %s on %s/%s, %d cores, configuration %s",
			version, runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.GOMAXPROCS(0), config)
		return nil
	}}
}

// Process returns the check on the process at a URL.
func Process(client *http.Client, url, version string) Check {
	return Check{Name: ProcessCheck, Examine: func(ctx context.Context, found *Findings) error {
		var ready struct {
			Ready   *bool    `json:"ready"`
			Missing []string `json:"missing"`
		}
		err := get(ctx, client, url+"/readyz", &ready)
		var rejected *rejection
		switch {
		case isAbsent(err):
			found.Note(`start "smartfeed dev", or "smartfeed process" and "smartfeed serve"`, "no process listens on %s", url)
			return nil
		case errors.As(err, &rejected):
			found.Note("", "the process at %s does not report whether it is ready: %v", url, rejected)
			return nil
		case err != nil:
			return fmt.Errorf("%s is not smartfeed, or does not respond: %w", url, err)
		case ready.Ready == nil:
			return fmt.Errorf("%s is not smartfeed: its response has no field ready", url)
		}
		notReady(url, ready.Missing, found)
		state(ctx, client, url, version, found)
		return nil
	}, Advice: "if another program uses the port, stop it or choose another port with --http"}
}

// notReady reports why a process is not ready.
func notReady(address string, missing []string, found *Findings) {
	for _, one := range missing {
		found.Problem("wait if it has just started; otherwise check its log and docs/operations/runbooks.md#componentnotready", "%s is not ready: %s", address, one)
	}
}

// state reports the findings from /v1/status, about the responding process and the others.
func state(ctx context.Context, client *http.Client, url, version string, found *Findings) {
	var answer struct { // the parts of a status.Status that are reported, because other parts of another version may differ
		status.Summary
		Processes   []status.Summary     `json:"processes"`
		Unavailable []status.Unavailable `json:"unavailable"`
	}
	err := get(ctx, client, url+"/v1/status", &answer)
	if err != nil {
		found.Note("", "%s does not report its state: %v", url, reason(ctx, err))
		return
	}
	asked := answer.Summary
	asked.Address, asked.Missing = url, nil // reported from /readyz already
	reportProcess(asked, asked, version, found)
	others := answer.Processes[min(1, len(answer.Processes)):]
	for _, other := range others {
		reportProcess(other, asked, version, found)
	}
	for _, u := range answer.Unavailable {
		reportUnavailable(u, url, found)
	}
	switch {
	case len(*found) > 0:
	case len(others) > 0:
		found.OK("%s is ready, %s running; no problem with %s", url, command.Count(len(asked.Components), "component"), command.Count(len(others), "other"))
	default:
		found.OK("%s is ready, %s running", url, command.Count(len(asked.Components), "component"))
	}
}

// reportProcess reports the problems of a process. asked is the process that has responded.
func reportProcess(s, asked status.Summary, version string, found *Findings) {
	notReady(s.Address, s.Missing, found)
	const advice = "run one version"
	switch {
	case s.Version != version:
		found.Warn(advice, "%s runs version %s, this is %s", s.Address, s.Version, version)
	case s.Version != asked.Version:
		found.Warn(advice, "%s runs version %s, %s runs %s", s.Address, s.Version, asked.Address, asked.Version)
	}
	for _, p := range s.Components {
		if p.Restarts > 0 {
			found.Warn("check its log", "%s: %s was restarted %s: %s", s.Address, p.Name, command.Count(p.Restarts, "time"), p.LastError)
		}
	}
}

// reportUnavailable warns about information that the process could not get.
func reportUnavailable(u status.Unavailable, asked string, found *Findings) {
	advice := "see the checks kafka and access"
	if _, _, err := net.SplitHostPort(u.Source); err == nil {
		advice = "check its log, and that other processes reach it at that address (--advertise)"
	}
	found.Warn(advice, "%s could not get the state of %s: %s", asked, u.Source, u.Reason)
}

// rejection is a response that requires authentication.
type rejection struct{ status string }

func (r *rejection) Error() string { return r.status }

// maxStatusBytes limits a response: a status with a thousand partitions is a tenth of it.
const maxStatusBytes = 8 << 20

// get decodes the JSON of a response with any status: /readyz returns 503 with the parts that are not ready.
func get(ctx context.Context, client *http.Client, url string, into any) error {
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
		return &rejection{res.Status}
	case http.StatusOK, http.StatusServiceUnavailable:
	default:
		return fmt.Errorf("%s: %s", url, res.Status)
	}
	if kind := res.Header.Get("Content-Type"); !strings.HasPrefix(kind, "application/json") {
		return fmt.Errorf("%s: content type is %q", url, kind)
	}
	return json.NewDecoder(io.LimitReader(res.Body, maxStatusBytes)).Decode(into)
}

// isAbsent reports whether no process listens at the address.
func isAbsent(err error) bool {
	var op *net.OpError
	return errors.Is(err, syscall.ECONNREFUSED) && errors.As(err, &op) && op.Op == "dial"
}
