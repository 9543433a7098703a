package workload

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/smartfeed/smartfeed/internal/measure"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/serving/client"
)

// Requests sends the requests of a run.
type Requests struct {
	Config
	Server    *client.Client
	Publisher Publisher
	Features  []string // features to request; see KnownFeatures
}

// Loads returns the loads at a total rate: 60 % visits, 30 % feature requests, 5 % new pins and 5 % actions.
func (r *Requests) Loads(rate float64) []measure.Load {
	return []measure.Load{
		{Name: "publish", Rate: 0.05 * rate, Do: r.publish},
		{Name: "visits", Rate: 0.6 * rate, Do: r.visit},
		{Name: "features", Rate: 0.3 * rate, Do: r.features},
		{Name: "actions", Rate: 0.05 * rate, Do: r.action},
	}
}

// publish creates a pin and returns when its author's watcher has it.
func (r *Requests) publish(ctx context.Context, n int) error {
	pin := schemas.ID(fmt.Sprintf("pin:%s-new-%d", r.Prefix, n))
	if err := r.Publisher.Publish(ctx, []schemas.Line{r.create(r.author(n), pin)}); err != nil {
		return err
	}
	for {
		known, err := r.inPool(ctx, r.watcher(n), pin)
		if known {
			return nil
		}
		select {
		case <-time.After(pollEvery):
		case <-ctx.Done():
			return fmt.Errorf("%s is not in the pool of %s: %w", pin, r.watcher(n), errors.Join(ctx.Err(), err))
		}
	}
}

// pollEvery is the interval between polls of a pool.
const pollEvery = 2 * time.Millisecond

// watched is the number of pins to read from a pool. New pins are the best ones, so it limits the number in flight.
const watched = 200

// inPool reports whether a pin is one of the best of a user's pool.
func (r *Requests) inPool(ctx context.Context, user schemas.UserID, pin schemas.ID) (bool, error) {
	pool, err := r.Server.Pool(ctx, string(user), string(schemas.Following), watched)
	return slices.ContainsFunc(pool.Items, func(item client.PoolItem) bool { return item.Pin == string(pin) }), err
}

func (r *Requests) action(ctx context.Context, n int) error {
	return r.Publisher.Publish(ctx, []schemas.Line{r.act(n)})
}

func (r *Requests) visit(ctx context.Context, n int) error {
	page, err := r.Server.Visit(ctx, string(r.reader(n)), client.VisitOptions{Limit: r.Limit})
	if err != nil {
		return err
	}
	return degraded(page.Degraded)
}

func (r *Requests) features(ctx context.Context, n int) error {
	answer, err := r.Server.Features(ctx, client.FeaturesRequest{Features: r.Features, Users: []string{string(r.reader(n))}})
	if err != nil {
		return err
	}
	return degraded(answer.Degraded)
}

func degraded(what []string) error {
	if len(what) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %s", measure.ErrDegraded, strings.Join(what, ", "))
}

// maxFeatures is the number of features per request. A recommender typically reads as many for one user.
const maxFeatures = 10

// KnownFeatures returns the first features of users that the server defines.
func (r *Requests) KnownFeatures(ctx context.Context) ([]string, error) {
	defs, err := r.Server.Definitions(ctx)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, d := range defs {
		if d.Entity == "user" && len(names) < maxFeatures {
			names = append(names, d.Name)
		}
	}
	if len(names) == 0 {
		return nil, errors.New("the server defines no feature of users")
	}
	return names, nil
}
