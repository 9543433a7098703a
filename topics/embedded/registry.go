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
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/sr"
	"github.com/twmb/franz-go/pkg/sr/srfake"

	"github.com/smartfeed/smartfeed/internal/foreign"
)

// registry serves srfake on a port, with ids that persist. Every registration is in the file before a client sees it, and
// the next start registers the same schemas in the same order. Schemas are never deleted. The registry rejects requests
// that would delete a schema or change modes that the file does not store. It also rejects browser requests from pages of
// other sites.
type registry struct {
	path   string
	disk   disk
	log    *slog.Logger
	addr   string
	server *http.Server
	failed chan error // the error that stopped the server, at most one
	served sync.WaitGroup

	mu      sync.RWMutex // one registration at a time: the file is in the order of the ids
	fake    *srfake.Registry
	entries []entry
}

// entry is one registration. Equal schemas under two subjects share an id.
type entry struct {
	Subject string    `json:"subject"`
	ID      int       `json:"id"`
	Schema  sr.Schema `json:"schema"`
}

// openRegistry reads the file and serves on l.
func openRegistry(path string, d disk, l net.Listener, log *slog.Logger) (*registry, error) {
	r := &registry{path: path, disk: d, log: log, addr: l.Addr().String(), failed: make(chan error, 1)}
	_, err := readJSON(path, &r.entries)
	if err == nil {
		r.fake, err = fakeOf(r.entries)
	}
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /subjects/{subject}/versions", r.register)
	mux.HandleFunc("POST /subjects/{subject}", r.serveRead) // a look-up
	mux.HandleFunc("POST /compatibility/", r.serveRead)
	mux.HandleFunc("GET /", r.serveRead)
	mux.HandleFunc("/", reject) // also registrations by another path, in a context
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
		err = r.server.Close() // a client sends slowly
	}
	r.served.Wait()
	return err
}

// fakeOf returns a fake registry with only the entries. It returns an error if the id of a schema would change.
func fakeOf(entries []entry) (*srfake.Registry, error) {
	fake := srfake.NewRegistry(srfake.WithGlobalCompat(sr.CompatBackwardTransitive))
	for i, e := range entries {
		id, _, err := fake.RegisterSchema(e.Subject, e.Schema)
		if err != nil {
			return nil, fmt.Errorf("entry %d, subject %s: %w", i, e.Subject, err)
		}
		if id != e.ID {
			return nil, fmt.Errorf("entry %d, subject %s: schema id would change from %[4]d to %[3]d, and records with the old id would be unreadable: restore the file",
				i, e.Subject, id, e.ID)
		}
	}
	return fake, nil
}

// serveRead answers requests that read schemas.
func (r *registry) serveRead(w http.ResponseWriter, req *http.Request) {
	if _, ok := readBody(w, req); ok {
		r.forwardRead(w, req).send(w)
	}
}

// forwardRead forwards a request to the fake, but not during a registration. A client that reads a schema before the file
// contains it would write records with its id.
func (r *registry) forwardRead(w http.ResponseWriter, req *http.Request) *bufferedResponse {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.forward(w, req)
}

// register forwards a registration to the fake, and sends the answer once the file has the schema.
func (r *registry) register(w http.ResponseWriter, req *http.Request) {
	body, ok := readBody(w, req)
	if !ok {
		return
	}
	answer, err := r.accept(w, req, body)
	if err != nil {
		r.log.Error("embedded registry: schema not stored", "error", err)
		http.Error(w, `{"error_code":50001,"message":"the schema could not be stored"}`, http.StatusInternalServerError)
		return
	}
	answer.send(w)
}

// accept registers a schema in both the fake and the file, or in neither.
func (r *registry) accept(w http.ResponseWriter, req *http.Request, body []byte) (answer *bufferedResponse, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	answer = r.forward(w, req)
	if answer.status == http.StatusOK {
		err = r.persist(req.PathValue("subject"), body, answer.body.Bytes())
	}
	if err != nil || answer.status != http.StatusOK {
		r.rollBack()
	}
	return answer, err
}

// readBody reads the request before the lock is taken, because a client can be slow. If it returns false, it has responded with
// an error.
func readBody(w http.ResponseWriter, req *http.Request) (body []byte, ok bool) {
	body, err := io.ReadAll(http.MaxBytesReader(w, req.Body, 1<<20))
	if err != nil {
		http.Error(w, `{"error_code":422,"message":"schema over 1 MiB"}`, http.StatusRequestEntityTooLarge)
		return nil, false
	}
	req.Body = io.NopCloser(bytes.NewReader(body))
	return body, true
}

// forward forwards a request to the fake. The lock must be held.
func (r *registry) forward(w http.ResponseWriter, req *http.Request) *bufferedResponse {
	answer := &bufferedResponse{header: w.Header(), status: http.StatusOK}
	r.fake.Handler().ServeHTTP(answer, req)
	return answer
}

// rollBack undoes a registration in the fake that is not in the file. The fake may have used an id for it, even if it
// rejected it. After the next start, later ids would then be lower than in the file.
func (r *registry) rollBack() {
	fake, err := fakeOf(r.entries)
	if err == nil {
		r.fake = fake
		return
	}
	select {
	case r.failed <- fmt.Errorf("roll back a registration: %w", err):
	default: // the server is already stopping
	}
}

// persist adds a new registration to the file.
func (r *registry) persist(subject string, request, answer []byte) error {
	e := entry{Subject: subject}
	if err := json.Unmarshal(request, &e.Schema); err != nil {
		return fmt.Errorf("read registration of %s: %w", subject, err)
	}
	var registered struct{ ID int }
	if err := json.Unmarshal(answer, &registered); err != nil {
		return fmt.Errorf("read response for %s: %w", subject, err)
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
	if err := r.disk.replace(r.path, data); err != nil {
		return fmt.Errorf("write %s: %w", r.path, err)
	}
	r.entries = append(r.entries, e)
	return nil
}

// reject rejects requests that would delete schemas or change settings.
func reject(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/vnd.schemaregistry.v1+json")
	w.WriteHeader(http.StatusMethodNotAllowed)
	_, _ = io.WriteString(w, `{"error_code":40501,"message":"the embedded registry keeps every schema and has no settings"}`)
}

// bufferedResponse buffers the status and the body of a response until send.
type bufferedResponse struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (a *bufferedResponse) Header() http.Header         { return a.header }
func (a *bufferedResponse) WriteHeader(status int)      { a.status = status }
func (a *bufferedResponse) Write(p []byte) (int, error) { return a.body.Write(p) }

// send writes the answer.
func (a *bufferedResponse) send(w http.ResponseWriter) {
	w.WriteHeader(a.status)
	_, _ = w.Write(a.body.Bytes()) // the client may have disconnected
}
