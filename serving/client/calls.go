package client

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strings"
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

// with sets a parameter of a query, unless the value is zero: the server has defaults.
func with[T comparable](query url.Values, name string, value T) url.Values {
	if value != *new(T) {
		query.Set(name, fmt.Sprint(value))
	}
	return query
}

// VisitOptions are the options of a visit.
type VisitOptions struct {
	Feed  string // "": home
	Limit int    // 0: 25
}

// Visit visits a user's feed. The server records its new items as shown.
func (c *Client) Visit(ctx context.Context, user string, o VisitOptions) (Page, error) {
	return read[Page](c.call(ctx, http.MethodGet, with(with(url.Values{}, "feed", o.Feed), "limit", o.Limit), "", once{}, []string{"v1", "users", user, "feed"}))
}

// VisitOnce is Visit with a key that identifies the visit, 1 to 256 bytes. The caller may repeat a visit without an answer
// with the same key, and so does the client when a connection breaks. If the first attempt has shown new items, a repeat shows
// none: its page has those items on top.
func (c *Client) VisitOnce(ctx context.Context, user, key string, o VisitOptions) (Page, error) {
	req, err := c.request(ctx, http.MethodPost, c.at(with(with(url.Values{}, "feed", o.Feed), "limit", o.Limit), []string{"v1", "users", user, "visits"}), nil)
	if err != nil {
		return Page{}, err
	}
	req.Header.Set("Idempotency-Key", key)
	return read[Page](c.do(req))
}

// Peek returns the page that a visit would return now. It changes nothing.
func (c *Client) Peek(ctx context.Context, user string, o VisitOptions) (Page, error) {
	query := with(with(url.Values{"peek": {"true"}}, "feed", o.Feed), "limit", o.Limit)
	return read[Page](c.Get(ctx, query, "v1", "users", user, "feed"))
}

// Older returns the page at cursor, the Next of an earlier page. A limit of 0 means 25.
func (c *Client) Older(ctx context.Context, user, cursor string, limit int) (Page, error) {
	return read[Page](c.Get(ctx, with(url.Values{"cursor": {cursor}}, "limit", limit), "v1", "users", user, "feed"))
}

// Feed visits a user's feed and yields its items, then older items page by page, until the end of the feed. An error ends the
// loop. The limit is that of a page: new items beyond the first page stay new until the next visit.
func (c *Client) Feed(ctx context.Context, user string, o VisitOptions) iter.Seq2[Item, error] {
	return func(yield func(Item, error) bool) {
		page, err := c.Visit(ctx, user, o)
		for ; err == nil; page, err = c.Older(ctx, user, *page.Next, o.Limit) {
			for _, item := range page.Items {
				if !yield(item, nil) {
					return
				}
			}
			if page.Next == nil {
				return
			}
		}
		yield(Item{}, err)
	}
}

// count is the number of new items of a visit.
type count struct {
	Count int `json:"count"`
}

// Waiting returns how many new items a visit would show, at most 100.
func (c *Client) Waiting(ctx context.Context, user string) (int, error) {
	answer, err := read[count](c.Get(ctx, nil, "v1", "users", user, "feed", "new"))
	return answer.Count, err
}

// Why reports the state of a pin for a user in a feed.
func (c *Client) Why(ctx context.Context, user, feed, pin string) (Why, error) {
	return read[Why](c.Get(ctx, with(url.Values{"pin": {pin}}, "feed", feed), "v1", "users", user, "feed", "why"))
}

// Pool returns the candidates of a source ("following", "interest" …) and changes nothing. The limit is at most 1000; 0
// means 25.
func (c *Client) Pool(ctx context.Context, user, source string, limit int) (Pool, error) {
	query := with(url.Values{"source": {source}}, "limit", limit)
	return read[Pool](c.Get(ctx, query, "v1", "users", user, "pools"))
}

// Published returns the publications of a user, board or interest, newest first. An empty cursor starts at the newest. A
// limit of 0 means 25.
func (c *Client) Published(ctx context.Context, by, cursor string, limit int) (ListPage, error) {
	query := with(with(url.Values{}, "limit", limit), "cursor", cursor)
	kind, _, _ := strings.Cut(by, ":")
	return read[ListPage](c.Get(ctx, query, "v1", kind+"s", by, "pins"))
}

// RelatedPins returns the pins related to a pin, strongest first. A limit of 0 means 25.
func (c *Client) RelatedPins(ctx context.Context, pin string, limit int) (RelatedPins, error) {
	return read[RelatedPins](c.Get(ctx, with(url.Values{}, "limit", limit), "v1", "pins", pin, "related"))
}

// RelatedInterests returns the interests related to an interest, strongest first. A limit of 0 means 25.
func (c *Client) RelatedInterests(ctx context.Context, of string, limit int) (RelatedInterests, error) {
	return read[RelatedInterests](c.Get(ctx, with(url.Values{}, "limit", limit), "v1", "interests", of, "related"))
}

// Engagement returns the actions on an interest's pins by the source of the pins, sorted by name. Each source has counts by
// verb, and its impressions under "impression". days includes today and is at most 400; 0 means 28.
func (c *Client) Engagement(ctx context.Context, of string, days int) ([]SourceEngagement, error) {
	query := with(url.Values{}, "days", days)
	answer, err := read[struct {
		Sources []SourceEngagement `json:"sources"`
	}](c.Get(ctx, query, "v1", "interests", of, "engagement"))
	return answer.Sources, err
}

// Definitions returns the definitions of all features.
func (c *Client) Definitions(ctx context.Context) ([]Definition, error) {
	answer, err := read[struct {
		Features []Definition `json:"features"`
	}](c.Get(ctx, nil, "v1", "features"))
	return answer.Features, err
}

// FeatureSets returns the names of the features of each feature set.
func (c *Client) FeatureSets(ctx context.Context) (map[string][]string, error) {
	answer, err := read[struct {
		FeatureSets map[string][]string `json:"feature_sets"`
	}](c.Get(ctx, nil, "v1", "features"))
	return answer.FeatureSets, err
}

// Features requests the values of features.
func (c *Client) Features(ctx context.Context, r FeaturesRequest) (FeaturesAnswer, error) {
	return read[FeaturesAnswer](c.Post(ctx, r, "v1", "features"))
}

// Attributes requests the attributes of pins.
func (c *Client) Attributes(ctx context.Context, r AttributesRequest) (AttributesAnswer, error) {
	return read[AttributesAnswer](c.Post(ctx, r, "v1", "features", "attributes"))
}

// Publish sends events, one JSON object per line, and returns how many were accepted: all or none. After an error that does
// not concern the events themselves, it is unknown whether they were accepted. Publishing them again has no second effect.
func (c *Client) Publish(ctx context.Context, lines io.Reader) (int, error) {
	answer, err := read[struct {
		Accepted int `json:"accepted"`
	}](c.call(ctx, http.MethodPost, nil, "application/x-ndjson", lines, []string{"v1", "events"}))
	return answer.Accepted, err
}
