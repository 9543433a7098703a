package peers

import (
	"context"
	"net/http"
	"strconv"

	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// Interests tells what terms there are, and what users and interests are known for, of the partitions that are here.
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

// Terms asks for the terms of a partition.
func (c *Client) Terms(ctx context.Context, partition int32, most int, named []string) ([]schemas.DictionaryTerm, error) {
	rows := target{&c.interests, "partition " + strconv.Itoa(int(partition)), partition}
	return ask[[]schemas.DictionaryTerm](ctx, c, callTerms, rows, termsRequest{partition, most, named})
}

// Interests asks for a user's interests.
func (c *Client) Interests(ctx context.Context, user schemas.UserID, most int) ([]schemas.UserInterest, error) {
	return ask[[]schemas.UserInterest](ctx, c, callInterests, c.interestsOf(string(user)), interestsRequest{user, most})
}

// Engagement asks for what became of an interest's pins.
func (c *Client) Engagement(ctx context.Context, interest schemas.InterestID, days int) ([]schemas.SourceEngagement, error) {
	return ask[[]schemas.SourceEngagement](ctx, c, callEngagement, c.interestsOf(string(interest)), engagementRequest{interest, days})
}

func (c *Client) interestsOf(owner string) target {
	return target{&c.interests, owner, topics.Partition(owner, c.partitions)}
}
