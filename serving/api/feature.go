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

// maxTrials is how many trials of definitions are under way at once; more are refused with 503.
const maxTrials = 8

// try is for services that ask for features: whoever may ask for what is defined of everybody learns nothing from it that
// the same actions would not tell. A user's own token opens it for nobody, not even for the user: a definition may look at
// whatever is known of an action. What it may cost is bounded, and not by what is defined; see feature.TryRequest.
func (s *Server) try(w http.ResponseWriter, r *http.Request) error {
	return answerJSON(s, w, r, s.deps.Features.Try)
}

// answerJSON reads the request that the body holds, and writes what it is answered.
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

// leastObject is what a request takes whose body is a JSON object, in bytes: its connection's buffer.
const leastObject = 4 << 10

// parseBody takes one JSON object without unknown fields; what it asks for is checked by who answers it.
func parseBody[Q any](body []byte) (req Q, err error) {
	// Unmarshal refuses what follows the object, which a Decoder would leave unread.
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
