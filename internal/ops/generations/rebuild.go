package generations

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/time/rate"

	"github.com/smartfeed/smartfeed/internal/command"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// Rebuilt is the result of a rebuild.
type Rebuilt struct {
	Source  schemas.Source `json:"source,omitempty"` // "": every source that followees deliver
	Users   int            `json:"users"`
	Seconds float64        `json:"seconds"`
}

// String returns the result as one line of text.
func (r Rebuilt) String() string {
	of := "pools"
	if r.Source != "" {
		of = "pools of " + string(r.Source)
	}
	return fmt.Sprintf("rebuilt the %s of %s in %.1f s", of, command.Count(r.Users, "user"), r.Seconds)
}

// maxRequests is the maximum number of users that are requested together.
const maxRequests = 100

// rebuild requests a rebuild of the pools of users, and returns when they are complete. If ctx is canceled before, the
// published requests still take effect.
func (a *access) rebuild(ctx context.Context, users []schemas.UserID, r schemas.Rebuild, perSecond float64) (Rebuilt, error) {
	start := time.Now()
	task := a.Start("rebuild", len(users))
	defer task.Done()
	to := newPublisher(a.client, rate.Limit(perSecond), maxRequests)
	err := a.request(ctx, to, users, r, task)
	if err != nil {
		return Rebuilt{}, fmt.Errorf("rebuild: %d of %d users were requested: %w", to.published, len(users), err)
	}
	task.Say("all users requested, waiting for the results")
	err = a.wait(ctx, task)
	return Rebuilt{r.Source, len(users), time.Since(start).Seconds()}, err
}

// request publishes a Rebuild for each user.
func (a *access) request(ctx context.Context, to *publisher, users []schemas.UserID, r schemas.Rebuild, task topics.Progress) error {
	for _, user := range users {
		r.User = user
		value, err := a.streams.Rebuilds.Encode(&r)
		if err != nil {
			return fmt.Errorf("encode %s: %w", topics.Rebuilds, err)
		}
		if err := to.add(ctx, &kgo.Record{Topic: topics.Rebuilds, Key: []byte(user), Value: value}); err != nil {
			return err
		}
		task.Add(1)
	}
	return to.flush(ctx)
}
