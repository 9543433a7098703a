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
	callChunk      call[schemas.ChunkRequest, *schemas.Chunk]         = "chunk"
	callSettle     call[settlement, struct{}]                         = "settle"
	callWaiting    call[arguments, int]                               = "waiting"
	callPool       call[arguments, *schemas.Pool]                     = "pool"
	callWhy        call[schemas.WhyRequest, *schemas.Why]             = "why"
	callState      call[arguments, *schemas.FeedState]                = "state"
	callRelated    call[arguments, []schemas.RelatedItem]             = "related"
	callRetryKinds call[arguments, []schemas.RetryKind]               = "retry-kinds"
	callRetried    call[arguments, []schemas.RetriedDeadLetter]       = "retried"
	callTerms      call[arguments, []schemas.DictionaryTerm]          = "terms"
	callInterests  call[arguments, []schemas.UserInterest]            = "interests"
	callEngagement call[arguments, []schemas.SourceEngagement]        = "engagement"
	callInsight    call[schemas.InsightRequest, *schemas.InsightPart] = "insight"
	callKnown      call[arguments, bool]                              = "known"
	callUsers      call[arguments, []schemas.UserID]                  = "users"
	callGraph      call[arguments, *schemas.UserGraph]                = "graph"
	callProcess    call[struct{}, json.RawMessage]                    = "process"
)

// arguments are the arguments of the calls without a request in schemas. Each call uses some of them.
type arguments struct {
	User      schemas.UserID     `json:"user,omitempty"`
	Group     string             `json:"group,omitempty"`
	Partition int32              `json:"partition,omitempty"`
	Prefix    string             `json:"prefix,omitempty"`
	Source    schemas.Source     `json:"source,omitempty"`
	Limit     int                `json:"limit,omitempty"`
	Feed      string             `json:"feed,omitempty"`
	Of        schemas.ID         `json:"of,omitempty"`
	Topic     string             `json:"topic,omitempty"`
	Kind      string             `json:"kind,omitempty"`
	State     schemas.RetryState `json:"state,omitempty"`
	Named     []string           `json:"named,omitempty"`
	Interest  schemas.InterestID `json:"interest,omitempty"`
	Days      int                `json:"days,omitempty"`
	Most      int                `json:"most,omitempty"`
}

type settlement struct {
	User    schemas.UserID  `json:"user"`
	Served  string          `json:"served"`
	Outcome schemas.Outcome `json:"outcome"`
}

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
		callRelated.handle(mux, func(ctx context.Context, q arguments) ([]schemas.RelatedItem, error) {
			return n.Neighbors(ctx, q.Of, q.Most)
		})
	}
	if r := local.Retries; r != nil {
		callRetryKinds.handle(mux, func(ctx context.Context, q arguments) ([]schemas.RetryKind, error) {
			return r.RetryKinds(ctx, q.Topic)
		})
		callRetried.handle(mux, func(ctx context.Context, q arguments) ([]schemas.RetriedDeadLetter, error) {
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
		callKnown.handle(mux, func(ctx context.Context, q arguments) (bool, error) { return k.Known(ctx, q.Group, q.User) })
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
	callWaiting.handle(mux, func(ctx context.Context, q arguments) (int, error) { return g.Waiting(ctx, q.User) })
	callPool.handle(mux, func(ctx context.Context, q arguments) (*schemas.Pool, error) {
		return g.Pool(ctx, q.User, q.Source, q.Limit)
	})
	callWhy.handle(mux, g.Why)
	callState.handle(mux, func(ctx context.Context, q arguments) (*schemas.FeedState, error) {
		return g.FeedState(ctx, q.User, q.Feed)
	})
}

func handleInterests(mux *http.ServeMux, i Interests) {
	callTerms.handle(mux, func(ctx context.Context, q arguments) ([]schemas.DictionaryTerm, error) {
		return i.Terms(ctx, q.Partition, q.Most, q.Named)
	})
	callInterests.handle(mux, func(ctx context.Context, q arguments) ([]schemas.UserInterest, error) {
		return i.Interests(ctx, q.User, q.Most)
	})
	callEngagement.handle(mux, func(ctx context.Context, q arguments) ([]schemas.SourceEngagement, error) {
		return i.Engagement(ctx, q.Interest, q.Days)
	})
}

func handleUsers(mux *http.ServeMux, u Users) {
	callUsers.handle(mux, func(ctx context.Context, q arguments) ([]schemas.UserID, error) {
		return u.Users(ctx, q.Partition, q.Prefix, q.Most)
	})
	callGraph.handle(mux, func(ctx context.Context, q arguments) (*schemas.UserGraph, error) {
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
	return callWaiting.send(ctx, c, c.rowsOf(topics.Pools, string(user)), arguments{User: user})
}

// Pool returns the best candidates of a user and source.
func (c *Client) Pool(ctx context.Context, user schemas.UserID, source schemas.Source, limit int) (*schemas.Pool, error) {
	return callPool.send(ctx, c, c.rowsOf(topics.Pools, string(user)), arguments{User: user, Source: source, Limit: limit})
}

// Why reports the state of a pin for a user. Its errors are those of Chunk.
func (c *Client) Why(ctx context.Context, r schemas.WhyRequest) (*schemas.Why, error) {
	return callWhy.send(ctx, c, c.rowsOf(topics.Pools, string(r.User)), r)
}

// FeedState returns the state that a feed keeps for a user. Its errors are those of Chunk.
func (c *Client) FeedState(ctx context.Context, user schemas.UserID, feed string) (*schemas.FeedState, error) {
	return callState.send(ctx, c, c.rowsOf(topics.Pools, string(user)), arguments{User: user, Feed: feed})
}

// Neighbors returns the strongest neighbors of a pin or an interest.
func (c *Client) Neighbors(ctx context.Context, of schemas.ID, most int) ([]schemas.RelatedItem, error) {
	return callRelated.send(ctx, c, c.rowsOf(topics.Related, string(of)), arguments{Of: of, Most: most})
}

// RetryKinds returns the kinds of dead letters of a topic, from the owner of its partition.
func (c *Client) RetryKinds(ctx context.Context, topic string) ([]schemas.RetryKind, error) {
	return callRetryKinds.send(ctx, c, c.rowsOf(topics.Retries, topic), arguments{Topic: topic})
}

// RetriedDeadLetters returns the dead letters of a topic, from the owner of its partition.
func (c *Client) RetriedDeadLetters(ctx context.Context, topic, kind string, state schemas.RetryState, most int) ([]schemas.RetriedDeadLetter, error) {
	return callRetried.send(ctx, c, c.rowsOf(topics.Retries, topic), arguments{Topic: topic, Kind: kind, State: state, Most: most})
}

// Terms returns the terms of a partition, from its owner.
func (c *Client) Terms(ctx context.Context, partition int32, most int, named []string) ([]schemas.DictionaryTerm, error) {
	return callTerms.send(ctx, c, rowsIn(topics.Interests, partition), arguments{Partition: partition, Most: most, Named: named})
}

// Interests returns a user's interests, from the owner of the partition.
func (c *Client) Interests(ctx context.Context, user schemas.UserID, most int) ([]schemas.UserInterest, error) {
	return callInterests.send(ctx, c, c.rowsOf(topics.Interests, string(user)), arguments{User: user, Most: most})
}

// Engagement returns the actions on an interest's pins by source, from the owner of the partition.
func (c *Client) Engagement(ctx context.Context, interest schemas.InterestID, days int) ([]schemas.SourceEngagement, error) {
	return callEngagement.send(ctx, c, c.rowsOf(topics.Interests, string(interest)), arguments{Interest: interest, Days: days})
}

// Insight returns the part of an insight that a partition has, from its owner.
func (c *Client) Insight(ctx context.Context, r schemas.InsightRequest) (*schemas.InsightPart, error) {
	return callInsight.send(ctx, c, rowsIn(topics.Insights, r.Partition), r)
}

// Known reports whether the group has any row of a user, from the owner of the partition. Its errors are those of Chunk.
func (c *Client) Known(ctx context.Context, group string, user schemas.UserID) (bool, error) {
	return callKnown.send(ctx, c, c.rowsOf(group, string(user)), arguments{User: user, Group: group})
}

// Users returns the first users of a partition whose ids start with prefix, from its owner.
func (c *Client) Users(ctx context.Context, partition int32, prefix string, most int) ([]schemas.UserID, error) {
	return callUsers.send(ctx, c, rowsIn(topics.Pools, partition), arguments{Partition: partition, Prefix: prefix, Most: most})
}

// Graph returns the part of a user's graph that the group has, from the owner of the partition.
func (c *Client) Graph(ctx context.Context, group string, user schemas.UserID, most int) (*schemas.UserGraph, error) {
	return callGraph.send(ctx, c, c.rowsOf(group, string(user)), arguments{User: user, Group: group, Most: most})
}
