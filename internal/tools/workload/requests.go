package workload

import (
	"context"
	"errors"
	"fmt"
	"strings"

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

	watches [authors]watch
}

// Kinds returns the kinds of requests, in the order of the report.
func Kinds() []string { return []string{"publish", "visits", "features", "actions"} }

// Load returns the load of one of the Kinds at a rate.
func (r *Requests) Load(kind string, rate float64) (measure.Load, error) {
	l := measure.Load{Name: kind, Rate: rate}
	switch kind {
	case "publish":
		l.Do = r.publish
	case "visits":
		l.Do = r.visit
	case "features":
		l.Do = r.features
	case "actions":
		l.Do = func(ctx context.Context, n int) error {
			return r.Publisher.Publish(ctx, []schemas.Line{r.act(n)})
		}
	default:
		return l, fmt.Errorf("unknown load %q: want one of %s", kind, strings.Join(Kinds(), ", "))
	}
	return l, nil
}

// publish creates a pin and returns when its author's watcher has it. Watch must be running.
func (r *Requests) publish(ctx context.Context, n int) error {
	pin := schemas.ID(fmt.Sprintf("pin:%s-new-%d", r.Prefix, n))
	w := &r.watches[n%authors]
	seen := w.wait(pin)
	defer w.forget(pin)
	if err := r.Publisher.Publish(ctx, []schemas.Line{r.create(r.author(n), pin)}); err != nil {
		return err
	}
	select {
	case <-seen:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%s is not in the pool of %s: %w", pin, r.watcher(n), errors.Join(ctx.Err(), w.problem()))
	}
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
