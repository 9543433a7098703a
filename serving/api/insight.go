package api

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/smartfeed/smartfeed/internal/experiment"
	"github.com/smartfeed/smartfeed/schemas"
)

// Insights computes growth, retention, funnels, experiments and popularity, as insight.Service does.
type Insights interface {
	Growth(ctx context.Context, days int) ([]schemas.GrowthDay, error)
	Xd28s(ctx context.Context) ([]schemas.Xd28, error)
	Retention(ctx context.Context, weeks int) ([]schemas.Cohort, error)
	Funnel(ctx context.Context, steps []schemas.Verb, within time.Duration, days int) ([]schemas.FunnelStep, error)
	Experiments(ctx context.Context, verbs []schemas.Verb, days int) ([]experiment.Experiment, error)
	Popularity(ctx context.Context, limit int) ([]schemas.Popular, error)
}

// Defaults of parameters.
const (
	defaultGrowthDays     = 28
	defaultRetentionWeeks = 8
	defaultFunnelDays     = 7
	defaultFunnelWithin   = 24 * time.Hour
	defaultExperimentDays = 7
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
	steps := s.verbs(p, "steps", p.text("steps"))
	days, within := p.number("days", defaultFunnelDays), p.duration("within", defaultFunnelWithin)
	return func(ctx context.Context) (any, error) { return s.deps.Insights.Funnel(ctx, steps, within, days) }
}

// verbs returns the verbs of a parameter.
func (s *Server) verbs(p *parameters, name, text string) (verbs []schemas.Verb) {
	for _, verb := range strings.Split(text, ",") {
		if _, known := s.deps.Verbs()[schemas.Verb(verb)]; !known {
			p.wrong(name + ": unknown verb " + quote(verb))
		}
		verbs = append(verbs, schemas.Verb(verb))
	}
	return verbs
}

func (s *Server) experiments(p *parameters) computation {
	days, verbs := p.number("days", defaultExperimentDays), slices.Sorted(maps.Keys(s.deps.Verbs()))
	if text := p.text("actions"); text != "" {
		verbs = s.verbs(p, "actions", text)
	}
	return func(ctx context.Context) (any, error) { return s.deps.Insights.Experiments(ctx, verbs, days) }
}

func (s *Server) popularity(p *parameters) computation {
	limit := p.number("limit", defaultPopular)
	return func(ctx context.Context) (any, error) { return s.deps.Insights.Popularity(ctx, limit) }
}
