package visits

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/smartfeed/smartfeed/schemas"
)

// maxBody is the maximum size of a response, in bytes.
const maxBody = 4 << 20

// HTTP is a Feed that sends requests to a server.
type HTTP struct {
	URL    string       // of the server, without a path
	Client *http.Client // with a timeout
	Feed   string       // "home", "plain" …
	Limit  int          // items per response
}

// Visit requests the first page of the feed.
func (h *HTTP) Visit(ctx context.Context, user schemas.UserID) (Page, error) {
	return h.page(ctx, user, url.Values{"feed": {h.Feed}})
}

// Older requests the page of a cursor.
func (h *HTTP) Older(ctx context.Context, user schemas.UserID, cursor string) (Page, error) {
	return h.page(ctx, user, url.Values{"cursor": {cursor}})
}

func (h *HTTP) page(ctx context.Context, user schemas.UserID, query url.Values) (Page, error) {
	query.Set("limit", strconv.Itoa(h.Limit))
	var page Page
	err := h.get(ctx, user, "feed", query, &page)
	return page, err
}

// Pool requests the user's n best candidates of a source, best first.
func (h *HTTP) Pool(ctx context.Context, user schemas.UserID, source schemas.Source, n int) ([]schemas.PoolItem, error) {
	var answer schemas.Pool
	query := url.Values{"source": {string(source)}, "limit": {strconv.Itoa(n)}}
	err := h.get(ctx, user, "pools", query, &answer)
	return answer.Items, err
}

// Features requests features of users as of a time. The result is by user, then by feature; missing values are omitted.
func (h *HTTP) Features(ctx context.Context, names []string, users []schemas.UserID, at time.Time) (map[schemas.UserID]map[string]json.RawMessage, error) {
	question, err := json.Marshal(map[string]any{"features": names, "users": users, "at": at})
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, h.URL+"/v1/features", bytes.NewReader(question))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	var answer struct {
		Values map[schemas.UserID]map[string]json.RawMessage `json:"values"`
	}
	err = h.do(req, &answer)
	return answer.Values, err
}

// get sends a GET request to a path below the user and decodes the response.
func (h *HTTP) get(ctx context.Context, user schemas.UserID, call string, query url.Values, answer any) error {
	address := h.URL + "/v1/users/" + url.PathEscape(string(user)) + "/" + call + "?" + query.Encode()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	return h.do(req, answer)
}

// do sends a request and decodes the response.
func (h *HTTP) do(req *http.Request, answer any) error {
	resp, err := h.Client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxBody))
	if err != nil {
		return fmt.Errorf("read answer: %w", err)
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", resp.Status, body)
	}
	if err := json.Unmarshal(body, answer); err != nil {
		return fmt.Errorf("read answer: %w", err)
	}
	return nil
}
