package client

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/serving/feature"
	"github.com/smartfeed/smartfeed/serving/feed"
)

// read parses an answer.
func read[T any](answer json.RawMessage, err error) (v T, _ error) {
	if err != nil {
		return v, err
	}
	if err := json.Unmarshal(answer, &v); err != nil {
		return v, fmt.Errorf("read answer: %w", err)
	}
	return v, nil
}

// limited sets the limit in a query. 0 is the server's default.
func limited(query url.Values, limit int) url.Values {
	if limit != 0 {
		query.Set("limit", strconv.Itoa(limit))
	}
	return query
}

// named sets the name of the feed in a query. "" is the server's default.
func named(query url.Values, feed string) url.Values {
	if feed != "" {
		query.Set("feed", feed)
	}
	return query
}

// VisitOptions are the options of a visit.
type VisitOptions struct {
	Feed  string // "": home
	Limit int    // 0: 25
}

// Visit visits a user's feed. The server records its new items as shown.
func (c *Client) Visit(ctx context.Context, user schemas.UserID, o VisitOptions) (feed.Page, error) {
	return read[feed.Page](c.call(ctx, http.MethodGet, limited(named(url.Values{}, o.Feed), o.Limit), "", once{}, []string{"v1", "users", string(user), "feed"}))
}

// Older returns the page at cursor, the Next of an earlier page. A limit of 0 means 25.
func (c *Client) Older(ctx context.Context, user schemas.UserID, cursor string, limit int) (feed.Page, error) {
	return read[feed.Page](c.Get(ctx, limited(url.Values{"cursor": {cursor}}, limit), "v1", "users", string(user), "feed"))
}

// count is the number of new items of a visit.
type count struct {
	Count int `json:"count"`
}

// Waiting returns how many new items a visit would show, at most 100.
func (c *Client) Waiting(ctx context.Context, user schemas.UserID) (int, error) {
	answer, err := read[count](c.Get(ctx, nil, "v1", "users", string(user), "feed", "new"))
	return answer.Count, err
}

// Why reports the state of a pin for a user in a feed.
func (c *Client) Why(ctx context.Context, user schemas.UserID, feedName string, pin schemas.PinID) (feed.Why, error) {
	return read[feed.Why](c.Get(ctx, named(url.Values{"pin": {string(pin)}}, feedName), "v1", "users", string(user), "feed", "why"))
}

// Pool is the candidates of a user from one source: visible and unseen.
type Pool struct {
	Source schemas.Source `json:"source"`
	Total  int            `json:"total"` // number of candidates; Items are the best of them
	Items  []PoolItem     `json:"items"` // best first
}

// PoolItem is a candidate in a pool.
type PoolItem struct {
	Pin       schemas.PinID        `json:"pin"`
	Score     float64              `json:"score"` // write-time score including the edge weight; comparable only within the source
	Time      time.Time            `json:"time"`  // of the pin's creation
	Author    schemas.UserID       `json:"author"`
	Board     *schemas.BoardID     `json:"board"` // nil: none
	Interests []schemas.InterestID `json:"interests"`
}

// Pool returns the candidates of a source ("following", "interest" …) and changes nothing. The limit is at most 1000; 0
// means 25.
func (c *Client) Pool(ctx context.Context, user schemas.UserID, source schemas.Source, limit int) (Pool, error) {
	query := limited(url.Values{"source": {string(source)}}, limit)
	return read[Pool](c.Get(ctx, query, "v1", "users", string(user), "pools"))
}

// Published returns the publications of a user, board or interest, newest first. An empty cursor starts at the newest. A
// limit of 0 means 25.
func (c *Client) Published(ctx context.Context, by schemas.Followee, cursor string, limit int) (feed.ListPage, error) {
	query := limited(url.Values{}, limit)
	if cursor != "" {
		query.Set("cursor", cursor)
	}
	return read[feed.ListPage](c.Get(ctx, query, "v1", schemas.ID(by).Kind()+"s", string(by), "pins"))
}

// RelatedPins returns the pins related to a pin, strongest first. A limit of 0 means 25.
func (c *Client) RelatedPins(ctx context.Context, pin schemas.PinID, limit int) (feed.RelatedPins, error) {
	return read[feed.RelatedPins](c.Get(ctx, limited(url.Values{}, limit), "v1", "pins", string(pin), "related"))
}

// RelatedInterests returns the interests related to an interest, strongest first. A limit of 0 means 25.
func (c *Client) RelatedInterests(ctx context.Context, of schemas.InterestID, limit int) (feed.RelatedInterests, error) {
	return read[feed.RelatedInterests](c.Get(ctx, limited(url.Values{}, limit), "v1", "interests", string(of), "related"))
}

// Engagement returns the actions on an interest's pins by the source of the pins, sorted by name. Each source has counts by
// verb, and its impressions under schemas.ImpressionCount. days includes today and is at most 400; 0 means 28.
func (c *Client) Engagement(ctx context.Context, of schemas.InterestID, days int) ([]schemas.SourceEngagement, error) {
	query := url.Values{}
	if days != 0 {
		query.Set("days", strconv.Itoa(days))
	}
	answer, err := read[struct {
		Sources []schemas.SourceEngagement `json:"sources"`
	}](c.Get(ctx, query, "v1", "interests", string(of), "engagement"))
	return answer.Sources, err
}

// Definitions returns the definitions of all features.
func (c *Client) Definitions(ctx context.Context) ([]feature.Definition, error) {
	answer, err := read[struct {
		Features json.RawMessage `json:"features"`
	}](c.Get(ctx, nil, "v1", "features"))
	if err != nil {
		return nil, err
	}
	// Each definition has the keys of the file, and JSON is YAML.
	defs, err := feature.Parse("answer", fmt.Appendf(nil, `{"features":%s}`, answer.Features))
	if err != nil {
		return nil, fmt.Errorf("read definitions: %w", err)
	}
	return defs, nil
}

// Features requests the values of features.
func (c *Client) Features(ctx context.Context, r feature.Request) (feature.Answer, error) {
	return read[feature.Answer](c.Post(ctx, r, "v1", "features"))
}

// Attributes requests the attributes of pins.
func (c *Client) Attributes(ctx context.Context, r feature.AttributesRequest) (feature.AttributesAnswer, error) {
	return read[feature.AttributesAnswer](c.Post(ctx, r, "v1", "features", "attributes"))
}

// Publish sends events, one JSON object per line, and returns how many were accepted: all or none. After an error that does
// not concern the events themselves, it is unknown whether they were accepted. Publishing them again has no second effect.
func (c *Client) Publish(ctx context.Context, lines io.Reader) (int, error) {
	answer, err := read[struct {
		Accepted int `json:"accepted"`
	}](c.call(ctx, http.MethodPost, nil, "application/x-ndjson", lines, []string{"v1", "events"}))
	return answer.Accepted, err
}
