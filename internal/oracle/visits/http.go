package visits

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"

	"github.com/smartfeed/smartfeed/schemas"
)

// maxBody bounds an answer.
const maxBody = 4 << 20

// HTTP is the feed that a server answers.
type HTTP struct {
	URL    string       // of the server, without a path
	Client *http.Client // with a time-out
	Feed   string       // "home", "plain" …
	Limit  int          // items of an answer
}

// Visit asks for the feed's top.
func (h *HTTP) Visit(ctx context.Context, user schemas.UserID) (Page, error) {
	return h.get(ctx, user, url.Values{"feed": {h.Feed}})
}

// Older asks for the page of a cursor.
func (h *HTTP) Older(ctx context.Context, user schemas.UserID, cursor string) (Page, error) {
	return h.get(ctx, user, url.Values{"cursor": {cursor}})
}

func (h *HTTP) get(ctx context.Context, user schemas.UserID, query url.Values) (Page, error) {
	query.Set("limit", strconv.Itoa(h.Limit))
	address := h.URL + "/v1/users/" + url.PathEscape(string(user)) + "/feed?" + query.Encode()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return Page{}, err
	}
	resp, err := h.Client.Do(req)
	if err != nil {
		return Page{}, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxBody))
	if err != nil {
		return Page{}, fmt.Errorf("read answer: %w", err)
	}
	if resp.StatusCode != http.StatusOK {
		return Page{}, fmt.Errorf("%s: %s", resp.Status, body)
	}
	var page Page
	if err := json.Unmarshal(body, &page); err != nil {
		return Page{}, fmt.Errorf("read answer: %w", err)
	}
	return page, nil
}
