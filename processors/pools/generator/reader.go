package generator

import (
	"errors"
	"slices"

	"github.com/smartfeed/smartfeed/processors/pools/layout"
	"github.com/smartfeed/smartfeed/schemas"
)

// reader is a view of a user's rows together with the pulled pins.
type reader struct {
	*layout.View
	pulled *Pulled // nil: none
}

// pool returns the n best candidates of a source. They are valid until the next call.
func (v *reader) pool(source schemas.Source, n int) (best []layout.Candidate, err error) {
	defer func() { v.Buffers.Best = best }()
	into := v.Buffers.Best[:0]
	l, err := v.Buffers.Iterate(v, source, n)
	if err != nil {
		return nil, err
	}
	next := l.Take
	if v.pulled != nil {
		m, done := v.pulled.merge(l, v.Viewer.Follows)
		defer done()
		next = m.next
	}
	best, err = v.Best(source, into, next, n)
	return best, errors.Join(err, l.Err)
}

// candidates returns an iterator over all candidates of a source, including hidden and seen ones, best first. next returns
// nil at the end. The caller must call done.
func (v *reader) candidates(source schemas.Source) (next func() *layout.Candidate, done func(), err error) {
	l, err := v.Buffers.Iterate(v, source, 0)
	if err == nil {
		err = l.ReadMore()
	}
	if err != nil {
		return nil, nil, err
	}
	pulled := v.pulled
	if pulled == nil {
		pulled = new(Pulled)
	}
	m, done := pulled.merge(l, v.Viewer.Follows)
	return m.next, done, nil
}

// sources returns the sources that a user has or had candidates of, including pulled ones, by name.
func (v *reader) sources() ([]schemas.Source, error) {
	list, err := layout.Sources(v)
	if err != nil || v.pulled == nil {
		return list, err
	}
	return v.pulled.sources(v.Viewer.Follows, list), nil
}

// sourcesWith returns the sources and those of the offers, by name.
func (v *reader) sourcesWith(o offers) ([]schemas.Source, error) {
	list, err := v.sources()
	for source := range o.by {
		if !slices.Contains(list, source) {
			list = append(list, source)
		}
	}
	slices.Sort(list)
	return list, err
}
