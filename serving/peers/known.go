package peers

import (
	"context"
	"fmt"
	"net/http"

	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// Known reports whether groups have rows of users, for the partitions in this process.
type Known interface {
	// Known reports whether the named group has any row of a user. If this process does not own the user's partition of the
	// group, the error is schemas.ErrElsewhere.
	Known(ctx context.Context, group string, user schemas.UserID) (bool, error)
}

const callKnown = "known"

type knownRequest struct {
	Group string         `json:"group"`
	User  schemas.UserID `json:"user"`
}

func handleKnown(mux *http.ServeMux, k Known) {
	mux.Handle("POST "+Path+callKnown, answer(func(ctx context.Context, q knownRequest) (bool, error) {
		return k.Known(ctx, q.Group, q.User)
	}))
}

// Known reports whether the group has any row of a user, from the owner of the partition. The group must be one of
// Deps.Known. Its errors are those of Chunk.
func (c *Client) Known(ctx context.Context, group string, user schemas.UserID) (bool, error) {
	owners := c.known[group]
	if owners == nil {
		return false, fmt.Errorf("ask for %s of %s: no directory of the group %q", callKnown, user, group)
	}
	rows := target{owners, string(user), topics.Partition(string(user), c.partitions)}
	return ask[bool](ctx, c, callKnown, rows, knownRequest{group, user})
}
