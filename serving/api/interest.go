package api

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/smartfeed/smartfeed/schemas"
)

// Dictionary contains the terms that could be interests, the interests of users, and the engagement of interests.
type Dictionary interface {
	// Terms returns at most limit terms of a state: candidates by score, the others by name.
	Terms(ctx context.Context, state schemas.TermState, limit int) ([]schemas.DictionaryTerm, error)
	// Fold returns the normalized term of a text, or "" if the text is not a term.
	Fold(text string) string
	// Blocked returns why the configuration blocks a term from being an interest, whatever was decided; "" if it does not.
	Blocked(term string) string
	// Decided returns the last decision on a term that this process has read, and false if there is none.
	Decided(term string) (schemas.InterestDecision, bool)
	// Decide records a decision. It takes effect a moment later.
	Decide(ctx context.Context, decision schemas.InterestDecision) error
	// Interests returns at most limit of a user's interests, strongest first.
	Interests(ctx context.Context, user schemas.UserID, limit int) ([]schemas.UserInterest, error)
	// Engagement returns the actions on an interest's pins in the last days, by source.
	Engagement(ctx context.Context, interest schemas.InterestID, days int) ([]schemas.SourceEngagement, error)
}

const (
	// MaxDictionary is the maximum number of terms or interests of an answer.
	MaxDictionary = 1000
	// MaxDays is the maximum number of days of an interest's engagement.
	MaxDays = 400
	// DefaultDays is the number of days of an interest's engagement without the parameter days.
	DefaultDays    = 28
	maxReasonBytes = 1000
)

func (s *Server) dictionary(p *parameters) computation {
	state := oneOf(p, "state", []schemas.TermState{schemas.TermCandidate, schemas.TermAccepted, schemas.TermRejected, schemas.TermMerged, schemas.TermBlocked})
	limit := p.limit(DefaultLimit, MaxDictionary)
	return func(ctx context.Context) (any, error) {
		return listOf(s.deps.Dictionary.Terms(ctx, cmp.Or(state, schemas.TermCandidate), limit))
	}
}

// DecisionRequest is the body of POST /v1/dictionary/decisions.
type DecisionRequest struct {
	Term     string             `json:"term"`
	State    schemas.TermState  `json:"state"`
	Interest schemas.InterestID `json:"interest"` // for accepted; "": the interest with the term's name
	Into     string             `json:"into"`     // for merged
	Reason   string             `json:"reason"`   // for rejected
	Operator string             `json:"operator"`
	Time     *time.Time         `json:"time"` // of the decision, so that a repeat is the same decision; nil: now
}

// decide answers after the decision is acknowledged.
func (s *Server) decide(ctx context.Context, req DecisionRequest) (schemas.DictionaryTerm, error) {
	req.Operator = answerOf(ctx).operatorOr(req.Operator)
	d, problems := s.decision(req)
	if len(problems) > 0 {
		return schemas.DictionaryTerm{}, listed(problems)
	}
	if err := s.newest(req, d); err != nil {
		return schemas.DictionaryTerm{}, err
	}
	if err := s.deps.Dictionary.Decide(ctx, d); err != nil {
		return schemas.DictionaryTerm{}, unavailable("the decision may not be recorded; send it again").because(err)
	}
	answerOf(ctx).change(slog.String("term", d.Term), slog.String("state", string(d.State)),
		slog.String("interest", string(d.Interest)), slog.String("into", d.Into), slog.String("reason", d.Reason))
	return schemas.DictionaryTerm{
		Term: d.Term, State: d.State, Interest: d.Interest, Into: d.Into, Reason: d.Reason, Operator: d.Operator,
		Decided: new(schemas.Timestamp(d.Time)),
	}, nil
}

// newest rejects a decision with a time if a later decision is known. The request may be a repeat by a client that did not
// receive the answer, after another operator decided differently. The topic keeps the last record regardless of its time,
// so readers cannot resolve this.
func (s *Server) newest(req DecisionRequest, d schemas.InterestDecision) error {
	if req.Time == nil {
		return nil
	}
	last, known := s.deps.Dictionary.Decided(d.Term)
	if !known || last.Time <= d.Time {
		return nil
	}
	return problem(http.StatusConflict, "%s is %s since %s, which is later than this decision; omit the time, "+
		"or send a later one", quote(d.Term), last.State, last.Time.Writable().Time().Format(time.RFC3339Nano))
}

// decision returns the decision in a request, and the problems of the request.
func (s *Server) decision(req DecisionRequest) (d schemas.InterestDecision, problems []string) {
	wrong := func(ok bool, problem string) {
		if !ok {
			problems = append(problems, problem)
		}
	}
	fold, blocked := s.deps.Dictionary.Fold, func(field, term string) {
		reason := s.deps.Dictionary.Blocked(term)
		wrong(reason == "", fmt.Sprintf("%s %s is blocked by the configuration (interests.blocked_terms, interests.stop_words): %s", field, quote(term), reason))
	}
	d = schemas.InterestDecision{Term: fold(req.Term), State: req.State, Reason: req.Reason, Operator: req.Operator, Time: schemas.MicrosOf(s.deps.Now())}
	if req.Time != nil {
		wrong(schemas.MicrosOf(*req.Time) <= d.Time+schemas.MicrosIn(schemas.MaxAhead), "time is more than "+schemas.MaxAhead.String()+" ahead")
		d.Time = schemas.MicrosOf(*req.Time)
	}
	wrong(d.Term != "" && len(d.Term) <= schemas.MaxIDBytes/2, fmt.Sprintf("term %s: want 1 to %d bytes of words", quote(req.Term), schemas.MaxIDBytes/2))
	wrong(len(req.Reason) <= maxReasonBytes && len(req.Operator) <= maxKindBytes, "reason or operator is too long")
	switch req.State {
	case schemas.TermAccepted:
		blocked("term", d.Term)
		d.Interest = cmp.Or(req.Interest, schemas.InterestID("interest:"+d.Term))
		if _, err := schemas.ParseInterestID(string(d.Interest)); err != nil {
			wrong(false, "interest: "+err.Error())
		}
	case schemas.TermMerged:
		d.Into = fold(req.Into)
		blocked("term", d.Term)
		blocked("into", d.Into)
		wrong(d.Into != "" && d.Into != d.Term, "into "+quote(req.Into)+": want another term")
	case schemas.TermRejected:
		wrong(req.Reason != "", "reason is missing")
	case schemas.TermCandidate:
	default:
		wrong(false, "state "+quote(string(req.State))+": want one of accepted, rejected, merged, candidate")
	}
	return d, problems
}

func (s *Server) interests(p *parameters) computation {
	user, limit := p.user(), p.limit(DefaultLimit, MaxDictionary)
	return func(ctx context.Context) (any, error) { return listOf(s.deps.Dictionary.Interests(ctx, user, limit)) }
}

// engagement answers with the actions on an interest's pins by source.
func (s *Server) engagement(p *parameters) computation {
	interest, days := id(p, "interest", schemas.ParseInterestID), p.within("days", DefaultDays, MaxDays)
	return func(ctx context.Context) (any, error) { return s.deps.Dictionary.Engagement(ctx, interest, days) }
}
