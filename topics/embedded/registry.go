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

// registry is srfake on a port, with ids that outlive the process: every registration is in the file before anybody hears
// of it, and the next start registers the same schemas in the same order. It only grows: what would take a schema away,
// or change modes that the file does not hold, is refused, and so are pages of other sites in a browser.
type registry struct {
	path   string
	disk   disk
	log    *slog.Logger
	addr   string
	server *http.Server
	failed chan error // what ended the server, at most one
	served sync.WaitGroup

	mu      sync.RWMutex // one registration at a time: the file is in the order of the ids
	fake    *srfake.Registry
	entries []entry
}

// entry is one registration. Equal schemas under two subjects share their id.
type entry struct {
	Subject string    `json:"subject"`
	ID      int       `json:"id"`
	Schema  sr.Schema `json:"schema"`
}

// openRegistry reads the file and serves on l.
func openRegistry(path string, d disk, l net.Listener, log *slog.Logger) (*registry, error) {
	r := &registry{path: path, disk: d, log: log, addr: l.Addr().String(), failed: make(chan error, 1)}
	if err := r.load(); err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /subjects/{subject}/versions", r.register)
	mux.HandleFunc("POST /subjects/{subject}", r.tell) // a look-up
	mux.HandleFunc("POST /compatibility/", r.tell)
	mux.HandleFunc("GET /", r.tell)
	mux.HandleFunc("/", refuse) // also what registers by another path, in a context
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

// load reads the file, and fails when an id would come out different.
func (r *registry) load() error {
	_, err := readJSON(r.path, &r.entries)
	if err == nil {
		r.fake, err = fakeOf(r.entries)
	}
	return err
}

// fakeOf returns a fake that knows the entries and nothing else.
func fakeOf(entries []entry) (*srfake.Registry, error) {
	fake := srfake.NewRegistry(srfake.WithGlobalCompat(sr.CompatBackwardTransitive))
	for i, e := range entries {
		id, _, err := fake.RegisterSchema(e.Subject, e.Schema)
		if err != nil {
			return nil, fmt.Errorf("entry %d, subject %s: %w", i, e.Subject, err)
		}
		if id != e.ID {
			return nil, fmt.Errorf("entry %d, subject %s: schema id would be %d and was %d: records written under the old id could not be read; restore the file",
				i, e.Subject, id, e.ID)
		}
	}
	return fake, nil
}

// tell answers whoever asks for schemas.
func (r *registry) tell(w http.ResponseWriter, req *http.Request) {
	if _, ok := take(w, req); ok {
		r.look(w, req).send(w)
	}
}

// look has the fake answer, but not while a schema is being registered: who sees one that the file does not have yet would
// write under its id.
func (r *registry) look(w http.ResponseWriter, req *http.Request) *heldAnswer {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.ask(w, req)
}

// register has the fake answer, and holds the answer back until the file has the schema.
func (r *registry) register(w http.ResponseWriter, req *http.Request) {
	body, ok := take(w, req)
	if !ok {
		return
	}
	answer, err := r.accept(w, req, body)
	if err != nil {
		r.log.Error("embedded registry: a schema is not stored", "error", err)
		http.Error(w, `{"error_code":50001,"message":"the schema could not be stored"}`, http.StatusInternalServerError)
		return
	}
	answer.send(w)
}

// accept has the fake and the file take a schema in, both or neither.
func (r *registry) accept(w http.ResponseWriter, req *http.Request, body []byte) (answer *heldAnswer, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	answer = r.ask(w, req)
	if answer.status == http.StatusOK {
		err = r.remember(req.PathValue("subject"), body, answer.body.Bytes())
	}
	if err != nil || answer.status != http.StatusOK {
		r.forget()
	}
	return answer, err
}

// take reads a request whole, so that nobody waits for one who sends slowly; not ok: it is answered already.
func take(w http.ResponseWriter, req *http.Request) (body []byte, ok bool) {
	body, err := io.ReadAll(http.MaxBytesReader(w, req.Body, 1<<20))
	if err != nil {
		http.Error(w, `{"error_code":422,"message":"schema over 1 MiB"}`, http.StatusRequestEntityTooLarge)
		return nil, false
	}
	req.Body = io.NopCloser(bytes.NewReader(body))
	return body, true
}

// ask has the fake answer. The lock must be held.
func (r *registry) ask(w http.ResponseWriter, req *http.Request) *heldAnswer {
	answer := &heldAnswer{header: w.Header(), status: http.StatusOK}
	r.fake.Handler().ServeHTTP(answer, req)
	return answer
}

// forget takes back what the fake has made of a registration that is not in the file. It may have spent an id on it, even
// where it refused it, and at the next start the ids behind that would come out lower than the file has them.
func (r *registry) forget() {
	fake, err := fakeOf(r.entries)
	if err == nil {
		r.fake = fake
		return
	}
	select {
	case r.failed <- fmt.Errorf("take back a registration: %w", err):
	default: // the server ends already
	}
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
	if err := r.disk.replace(r.path, data); err != nil {
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

// send lets the answer leave.
func (a *heldAnswer) send(w http.ResponseWriter) {
	w.WriteHeader(a.status)
	_, _ = w.Write(a.body.Bytes()) // the asker may be gone
}
