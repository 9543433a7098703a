package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"

	"go.opentelemetry.io/otel/trace"

	"github.com/smartfeed/smartfeed/internal/tensors"
	"github.com/smartfeed/smartfeed/internal/tracing"
	"github.com/smartfeed/smartfeed/serving/auth"
	"github.com/smartfeed/smartfeed/serving/feature"
)

// definitions is the answer of GET /v1/features, in the form of features.yaml.
type definitions struct {
	Features    []feature.Definition `json:"features"`
	FeatureSets map[string][]string  `json:"feature_sets"`
}

func (s *Server) definitions(*parameters) computation {
	return func(context.Context) (any, error) {
		defs := append([]feature.Definition{}, s.deps.Features.Definitions()...)
		return definitions{defs, feature.Sets(defs)}, nil
	}
}

func (s *Server) features(ctx context.Context, req feature.Request) (feature.Answer, error) {
	ctx, span := tracing.Start(ctx, "features", trace.SpanKindInternal)
	req.Unrecorded = onlyViews(ctx, auth.Features)
	answer, err := s.deps.Features.Answer(ctx, req)
	tracing.End(span, err)
	return answer, err
}

// Features answers requests for features, as feature.Service does.
type Features interface {
	Answer(ctx context.Context, req feature.Request) (feature.Answer, error)
	Attributes(ctx context.Context, req feature.AttributesRequest) (feature.AttributesAnswer, error)
	// Try is for services with the scope of features. They can read all defined features of all users, so a trial reveals
	// nothing that the same actions would not reveal. A user's own token does not permit it, not even for the user,
	// because a definition may read everything known about an action. The cost of a trial is limited independently of
	// the definition; see feature.TryRequest.
	Try(ctx context.Context, req feature.TryRequest) (feature.TryAnswer, error)
	Definitions() []feature.Definition
}

// maxTrials is how many trials of definitions may be in flight. Further ones are rejected with 503.
const maxTrials = 8

// postJSON returns the handler of a call whose body is a JSON object.
func postJSON[Q, A any](s *Server, compute func(context.Context, Q) (A, error)) handler {
	return postObject(s, func(w http.ResponseWriter, r *http.Request, req Q) error {
		answer, err := compute(r.Context(), req)
		if err != nil {
			return err
		}
		return writeJSON(w, http.StatusOK, answer)
	})
}

// postObject returns a handler that reads a JSON object and calls answer.
func postObject[Q any](s *Server, answer func(http.ResponseWriter, *http.Request, Q) error) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		if err := errors.Join(parametersOf(r).err(), checkContent(r, "application/json")); err != nil {
			return err
		}
		body, err := s.receive(w, r, int64(s.cfg.MaxFeaturesBytes), leastObject, s.objects)
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
		return answer(w, r, req)
	}
}

// postFeatures answers with JSON, or with tensors if the caller accepts them.
func (s *Server) postFeatures(w http.ResponseWriter, r *http.Request, req feature.Request) error {
	answer, err := s.features(r.Context(), req)
	if err != nil {
		return err
	}
	if !strings.Contains(strings.ToLower(strings.Join(r.Header.Values("Accept"), ",")), binaryContent) {
		return writeJSON(w, http.StatusOK, answer)
	}
	head, data, err := answer.Tensors(s.deps.Features.Definitions(), req)
	if err != nil {
		return err
	}
	w.Header().Set(tensors.Header, strconv.Itoa(len(head)))
	w.Header().Set("Cache-Control", "no-store")
	write(w, http.StatusOK, binaryContent, append(head, data...))
	return nil
}

// binaryContent is the media type of tensors as bytes after JSON.
const binaryContent = "application/octet-stream"

// leastObject is the minimum number of bytes for a request with a JSON object: the buffer of its connection.
const leastObject = 4 << 10

// parseBody parses one JSON object without unknown fields. The handler checks its content.
func parseBody[Q any](body []byte) (req Q, err error) {
	// Unmarshal rejects data after the object, which a Decoder would leave unread.
	var raw json.RawMessage
	if err := json.Unmarshal(body, &raw); err != nil {
		return req, badJSON(err)
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&req); err != nil {
		return req, badJSON(err)
	}
	return req, nil
}

func badJSON(err error) error {
	return problem(http.StatusBadRequest, "the body is not a JSON object of this call: %v", err)
}
