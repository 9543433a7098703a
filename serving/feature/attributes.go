package feature

import (
	"context"
	"time"

	"github.com/smartfeed/smartfeed/schemas"
)

// AttributesRequest is the second of two steps. The first requests the last actions of a user. The second requests the
// current attributes of the pins in these actions. It serves models that compute features themselves, and embeddings
// that are too wide to be stored with every action.
type AttributesRequest struct {
	Pins       []schemas.PinID `json:"pins"`                 // 1 to MaxEntities; repeats are answered once
	Embeddings bool            `json:"embeddings,omitempty"` // whether to return embeddings
}

// AttributesAnswer has the attributes of the requested pins.
type AttributesAnswer struct {
	Pins     map[schemas.PinID]Attributes `json:"pins"`     // never nil
	Missing  []MissingPin                 `json:"missing"`  // in the order of the request, never nil
	Degraded []string                     `json:"degraded"` // as in Answer
	Fresh    *time.Time                   `json:"fresh"`    // as in Answer
}

// Attributes is the data of a pin as of its newest version, under the names of paths.
type Attributes struct {
	Author     schemas.UserID       `json:"author"`
	Board      schemas.BoardID      `json:"board,omitempty"`
	Interests  []schemas.InterestID `json:"interests"`
	Attributes map[string]string    `json:"attributes"`
	Embedding  []float32            `json:"embedding,omitempty"` // absent: none, or not requested
}

// MissingPin says why the answer does not have a pin: Unknown, Deadline or Failed.
type MissingPin struct {
	Entity schemas.PinID `json:"entity"`
	Reason Reason        `json:"reason"`
}

// Attributes looks up pins by key, within the deadline. It returns the same errors as Answer.
func (s *Service) Attributes(ctx context.Context, req AttributesRequest) (AttributesAnswer, error) {
	c := &checker{}
	pins := unique(c, "pins", req.Pins, isPin)
	if len(req.Pins) == 0 {
		c.problem("no pins")
	}
	if len(c.problems) > 0 {
		return AttributesAnswer{}, &RequestError{Problems: c.problems}
	}
	fresh := s.fresh()
	f, err := s.within(ctx, func(ctx context.Context, f *findings) { s.gather(ctx, f, s.pinTasks(pins, req.Embeddings)) })
	if err != nil {
		return AttributesAnswer{}, err
	}
	answer := AttributesAnswer{Pins: map[schemas.PinID]Attributes{}, Missing: []MissingPin{}, Degraded: []string{}, Fresh: s.leastFresh(fresh, f)}
	for _, pin := range pins {
		answer.add(pin, f)
	}
	return answer, nil
}

func (a *AttributesAnswer) add(pin schemas.PinID, f *findings) {
	own, known := f.pins[pin]
	reason := Unknown
	switch {
	case known:
		found := Attributes{own.Author, own.Board, own.Interests, own.Attributes, own.Embedding}
		if found.Interests == nil { // JSON encodes it as []
			found.Interests = []schemas.InterestID{}
		}
		if found.Attributes == nil { // a store may return none
			found.Attributes = map[string]string{}
		}
		a.Pins[pin] = found
		return
	case !f.lookedUp[pin]:
		reason = f.missingResult(string(pin)).Reasons[0]
		a.Degraded = degraded(a.Degraded, reason)
	}
	a.Missing = append(a.Missing, MissingPin{pin, reason})
}
