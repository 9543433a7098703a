package schemas

import (
	"context"
	"errors"
	"sync"
	"time"
)

const (
	missingTTL = 10 * time.Second // after this time, an id that the registry does not have is requested again
	maxWriters = 1024             // cached schemas; a further one evicts the oldest
	maxMissing = 4096             // cached ids that the registry does not have; evicted likewise

	// A process requests maxWriters schemas, and missBurst more plus one per missInterval. A producer that writes random
	// ids costs a partition some milliseconds per second, and the registry one request per second from each process and
	// topic.
	missBurst    = 20
	missInterval = time.Second
)

// errBudget is returned when a schema was not looked up because the budget is spent.
var errBudget = errors.New("schema not requested: the registry did not have too many of the last ids; retry the record later")

// writers caches the schemas of a serde's records other than its own, by id. Ids that the registry does not have are cached
// separately: they must not evict existing schemas. It is safe for concurrent use.
type writers struct {
	mu         sync.Mutex
	found      idCache
	missing    idCache
	inFlight   map[uint32]*lookup
	budget     int       // rest of the budget
	refilledAt time.Time // when misses was last refilled
}

// lookup is a request in flight.
type lookup struct {
	done   chan struct{} // closed when the other fields are set
	writer writer
	err    error
}

func newWriters() *writers {
	return &writers{found: newIDCache(maxWriters), missing: newIDCache(maxMissing), inFlight: map[uint32]*lookup{}, budget: missBurst}
}

// get returns the schema of an id. It calls request if the id is not cached, once for all concurrent callers. It returns the
// error of request, or errBudget.
func (s *writers) get(id uint32, now func() time.Time, request func(id uint32) (writer, error)) (writer, error) {
	s.mu.Lock()
	if w, ok := s.cached(id, now); ok {
		s.mu.Unlock()
		return w, nil
	}
	l := s.inFlight[id]
	if l != nil {
		s.mu.Unlock()
		<-l.done
		return l.writer, l.err
	}
	if !s.takeRequest(now()) {
		s.mu.Unlock()
		return writer{}, errBudget
	}
	l = &lookup{done: make(chan struct{})}
	s.inFlight[id] = l
	s.mu.Unlock()
	defer close(l.done)
	l.writer, l.err = request(id)
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.inFlight, id)
	s.store(id, l)
	return l.writer, l.err
}

// cached returns the cached result of an id.
func (s *writers) cached(id uint32, now func() time.Time) (writer, bool) {
	if w, ok := s.found.all[id]; ok {
		return w, true
	}
	w, ok := s.missing.all[id]
	return w, ok && now().Before(w.until)
}

// takeRequest takes one request from the budget. It returns false if the budget is spent.
func (s *writers) takeRequest(now time.Time) bool {
	if n := int(now.Sub(s.refilledAt) / missInterval); n > 0 {
		s.budget, s.refilledAt = min(s.budget+n, missBurst), now
	}
	if s.budget == 0 {
		return false
	}
	s.budget--
	return true
}

// store caches a result. It returns the request to the budget if the schema exists and the cache is not full, because a
// topic may have records of many versions. It also does so if the registry was unavailable: valid records must not become
// bad records.
func (s *writers) store(id uint32, l *lookup) {
	switch {
	case l.err != nil:
		s.budget++
	case !l.writer.until.IsZero():
		s.missing.put(id, l.writer)
	default:
		if len(s.found.all) < maxWriters {
			s.budget++
		}
		s.found.put(id, l.writer)
	}
}

// idCache caches the newest of some ids.
type idCache struct {
	limit int
	all   map[uint32]writer
	order []uint32 // in order of arrival
}

func newIDCache(most int) idCache { return idCache{limit: most, all: map[uint32]writer{}} }

func (m *idCache) put(id uint32, w writer) {
	if _, again := m.all[id]; !again {
		if len(m.order) == m.limit {
			delete(m.all, m.order[0])
			m.order = m.order[1:]
		}
		m.order = append(m.order, id)
	}
	m.all[id] = w
}

// writer is a schema other than the serde's own.
type writer struct {
	schema *node
	step   step
	err    error     // the error for its records; a *BadRecordError
	until  time.Time // when err expires; zero: never
}

// rewrite returns body in the reader's schema.
func (w writer) rewrite(body []byte) ([]byte, error) {
	if w.err != nil {
		return nil, w.err
	}
	if err := conform(w.schema, body); err != nil {
		return nil, err
	}
	return w.step(&cursor{b: body}, nil)
}

// requestSchema requests a schema from the source.
func (s *framing) requestSchema(id uint32) (writer, error) {
	ctx, cancel := context.WithTimeout(context.Background(), requestTimeout)
	defer cancel()
	text, err := s.source.SchemaByID(ctx, int(id))
	var bad *BadRecordError
	switch {
	case errors.Is(err, ErrNoSchema):
		return writer{err: ErrNoSchema, until: time.Now().Add(missingTTL)}, nil
	case errors.As(err, &bad):
		return writer{err: bad}, nil
	case err != nil:
		return writer{}, err
	}
	return s.newWriter(text), nil
}

// newWriter returns the writer for a schema.
func (s *framing) newWriter(text string) writer {
	n, err := parseSchema(text)
	if err != nil {
		return writer{err: err}
	}
	step, _ := resolve(s.reader, n) // the step fails for values with a problem
	return writer{schema: n, step: step}
}
