package schemas

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
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
	requests singleflight.Group

	mu         sync.Mutex
	found      idCache
	missing    idCache
	budget     int       // rest of the budget
	refilledAt time.Time // when the budget was last refilled
}

func newWriters() *writers {
	return &writers{found: newIDCache(maxWriters), missing: newIDCache(maxMissing), budget: missBurst}
}

// get returns the schema of an id. It calls request if the id is not cached, once for all concurrent callers. It returns the
// error of request, or errBudget.
func (s *writers) get(id uint32, now func() time.Time, request func(id uint32) (writer, error)) (writer, error) {
	if w, ok := s.cached(id, now); ok {
		return w, nil
	}
	got, err, _ := s.requests.Do(strconv.FormatUint(uint64(id), 10), func() (any, error) {
		if w, ok := s.cached(id, now); ok { // another request has just ended
			return w, nil
		}
		if !s.takeRequest(now()) {
			return writer{}, errBudget
		}
		w, err := request(id)
		s.store(id, w, err)
		return w, err
	})
	return got.(writer), err
}

// cached returns the cached result of an id.
func (s *writers) cached(id uint32, now func() time.Time) (writer, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if w, ok := s.found.all[id]; ok {
		return w, true
	}
	w, ok := s.missing.all[id]
	return w, ok && now().Before(w.until)
}

// takeRequest takes one request from the budget. It returns false if the budget is spent.
func (s *writers) takeRequest(now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
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
func (s *writers) store(id uint32, w writer, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case err != nil:
		s.budget++
	case !w.until.IsZero():
		s.missing.put(id, w)
	default:
		if len(s.found.all) < maxWriters {
			s.budget++
		}
		s.found.put(id, w)
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
