// Package peers lets a process that serves ask the one that has a user's pools.
//
// The content generator reads the rows of the group pools where they are, in the process that owns the user's partition.
// Which one that is the group's own metadata say: a process that can be asked names its address in its client id (see
// ClientID), and the brokers tell every member's client id and partitions. So there is no registry of processes beside
// Kafka, and a process that takes a partition over is found as soon as the group knows it.
//
// A call is one POST of JSON below Path. The owner of a moment ago answers 421 Misdirected Request; then, or when
// nothing listens at the address, the Client reads the metadata again and asks once more, until its context ends, or for
// two seconds where that has no deadline. It says how long its caller waits, so that whoever works it off has the same
// deadline. A request that may have been worked off is never sent twice: a chunk that was handed out and lost is settled by
// the generator itself.
//
// How a process is (Client.Processes) is asked of every one that a group names as its member, each once.
//
// A peer may ask for everybody's, so it proves that it is one by the secret that all processes share (Config). Who answers
// has that checked before anything of a call is read; see auth.Peers and package api.
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
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// Config is how processes of the product talk to one another, the same for all of them.
type Config struct {
	SecretFile string              `yaml:"secret_file"` // with the secret that they share, at least 32 bytes; "": nobody is asked, on loopback
	HTTPS      bool                `yaml:"https"`       // they have api.tls; default false
	TLS        secure.Certificates `yaml:"tls"`         // whom to believe then; the commands that ask a server do the same
	// Insecure permits calls over plain HTTP to addresses beyond loopback: another process on the network can then read calls
	// and forge answers. Default false.
	Insecure bool `yaml:"insecure"`
	// Allow lists where other processes may be: networks (10.0.0.0/8), host names, and suffixes of host names
	// (.pods.example.com). Empty: anywhere. Default empty.
	Allow []string `yaml:"allow"`
}

// Validate reports every value that is out of its bounds or does not go with the others.
func (c Config) Validate() error {
	return errors.Join(secure.Under("tls", c.TLS.Validate()), c.validateAllow())
}

// Path is below which a process answers its peers.
const Path = "/peer/"

// Bounds of a call's bodies, bytes.
const (
	maxRequest = 64 << 10 // as auth.MaxPeerBytes
	maxValues  = 1 << 18  // JSON values of an answer: a pool has at most 75 a candidate
	maxAnswer  = 16 << 20 // a pool of 1,000 candidates of the longest ids and facets is above any real one
)

// Generator is what peers ask: the content generator of the pools that are here. It fails with an error that is
// schemas.ErrElsewhere for users whose pools are not.
type Generator interface {
	Chunk(ctx context.Context, r schemas.ChunkRequest) (*schemas.Chunk, error)
	Settle(user schemas.UserID, served string, o schemas.Outcome)
	Waiting(ctx context.Context, user schemas.UserID) (int, error)
	Pool(ctx context.Context, user schemas.UserID, source schemas.Source, limit int) (*schemas.Pool, error)
	Why(ctx context.Context, r schemas.WhyRequest) (*schemas.Why, error)
	FeedState(ctx context.Context, user schemas.UserID, feed string) (*schemas.FeedState, error)
}

// Neighbours is what else peers ask: which pins and interests go together, of the partitions that are here.
type Neighbours interface {
	Neighbours(ctx context.Context, of schemas.ID, most int) ([]schemas.RelatedItem, error)
}

// ClientID is the client id of a process that can be asked at address, host:port.
func ClientID(address string) string { return topics.DefaultClientID + "@" + address }

// addressOf returns the address in a client id, "" if it holds none.
func addressOf(clientID string) string {
	_, address, _ := strings.Cut(clientID, "@")
	return address
}

// The calls, and what they carry beside what schemas has.
const (
	callChunk   = "chunk"
	callSettle  = "settle"
	callWaiting = "waiting"
	callPool    = "pool"
	callWhy     = "why"
	callState   = "state"
	callRelated = "related"
)

type settlement struct {
	User    schemas.UserID  `json:"user"`
	Served  string          `json:"served"`
	Outcome schemas.Outcome `json:"outcome"`
}

type waitingRequest struct {
	User schemas.UserID `json:"user"`
}

type waitingAnswer struct {
	Count int `json:"count"`
}

type poolRequest struct {
	User   schemas.UserID `json:"user"`
	Source schemas.Source `json:"source"`
	Limit  int            `json:"limit"`
}

type stateRequest struct {
	User schemas.UserID `json:"user"`
	Feed string         `json:"feed"`
}

type relatedRequest struct {
	Of   schemas.ID `json:"of"`
	Most int        `json:"most"`
}

// Here is what this process can be asked for; what is nil is not here at all.
type Here struct {
	Generator  Generator
	Neighbours Neighbours
	Retries    Retries
	Interests  Interests
	Known      Known
	Process    Process
}

// Handler answers the calls of peers, below Path.
func Handler(here Here) http.Handler {
	mux := http.NewServeMux()
	if here.Generator != nil {
		handleGenerator(mux, here.Generator)
	}
	if here.Neighbours != nil {
		mux.Handle("POST "+Path+callRelated, answer(func(ctx context.Context, r relatedRequest) ([]schemas.RelatedItem, error) {
			return here.Neighbours.Neighbours(ctx, r.Of, r.Most)
		}))
	}
	if here.Retries != nil {
		handleRetries(mux, here.Retries)
	}
	if here.Interests != nil {
		handleInterests(mux, here.Interests)
	}
	if here.Known != nil {
		handleKnown(mux, here.Known)
	}
	if here.Process != nil {
		handleProcess(mux, here.Process)
	}
	return mux
}

func handleGenerator(mux *http.ServeMux, g Generator) {
	mux.Handle("POST "+Path+callChunk, answer(func(ctx context.Context, r schemas.ChunkRequest) (*schemas.Chunk, error) { return whole(ctx, g, r) }))
	mux.Handle("POST "+Path+callSettle, answer(func(_ context.Context, r settlement) (struct{}, error) {
		g.Settle(r.User, r.Served, r.Outcome)
		return struct{}{}, nil
	}))
	mux.Handle("POST "+Path+callWaiting, answer(func(ctx context.Context, r waitingRequest) (waitingAnswer, error) {
		n, err := g.Waiting(ctx, r.User)
		return waitingAnswer{n}, err
	}))
	mux.Handle("POST "+Path+callPool, answer(func(ctx context.Context, r poolRequest) (*schemas.Pool, error) {
		return g.Pool(ctx, r.User, r.Source, r.Limit)
	}))
	mux.Handle("POST "+Path+callWhy, answer(g.Why))
	mux.Handle("POST "+Path+callState, answer(func(ctx context.Context, r stateRequest) (*schemas.FeedState, error) {
		return g.FeedState(ctx, r.User, r.Feed)
	}))
}

// whole is a chunk with all that it could recall here: who asks cannot.
func whole(ctx context.Context, g Generator, r schemas.ChunkRequest) (*schemas.Chunk, error) {
	chunk, err := g.Chunk(ctx, r)
	if err == nil {
		chunk.Recent, err = chunk.Remembered(ctx)
	}
	return chunk, err
}

// answer makes a handler of a call.
func answer[Req, Resp any](call func(context.Context, Req) (Resp, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var req Req
		if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxRequest)).Decode(&req); err != nil {
			http.Error(w, "decode request: "+err.Error(), http.StatusBadRequest)
			return
		}
		ctx, cancel, err := waited(r)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		defer cancel()
		resp, err := call(ctx, req)
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
		_, _ = w.Write(body) // the caller may have gone
	})
}

// waitsFor is the header of a call that says how long its caller waits, as time.Duration writes it: a time, and not a
// moment, because clocks differ.
const waitsFor = "X-Waits-For"

// waited is the context of a call, which ends when nobody waits for it any more.
func waited(r *http.Request) (context.Context, context.CancelFunc, error) {
	text := r.Header.Get(waitsFor)
	if text == "" { // from a process of a former release
		return r.Context(), func() {}, nil
	}
	wait, err := time.ParseDuration(text)
	if err != nil {
		return nil, nil, fmt.Errorf("header %s: %w", waitsFor, err)
	}
	ctx, cancel := context.WithTimeout(r.Context(), wait)
	return ctx, cancel, nil
}

// unknownFeed is the header of a 404 that is schemas.ErrUnknownFeed: whatever else answers at an address has 404s, too.
const unknownFeed = "X-Unknown-Feed"

// statusOf and errorOf are each other's inverse for the errors that a caller tells apart.
func statusOf(err error) int {
	switch {
	case errors.Is(err, schemas.ErrElsewhere):
		return http.StatusMisdirectedRequest
	case errors.Is(err, schemas.ErrUnknownFeed):
		return http.StatusNotFound
	case errors.Is(err, context.DeadlineExceeded): // the caller's, who may hear of it just before its own
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
		return fmt.Errorf("%s: %w", said, schemas.ErrElsewhere)
	case resp.StatusCode == http.StatusNotFound && resp.Header.Get(unknownFeed) != "":
		return fmt.Errorf("%s: %w", said, schemas.ErrUnknownFeed)
	case resp.StatusCode == http.StatusGatewayTimeout:
		return fmt.Errorf("%s: %w", said, context.DeadlineExceeded)
	}
	return fmt.Errorf("%s: %s", resp.Status, said)
}
