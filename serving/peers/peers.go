// Package peers sends requests to the process that owns a user's pools.
//
// The content generator reads the rows of the group pools locally, in the process that owns the user's partition. The
// metadata of the consumer group names that process. A process that accepts calls puts its address into its client id (see
// ClientID), and the brokers report the client id and the partitions of every member. Therefore Kafka is the only registry
// of processes, and a new owner is found as soon as the group knows it.
//
// A call is a POST of JSON below Path. A previous owner answers 421 Misdirected Request. After that answer, or if no
// process listens at the address, the Client reads the metadata again and retries. It gives up when its context ends,
// or after two seconds if the context has no deadline. A call carries the time that its caller waits, so that the
// called process has the same deadline. A request that may have been processed is never sent twice. If a chunk does not
// reach the caller, the generator settles it itself.
//
// Client.Processes requests the status of every process that a group reports as a member, each once.
//
// A peer can request the data of all users, so it proves by the secret that all processes share (Config) that it is a peer.
// The called process checks this before it handles a call; see auth.Peers and package api.
package peers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/smartfeed/smartfeed/internal/secure"
	"github.com/smartfeed/smartfeed/internal/settings"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// Config configures the calls between processes. It must be the same for all of them.
type Config struct {
	SecretFile string              `yaml:"secret_file" help:"file with the secret that all processes share, at least 32 bytes; empty: no authentication, only on loopback"`
	HTTPS      bool                `yaml:"https" help:"call other processes over HTTPS; they serve api.tls"`
	TLS        secure.Certificates `yaml:"tls"` // the commands that call a server use the same
	// Another process on the network can then read calls and forge answers.
	Insecure         bool     `yaml:"insecure" help:"permit calls over plain HTTP to addresses beyond loopback"`
	AllowedAddresses []string `yaml:"allowed_addresses" help:"permitted addresses of other processes: networks (10.0.0.0/8), host names, suffixes of host names (.pods.example.com); empty: all"`
}

// Validate reports every value that is out of bounds or contradicts another.
func (c Config) Validate() error {
	return errors.Join(settings.Under("tls", c.TLS.Validate()), c.validateAllow())
}

// Path is the prefix of the paths of calls between processes.
const Path = "/peer/"

// Limits of the bodies of a call.
const (
	maxRequest = 64 << 10 // bytes, as auth.MaxPeerBytes
	maxValues  = 1 << 18  // JSON values of an answer: a pool has at most 75 per candidate
	maxAnswer  = 16 << 20 // bytes; a pool of 1,000 candidates with the longest ids and facets is above any real one
)

// ClientID returns the client id of a process that accepts calls at address, host:port.
func ClientID(address string) string { return topics.DefaultClientID + "@" + address }

// addressOf returns the address in a client id, or "" if there is none.
func addressOf(clientID string) string {
	_, address, _ := strings.Cut(clientID, "@")
	return address
}

// handle adds the handler of a call to mux.
func (c call[Req, Resp]) handle(mux *http.ServeMux, handle func(context.Context, Req) (Resp, error)) {
	mux.HandleFunc("POST "+Path+string(c), func(w http.ResponseWriter, r *http.Request) {
		var req Req
		if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxRequest)).Decode(&req); err != nil {
			http.Error(w, "decode request: "+err.Error(), http.StatusBadRequest)
			return
		}
		ctx, cancel, err := callerContext(r)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		defer cancel()
		resp, err := handle(ctx, req)
		if err != nil {
			status := statusOf(err)
			if status == http.StatusNotFound {
				w.Header().Set(unknownFeed, "true")
			}
			http.Error(w, err.Error(), status)
			return
		}
		body, err := json.Marshal(resp)
		if err != nil {
			http.Error(w, "encode answer: "+err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(body) // the caller may have disconnected
	})
}

// waitsFor is the header with the time that the caller of a call waits, in the format of time.Duration. It is a
// duration and not a point in time, because clocks differ.
const waitsFor = "X-Waits-For"

// callerContext returns the context of a call, which ends when its caller stops waiting.
func callerContext(r *http.Request) (context.Context, context.CancelFunc, error) {
	text := r.Header.Get(waitsFor)
	if text == "" {
		return r.Context(), func() {}, nil
	}
	wait, err := time.ParseDuration(text)
	if err != nil {
		return nil, nil, fmt.Errorf("header %s: %w", waitsFor, err)
	}
	ctx, cancel := context.WithTimeout(r.Context(), wait)
	return ctx, cancel, nil
}

// unknownFeed is the header that marks a 404 as schemas.ErrUnknownFeed. Any other server at an address may also answer 404.
const unknownFeed = "X-Unknown-Feed"

// statusOf and errorOf are inverse to each other for the errors that callers distinguish.
func statusOf(err error) int {
	switch {
	case errors.Is(err, schemas.ErrNotOwner):
		return http.StatusMisdirectedRequest
	case errors.Is(err, schemas.ErrUnknownFeed):
		return http.StatusNotFound
	case errors.Is(err, context.DeadlineExceeded): // the caller's deadline, which may arrive here just before it does at the caller
		return http.StatusGatewayTimeout
	}
	return http.StatusServiceUnavailable
}

func errorOf(resp *http.Response) error {
	const enough = 1 << 10
	text, err := io.ReadAll(io.LimitReader(resp.Body, enough))
	if err != nil {
		return fmt.Errorf("read error answer: %w", err)
	}
	said := strings.TrimSpace(string(text))
	switch {
	case resp.StatusCode == http.StatusMisdirectedRequest:
		return fmt.Errorf("%s: %w", said, schemas.ErrNotOwner)
	case resp.StatusCode == http.StatusNotFound && resp.Header.Get(unknownFeed) != "":
		return fmt.Errorf("%s: %w", said, schemas.ErrUnknownFeed)
	case resp.StatusCode == http.StatusGatewayTimeout:
		return fmt.Errorf("%s: %w", said, context.DeadlineExceeded)
	}
	return fmt.Errorf("%s: %s", resp.Status, said)
}
