package feature

import (
	"context"
	"time"

	"github.com/sony/gobreaker/v2"
	"go.yaml.in/yaml/v3"

	"github.com/smartfeed/smartfeed/internal/convert"
	"github.com/smartfeed/smartfeed/schemas"
)

// Bounds of a TryRequest.
const (
	MaxTryBytes       = 16 << 10 // of its text
	MaxTryDefinitions = 10
	MaxTryEntities    = 20 // for users, pins and pairs each
)

// maxTrials is the number of concurrent trials. Further trials wait, within their deadline.
const maxTrials = 2

// TryRequest asks for the values of definitions that are not in the file.
type TryRequest struct {
	// Definition is YAML: one feature, a list of them, or a complete features.yaml. A ratio's parts must be in the same
	// text.
	Definition string           `json:"definition"`
	Users      []schemas.UserID `json:"users,omitempty"`
	Pins       []schemas.PinID  `json:"pins,omitempty"`
	Pairs      []UserPin        `json:"pairs,omitempty"`
	At         *time.Time       `json:"at,omitempty"` // as in Request
}

// TryAnswer is an Answer with the parsed definitions, defaults included.
type TryAnswer struct {
	Definitions []Definition `json:"definitions"`
	Answer
}

// Try evaluates definitions that are in no file, each for all entities of its kind. It is for interactive use. Its
// answers are not logged, and its failures do not affect the circuit breaker, because a trial may be arbitrarily
// expensive. It returns the errors of Answer; every mistake in the text is a problem, with its line.
func (s *Service) Try(ctx context.Context, req TryRequest) (TryAnswer, error) {
	start := s.deps.Now()
	defs, q, err := req.checked(schemas.MicrosOf(start))
	if err != nil {
		return TryAnswer{}, err
	}
	answer := Answer{Fresh: s.fresh()}
	found, err := s.tried(ctx, q)
	if err != nil {
		return TryAnswer{}, err
	}
	s.assemble(&answer, q, found)
	return TryAnswer{defs, answer}, nil
}

// tried reads from the store within the deadline, unless the circuit breaker is open. It returns the error of ctx if
// the caller has canceled.
func (s *Service) tried(ctx context.Context, q query) (*findings, error) {
	if s.breaker.State() == gobreaker.StateOpen {
		return unread(), nil
	}
	return s.run(ctx, func(ctx context.Context, f *findings) {
		if err := s.trials.Acquire(ctx, 1); err == nil {
			s.read(q)(ctx, f)
			s.trials.Release(1)
		}
	})
}

// checked reads the definitions and resolves the request against them. The error is a *RequestError.
func (r TryRequest) checked(now schemas.Micros) ([]Definition, query, error) {
	c := &checker{}
	c.most("users", len(r.Users))
	c.most("pins", len(r.Pins))
	c.most("pairs", len(r.Pairs))
	defs := c.definitions(r.Definition)
	if len(c.problems) > 0 {
		return nil, query{}, &RequestError{Problems: c.problems}
	}
	set, err := newDefinitionSet(defs)
	if err != nil {
		return nil, query{}, &RequestError{Problems: []string{err.Error()}}
	}
	names := convert.All(defs, func(d Definition) string { return d.Name })
	q, err := Request{Features: names, Users: r.Users, Pins: r.Pins, Pairs: r.Pairs, At: r.At}.checked(set, now)
	return defs, q, err
}

// most checks the number of entities of a kind against MaxTryEntities.
func (c *checker) most(what string, n int) {
	if n > MaxTryEntities {
		c.problem("%s: %d: at most %d", what, n, MaxTryEntities)
	}
}

// definitions reads the text of a request.
func (c *checker) definitions(text string) []Definition {
	if len(text) > MaxTryBytes {
		c.problem("definition: %d bytes: at most %d", len(text), MaxTryBytes)
		return nil
	}
	p := &parser{file: "definition"}
	defs := p.trial([]byte(text))
	for _, m := range p.mistakes {
		c.problem("%v", m)
	}
	if len(p.mistakes) == 0 && len(defs) > MaxTryDefinitions {
		c.problem("definition: %d features: at most %d", len(defs), MaxTryDefinitions)
	}
	return defs
}

// trial reads one definition, a list of them, or a complete file.
func (p *parser) trial(text []byte) []Definition {
	root := p.root(text)
	switch {
	case root == nil:
		return nil
	case root.Kind == yaml.SequenceNode:
		return p.definitions(root)
	case root.Kind == yaml.MappingNode && !hasKey(root, "features"):
		return p.definitions(&yaml.Node{Kind: yaml.SequenceNode, Line: root.Line, Content: []*yaml.Node{root}})
	}
	return p.top(root)
}

func hasKey(n *yaml.Node, name string) bool {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == name {
			return true
		}
	}
	return false
}
