package peers

import (
	"context"
	"net/http"
	"strconv"

	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// Interests returns terms, the interests of users and the engagement of interests, for the partitions in this process.
type Interests interface {
	Terms(ctx context.Context, partition int32, most int, named []string) ([]schemas.DictionaryTerm, error)
	Interests(ctx context.Context, user schemas.UserID, most int) ([]schemas.UserInterest, error)
	Engagement(ctx context.Context, interest schemas.InterestID, days int) ([]schemas.SourceEngagement, error)
}

const (
	callTerms      = "terms"
	callInterests  = "interests"
	callEngagement = "engagement"
)

type termsRequest struct {
	Partition int32    `json:"partition"`
	Most      int      `json:"most"`
	Named     []string `json:"named"`
}

type interestsRequest struct {
	User schemas.UserID `json:"user"`
	Most int            `json:"most"`
}

type engagementRequest struct {
	Interest schemas.InterestID `json:"interest"`
	Days     int                `json:"days"`
}

func handleInterests(mux *http.ServeMux, i Interests) {
	mux.Handle("POST "+Path+callTerms, answer(func(ctx context.Context, q termsRequest) ([]schemas.DictionaryTerm, error) {
		return i.Terms(ctx, q.Partition, q.Most, q.Named)
	}))
	mux.Handle("POST "+Path+callInterests, answer(func(ctx context.Context, q interestsRequest) ([]schemas.UserInterest, error) {
		return i.Interests(ctx, q.User, q.Most)
	}))
	mux.Handle("POST "+Path+callEngagement, answer(func(ctx context.Context, q engagementRequest) ([]schemas.SourceEngagement, error) {
		return i.Engagement(ctx, q.Interest, q.Days)
	}))
}

// Terms returns the terms of a partition, from its owner.
func (c *Client) Terms(ctx context.Context, partition int32, most int, named []string) ([]schemas.DictionaryTerm, error) {
	rows := target{&c.interests, "partition " + strconv.Itoa(int(partition)), partition}
	return ask[[]schemas.DictionaryTerm](ctx, c, callTerms, rows, termsRequest{partition, most, named})
}

// Interests returns a user's interests, from the owner of the partition.
func (c *Client) Interests(ctx context.Context, user schemas.UserID, most int) ([]schemas.UserInterest, error) {
	return ask[[]schemas.UserInterest](ctx, c, callInterests, c.interestsOf(string(user)), interestsRequest{user, most})
}

// Engagement returns the actions on an interest's pins by source, from the owner of the partition.
func (c *Client) Engagement(ctx context.Context, interest schemas.InterestID, days int) ([]schemas.SourceEngagement, error) {
	return ask[[]schemas.SourceEngagement](ctx, c, callEngagement, c.interestsOf(string(interest)), engagementRequest{interest, days})
}

func (c *Client) interestsOf(owner string) target {
	return target{&c.interests, owner, topics.Partition(owner, c.partitions)}
}
