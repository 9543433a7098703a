package embedded

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/sr"
	"github.com/twmb/franz-go/pkg/sr/srfake"

	"github.com/smartfeed/smartfeed/internal/foreign"
)

// registry is srfake on a port, with ids that outlive the process: every registration is in the file before it is
// answered, and the next start registers the same schemas in the same order. It only grows: what would take a schema
// away, or change modes that the file does not hold, is refused, and so are pages of other sites in a browser.
type registry struct {
	path   string
	sync   bool // the file survives a power failure
	log    *slog.Logger
	fake   *srfake.Registry
	addr   string
	server *http.Server
	failed chan error // what ended the server, at most one
	served sync.WaitGroup

	mu      sync.Mutex // one registration at a time: the file is in the order of the ids
	entries []entry
}

// entry is one registration. Equal schemas under two subjects share their id.
type entry struct {
	Subject string    `json:"subject"`
	ID      int       `json:"id"`
	Schema  sr.Schema `json:"schema"`
}

// openRegistry reads the file and serves on l.
func openRegistry(path string, sync bool, l net.Listener, log *slog.Logger) (*registry, error) {
	r := &registry{path: path, sync: sync, log: log, fake: srfake.NewRegistry(srfake.WithGlobalCompat(sr.CompatBackwardTransitive)), addr: l.Addr().String(), failed: make(chan error, 1)}
	if err := r.load(); err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /subjects/{subject}/versions", r.register)
	mux.HandleFunc("POST /", r.fake.Handler().ServeHTTP) // look-ups and compatibility checks
	mux.HandleFunc("GET /", r.fake.Handler().ServeHTTP)
	mux.HandleFunc("/", refuse)
	r.server = &http.Server{
		Handler:           foreign.RefuseNames(foreign.RefusePages(mux, foreign.Change)),
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      10 * time.Second,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	r.served.Go(func() {
		if err := r.server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			r.failed <- fmt.Errorf("serve registry: %w", err)
		}
	})
	return r, nil
}

func (r *registry) url() string { return "http://" + r.addr }

func (r *registry) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	err := r.server.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		err = r.server.Close() // somebody sends slowly
	}
	r.served.Wait()
	return err
}

// load registers what the file holds, and fails when an id would come out different.
func (r *registry) load() error {
	data, err := os.ReadFile(r.path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, &r.entries); err != nil {
		return fmt.Errorf("not a list of schemas: %w", err)
	}
	for i, e := range r.entries {
		id, _, err := r.fake.RegisterSchema(e.Subject, e.Schema)
		if err != nil {
			return fmt.Errorf("entry %d, subject %s: %w", i, e.Subject, err)
		}
		if id != e.ID {
			return fmt.Errorf("entry %d, subject %s: schema id would be %d and was %d: records written under the old id could not be read; restore the file",
				i, e.Subject, id, e.ID)
		}
	}
	return nil
}

// register has the fake answer, and holds the answer back until the file has the schema.
func (r *registry) register(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, req.Body, 1<<20))
	if err != nil {
		http.Error(w, `{"error_code":422,"message":"schema over 1 MiB"}`, http.StatusRequestEntityTooLarge)
		return
	}
	req.Body = io.NopCloser(bytes.NewReader(body))
	answer := &heldAnswer{header: w.Header(), status: http.StatusOK}

	r.mu.Lock()
	defer r.mu.Unlock()
	r.fake.Handler().ServeHTTP(answer, req)
	if answer.status == http.StatusOK {
		if err := r.remember(req.PathValue("subject"), body, answer.body.Bytes()); err != nil {
			r.log.Error("embedded registry: a schema is not stored", "error", err)
			http.Error(w, `{"error_code":50001,"message":"the schema could not be stored"}`, http.StatusInternalServerError)
			return
		}
	}
	w.WriteHeader(answer.status)
	_, _ = w.Write(answer.body.Bytes()) // the asker may be gone
}

// remember appends a registration that is new and replaces the file.
func (r *registry) remember(subject string, request, answer []byte) error {
	e := entry{Subject: subject}
	if err := json.Unmarshal(request, &e.Schema); err != nil {
		return fmt.Errorf("read registration of %s: %w", subject, err)
	}
	var registered struct{ ID int }
	if err := json.Unmarshal(answer, &registered); err != nil {
		return fmt.Errorf("read answer for %s: %w", subject, err)
	}
	e.ID = registered.ID
	for _, old := range r.entries {
		if old.Subject == e.Subject && old.ID == e.ID {
			return nil
		}
	}
	data, err := json.MarshalIndent(append(r.entries, e), "", "  ")
	if err != nil {
		return fmt.Errorf("write %s: %w", r.path, err)
	}
	if err := (disk{sync: r.sync}).replace(r.path, data); err != nil {
		return fmt.Errorf("write %s: %w", r.path, err)
	}
	r.entries = append(r.entries, e)
	return nil
}

// refuse answers what would make the registry forget.
func refuse(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/vnd.schemaregistry.v1+json")
	w.WriteHeader(http.StatusMethodNotAllowed)
	_, _ = io.WriteString(w, `{"error_code":40501,"message":"the embedded registry keeps every schema and has no settings"}`)
}

// heldAnswer keeps status and body of an answer until it may leave.
type heldAnswer struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (a *heldAnswer) Header() http.Header         { return a.header }
func (a *heldAnswer) WriteHeader(status int)      { a.status = status }
func (a *heldAnswer) Write(p []byte) (int, error) { return a.body.Write(p) }
