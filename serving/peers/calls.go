package peers

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// Generator is the content generator of the pools in this process. For other users it returns an error that wraps
// schemas.ErrNotOwner.
type Generator interface {
	Chunk(ctx context.Context, r schemas.ChunkRequest) (*schemas.Chunk, error)
	Settle(user schemas.UserID, served string, o schemas.Outcome)
	Waiting(ctx context.Context, user schemas.UserID) (int, error)
	Pool(ctx context.Context, user schemas.UserID, source schemas.Source, limit int) (*schemas.Pool, error)
	Why(ctx context.Context, r schemas.WhyRequest) (*schemas.Why, error)
	FeedState(ctx context.Context, user schemas.UserID, feed string) (*schemas.FeedState, error)
}

// Neighbors returns related pins and interests, for the partitions in this process.
type Neighbors interface {
	Neighbors(ctx context.Context, of schemas.ID, most int) ([]schemas.RelatedItem, error)
}

// Retries reports the state of the dead letters of topics, for the partitions in this process.
type Retries interface {
	RetryKinds(ctx context.Context, topic string) ([]schemas.RetryKind, error)
	RetriedDeadLetters(ctx context.Context, topic, kind string, state schemas.RetryState, most int) ([]schemas.RetriedDeadLetter, error)
}

// Interests returns terms, the interests of users and the engagement of interests, for the partitions in this process.
type Interests interface {
	Terms(ctx context.Context, partition int32, most int, named []string) ([]schemas.DictionaryTerm, error)
	Interests(ctx context.Context, user schemas.UserID, most int) ([]schemas.UserInterest, error)
	Engagement(ctx context.Context, interest schemas.InterestID, days int) ([]schemas.SourceEngagement, error)
}

// Insights returns parts of insights, for the partitions in this process.
type Insights interface {
	Insight(ctx context.Context, r schemas.InsightRequest) (*schemas.InsightPart, error)
}

// Known reports whether groups have rows of users, for the partitions in this process.
type Known interface {
	// Known reports whether the named group has any row of a user. If this process does not own the user's partition of the
	// group, the error is schemas.ErrNotOwner.
	Known(ctx context.Context, group string, user schemas.UserID) (bool, error)
}

// Users lists users and reads their graphs, for the partitions in this process.
type Users interface {
	// Users returns the first users of a partition of the group pools whose ids start with prefix, at most most.
	Users(ctx context.Context, partition int32, prefix string, most int) ([]schemas.UserID, error)
	// Graph returns the part of a user's graph that a group has: pools what the user follows and blocks, at most most of each,
	// and fanout the number of followers.
	Graph(ctx context.Context, group string, user schemas.UserID, most int) (*schemas.UserGraph, error)
}

// Process reports the status of this process only, as JSON that this package does not interpret.
type Process interface {
	Process(ctx context.Context) (json.RawMessage, error)
}

// call is the name of a call, with the types of its request and its answer.
type call[Req, Resp any] string

// The calls.
const (
	callChunk      call[schemas.ChunkRequest, *schemas.Chunk]          = "chunk"
	callSettle     call[settlement, struct{}]                          = "settle"
	callWaiting    call[userRequest, int]                              = "waiting"
	callPool       call[poolRequest, *schemas.Pool]                    = "pool"
	callWhy        call[schemas.WhyRequest, *schemas.Why]              = "why"
	callState      call[stateRequest, *schemas.FeedState]              = "state"
	callRelated    call[relatedRequest, []schemas.RelatedItem]         = "related"
	callRetryKinds call[retriedRequest, []schemas.RetryKind]           = "retry-kinds"
	callRetried    call[retriedRequest, []schemas.RetriedDeadLetter]   = "retried"
	callTerms      call[termsRequest, []schemas.DictionaryTerm]        = "terms"
	callInterests  call[userRequest, []schemas.UserInterest]           = "interests"
	callEngagement call[engagementRequest, []schemas.SourceEngagement] = "engagement"
	callInsight    call[schemas.InsightRequest, *schemas.InsightPart]  = "insight"
	callKnown      call[userRequest, bool]                             = "known"
	callUsers      call[usersRequest, []schemas.UserID]                = "users"
	callGraph      call[userRequest, *schemas.UserGraph]               = "graph"
	callProcess    call[struct{}, json.RawMessage]                     = "process"
)

// The requests that are not in schemas.
type (
	settlement struct {
		User    schemas.UserID  `json:"user"`
		Served  string          `json:"served"`
		Outcome schemas.Outcome `json:"outcome"`
	}
	userRequest struct {
		User  schemas.UserID `json:"user"`
		Group string         `json:"group,omitempty"` // of callKnown and callGraph
		Most  int            `json:"most,omitempty"`  // of callInterests and callGraph
	}
	usersRequest struct {
		Partition int32  `json:"partition"`
		Prefix    string `json:"prefix"`
		Most      int    `json:"most"`
	}
	poolRequest struct {
		User   schemas.UserID `json:"user"`
		Source schemas.Source `json:"source"`
		Limit  int            `json:"limit"`
	}
	stateRequest struct {
		User schemas.UserID `json:"user"`
		Feed string         `json:"feed"`
	}
	relatedRequest struct {
		Of   schemas.ID `json:"of"`
		Most int        `json:"most"`
	}
	retriedRequest struct {
		Topic string             `json:"topic"`
		Kind  string             `json:"kind,omitempty"` // of callRetried, like State and Most
		State schemas.RetryState `json:"state,omitempty"`
		Most  int                `json:"most,omitempty"`
	}
	termsRequest struct {
		Partition int32    `json:"partition"`
		Most      int      `json:"most"`
		Named     []string `json:"named"`
	}
	engagementRequest struct {
		Interest schemas.InterestID `json:"interest"`
		Days     int                `json:"days"`
	}
)

// Local has the parts of this process that accept calls. A nil part is not in this process.
type Local struct {
	Generator Generator
	Neighbors Neighbors
	Retries   Retries
	Interests Interests
	Insights  Insights
	Known     Known
	Users     Users
	Process   Process
}

// Handler handles the calls of peers, below Path.
func Handler(local Local) http.Handler {
	mux := http.NewServeMux()
	if g := local.Generator; g != nil {
		handleGenerator(mux, g)
	}
	if n := local.Neighbors; n != nil {
		callRelated.handle(mux, func(ctx context.Context, q relatedRequest) ([]schemas.RelatedItem, error) {
			return n.Neighbors(ctx, q.Of, q.Most)
		})
	}
	if r := local.Retries; r != nil {
		callRetryKinds.handle(mux, func(ctx context.Context, q retriedRequest) ([]schemas.RetryKind, error) {
			return r.RetryKinds(ctx, q.Topic)
		})
		callRetried.handle(mux, func(ctx context.Context, q retriedRequest) ([]schemas.RetriedDeadLetter, error) {
			return r.RetriedDeadLetters(ctx, q.Topic, q.Kind, q.State, q.Most)
		})
	}
	if i := local.Interests; i != nil {
		handleInterests(mux, i)
	}
	if i := local.Insights; i != nil {
		callInsight.handle(mux, i.Insight)
	}
	if k := local.Known; k != nil {
		callKnown.handle(mux, func(ctx context.Context, q userRequest) (bool, error) { return k.Known(ctx, q.Group, q.User) })
	}
	if u := local.Users; u != nil {
		handleUsers(mux, u)
	}
	if p := local.Process; p != nil {
		callProcess.handle(mux, func(ctx context.Context, _ struct{}) (json.RawMessage, error) { return p.Process(ctx) })
	}
	return mux
}

func handleGenerator(mux *http.ServeMux, g Generator) {
	callChunk.handle(mux, func(ctx context.Context, q schemas.ChunkRequest) (*schemas.Chunk, error) {
		chunk, err := g.Chunk(ctx, q)
		if err == nil { // the caller cannot recall entries, so the answer has all of them
			chunk.Recent, err = chunk.RecentEntries(ctx)
		}
		return chunk, err
	})
	callSettle.handle(mux, func(_ context.Context, q settlement) (struct{}, error) {
		g.Settle(q.User, q.Served, q.Outcome)
		return struct{}{}, nil
	})
	callWaiting.handle(mux, func(ctx context.Context, q userRequest) (int, error) { return g.Waiting(ctx, q.User) })
	callPool.handle(mux, func(ctx context.Context, q poolRequest) (*schemas.Pool, error) {
		return g.Pool(ctx, q.User, q.Source, q.Limit)
	})
	callWhy.handle(mux, g.Why)
	callState.handle(mux, func(ctx context.Context, q stateRequest) (*schemas.FeedState, error) {
		return g.FeedState(ctx, q.User, q.Feed)
	})
}

func handleInterests(mux *http.ServeMux, i Interests) {
	callTerms.handle(mux, func(ctx context.Context, q termsRequest) ([]schemas.DictionaryTerm, error) {
		return i.Terms(ctx, q.Partition, q.Most, q.Named)
	})
	callInterests.handle(mux, func(ctx context.Context, q userRequest) ([]schemas.UserInterest, error) {
		return i.Interests(ctx, q.User, q.Most)
	})
	callEngagement.handle(mux, func(ctx context.Context, q engagementRequest) ([]schemas.SourceEngagement, error) {
		return i.Engagement(ctx, q.Interest, q.Days)
	})
}

func handleUsers(mux *http.ServeMux, u Users) {
	callUsers.handle(mux, func(ctx context.Context, q usersRequest) ([]schemas.UserID, error) {
		return u.Users(ctx, q.Partition, q.Prefix, q.Most)
	})
	callGraph.handle(mux, func(ctx context.Context, q userRequest) (*schemas.UserGraph, error) {
		return u.Graph(ctx, q.Group, q.User, q.Most)
	})
}

// Chunk requests a chunk from the generator that owns the user's pools, and returns its errors. It also returns an error
// that wraps schemas.ErrNotOwner if the pools have no owner until ctx ends, or for callTimeout if ctx has no deadline.
func (c *Client) Chunk(ctx context.Context, r schemas.ChunkRequest) (*schemas.Chunk, error) {
	return callChunk.send(ctx, c, c.rowsOf(topics.Pools, string(r.User)), r)
}

// Waiting returns the number of new pins that a visit could show.
func (c *Client) Waiting(ctx context.Context, user schemas.UserID) (int, error) {
	return callWaiting.send(ctx, c, c.rowsOf(topics.Pools, string(user)), userRequest{User: user})
}

// Pool returns the best candidates of a user and source.
func (c *Client) Pool(ctx context.Context, user schemas.UserID, source schemas.Source, limit int) (*schemas.Pool, error) {
	return callPool.send(ctx, c, c.rowsOf(topics.Pools, string(user)), poolRequest{user, source, limit})
}

// Why reports the state of a pin for a user. Its errors are those of Chunk.
func (c *Client) Why(ctx context.Context, r schemas.WhyRequest) (*schemas.Why, error) {
	return callWhy.send(ctx, c, c.rowsOf(topics.Pools, string(r.User)), r)
}

// FeedState returns the state that a feed keeps for a user. Its errors are those of Chunk.
func (c *Client) FeedState(ctx context.Context, user schemas.UserID, feed string) (*schemas.FeedState, error) {
	return callState.send(ctx, c, c.rowsOf(topics.Pools, string(user)), stateRequest{user, feed})
}

// Neighbors returns the strongest neighbors of a pin or an interest.
func (c *Client) Neighbors(ctx context.Context, of schemas.ID, most int) ([]schemas.RelatedItem, error) {
	return callRelated.send(ctx, c, c.rowsOf(topics.Related, string(of)), relatedRequest{of, most})
}

// RetryKinds returns the kinds of dead letters of a topic, from the owner of its partition.
func (c *Client) RetryKinds(ctx context.Context, topic string) ([]schemas.RetryKind, error) {
	return callRetryKinds.send(ctx, c, c.rowsOf(topics.Retries, topic), retriedRequest{Topic: topic})
}

// RetriedDeadLetters returns the dead letters of a topic, from the owner of its partition.
func (c *Client) RetriedDeadLetters(ctx context.Context, topic, kind string, state schemas.RetryState, most int) ([]schemas.RetriedDeadLetter, error) {
	return callRetried.send(ctx, c, c.rowsOf(topics.Retries, topic), retriedRequest{topic, kind, state, most})
}

// Terms returns the terms of a partition, from its owner.
func (c *Client) Terms(ctx context.Context, partition int32, most int, named []string) ([]schemas.DictionaryTerm, error) {
	return callTerms.send(ctx, c, rowsIn(topics.Interests, partition), termsRequest{partition, most, named})
}

// Interests returns a user's interests, from the owner of the partition.
func (c *Client) Interests(ctx context.Context, user schemas.UserID, most int) ([]schemas.UserInterest, error) {
	return callInterests.send(ctx, c, c.rowsOf(topics.Interests, string(user)), userRequest{User: user, Most: most})
}

// Engagement returns the actions on an interest's pins by source, from the owner of the partition.
func (c *Client) Engagement(ctx context.Context, interest schemas.InterestID, days int) ([]schemas.SourceEngagement, error) {
	return callEngagement.send(ctx, c, c.rowsOf(topics.Interests, string(interest)), engagementRequest{interest, days})
}

// Insight returns the part of an insight that a partition has, from its owner.
func (c *Client) Insight(ctx context.Context, r schemas.InsightRequest) (*schemas.InsightPart, error) {
	return callInsight.send(ctx, c, rowsIn(topics.Insights, r.Partition), r)
}

// Known reports whether the group has any row of a user, from the owner of the partition. Its errors are those of Chunk.
func (c *Client) Known(ctx context.Context, group string, user schemas.UserID) (bool, error) {
	return callKnown.send(ctx, c, c.rowsOf(group, string(user)), userRequest{User: user, Group: group})
}

// Users returns the first users of a partition whose ids start with prefix, from its owner.
func (c *Client) Users(ctx context.Context, partition int32, prefix string, most int) ([]schemas.UserID, error) {
	return callUsers.send(ctx, c, rowsIn(topics.Pools, partition), usersRequest{partition, prefix, most})
}

// Graph returns the part of a user's graph that the group has, from the owner of the partition.
func (c *Client) Graph(ctx context.Context, group string, user schemas.UserID, most int) (*schemas.UserGraph, error) {
	return callGraph.send(ctx, c, c.rowsOf(group, string(user)), userRequest{User: user, Group: group, Most: most})
}
