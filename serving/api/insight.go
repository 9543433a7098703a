package api

import (
	"context"
	"strings"
	"time"

	"github.com/smartfeed/smartfeed/schemas"
)

// Insights computes growth, retention, funnels and popularity, as insight.Service does.
type Insights interface {
	Growth(ctx context.Context, days int) ([]schemas.GrowthDay, error)
	Xd28s(ctx context.Context) ([]schemas.Xd28, error)
	Retention(ctx context.Context, weeks int) ([]schemas.Cohort, error)
	Funnel(ctx context.Context, steps []schemas.Verb, within time.Duration, days int) ([]schemas.FunnelStep, error)
	Popularity(ctx context.Context, limit int) ([]schemas.Popular, error)
}

// Defaults of parameters.
const (
	defaultGrowthDays     = 28
	defaultRetentionWeeks = 8
	defaultFunnelDays     = 7
	defaultFunnelWithin   = 24 * time.Hour
	defaultPopular        = 20
)

func (s *Server) growth(p *parameters) computation {
	days := p.number("days", defaultGrowthDays)
	return func(ctx context.Context) (any, error) { return s.deps.Insights.Growth(ctx, days) }
}

func (s *Server) xd28s(*parameters) computation {
	return func(ctx context.Context) (any, error) { return s.deps.Insights.Xd28s(ctx) }
}

func (s *Server) retention(p *parameters) computation {
	weeks := p.number("weeks", defaultRetentionWeeks)
	return func(ctx context.Context) (any, error) { return s.deps.Insights.Retention(ctx, weeks) }
}

func (s *Server) funnel(p *parameters) computation {
	var steps []schemas.Verb
	for _, verb := range strings.Split(p.text("steps"), ",") {
		if _, known := s.deps.Verbs()[schemas.Verb(verb)]; !known {
			p.wrong("steps: unknown verb " + quote(verb))
		}
		steps = append(steps, schemas.Verb(verb))
	}
	days, within := p.number("days", defaultFunnelDays), p.duration("within", defaultFunnelWithin)
	return func(ctx context.Context) (any, error) { return s.deps.Insights.Funnel(ctx, steps, within, days) }
}

func (s *Server) popularity(p *parameters) computation {
	limit := p.number("limit", defaultPopular)
	return func(ctx context.Context) (any, error) { return s.deps.Insights.Popularity(ctx, limit) }
}
