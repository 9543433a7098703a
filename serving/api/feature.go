package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"

	"go.opentelemetry.io/otel/trace"

	"github.com/smartfeed/smartfeed/internal/tracing"
	"github.com/smartfeed/smartfeed/serving/feature"
)

// definitionList is the answer of GET /v1/features.
type definitionList struct {
	Features []feature.Definition `json:"features"`
}

func (s *Server) definitions(w http.ResponseWriter, r *http.Request) error {
	if err := parametersOf(r).err(); err != nil {
		return err
	}
	all := s.deps.Features.Definitions()
	if all == nil {
		all = []feature.Definition{}
	}
	return writeCached(w, r, definitionList{all})
}

func (s *Server) features(w http.ResponseWriter, r *http.Request) error {
	return answerJSON(s, w, r, func(ctx context.Context, req feature.Request) (feature.Answer, error) {
		ctx, span := tracing.Start(ctx, "features", trace.SpanKindInternal)
		answer, err := s.deps.Features.Answer(ctx, req)
		tracing.End(span, err)
		return answer, err
	})
}

func (s *Server) attributes(w http.ResponseWriter, r *http.Request) error {
	return answerJSON(s, w, r, s.deps.Features.Attributes)
}

// maxTrials is how many trials of definitions may be in flight. Further ones are rejected with 503.
const maxTrials = 8

// try is for services with the scope of features. They can read all defined features of all users, so a trial reveals
// nothing that the same actions would not reveal. A user's own token does not permit it, not even for the user, because a
// definition may read everything known about an action. The cost of a trial is limited independently of the definition; see
// feature.TryRequest.
func (s *Server) try(w http.ResponseWriter, r *http.Request) error {
	return answerJSON(s, w, r, s.deps.Features.Try)
}

// answerJSON parses the request in the body, and writes the answer to it.
func answerJSON[Q, A any](s *Server, w http.ResponseWriter, r *http.Request, ask func(context.Context, Q) (A, error)) error {
	if err := errors.Join(parametersOf(r).err(), checkContent(r, "application/json")); err != nil {
		return err
	}
	body, err := s.receive(w, r, s.cfg.MaxFeatureBytes, leastObject, s.objects)
	if err != nil {
		return err
	}
	defer body.share.End()
	text, err := io.ReadAll(body)
	if err != nil {
		return readError(err)
	}
	req, err := parseBody[Q](text)
	if err != nil {
		return err
	}
	answer, err := ask(r.Context(), req)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, answer)
}

// leastObject is the minimum number of bytes for a request with a JSON object: the buffer of its connection.
const leastObject = 4 << 10

// parseBody parses one JSON object without unknown fields. The handler checks its content.
func parseBody[Q any](body []byte) (req Q, err error) {
	// Unmarshal rejects data after the object, which a Decoder would leave unread.
	var whole json.RawMessage
	if err := json.Unmarshal(body, &whole); err != nil {
		return req, badJSON(err)
	}
	dec := json.NewDecoder(bytes.NewReader(whole))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&req); err != nil {
		return req, badJSON(err)
	}
	return req, nil
}

func badJSON(err error) error {
	return problem(http.StatusBadRequest, "the body is not the JSON object that is wanted: %v", err)
}
