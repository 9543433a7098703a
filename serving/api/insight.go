package api

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/serving/insight"
)

// Insights computes growth, retention, funnels and popularity, as insight.Service does.
type Insights interface {
	Growth(ctx context.Context, days int) ([]insight.GrowthDay, error)
	Xd28s(ctx context.Context) ([]insight.Xd28, error)
	Retention(ctx context.Context, weeks int) ([]insight.Cohort, error)
	Funnel(ctx context.Context, steps []schemas.Verb, within time.Duration, days int) ([]insight.FunnelStep, error)
	Popularity(ctx context.Context, limit int) ([]insight.Popular, error)
}

// Defaults of parameters.
const (
	defaultGrowthDays     = 28
	defaultRetentionWeeks = 8
	defaultFunnelDays     = 7
	defaultFunnelWithin   = 24 * time.Hour
	defaultPopular        = 20
)

// listOf writes a list under a name.
func listOf[T any](w http.ResponseWriter, name string, list []T, err error) error {
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, map[string][]T{name: list})
}

func (s *Server) growth(w http.ResponseWriter, r *http.Request) error {
	p := parametersOf(r)
	days := p.number("days", defaultGrowthDays)
	if err := p.err(); err != nil {
		return err
	}
	list, err := s.deps.Insights.Growth(r.Context(), days)
	return listOf(w, "days", list, err)
}

func (s *Server) xd28s(w http.ResponseWriter, r *http.Request) error {
	if err := parametersOf(r).err(); err != nil {
		return err
	}
	list, err := s.deps.Insights.Xd28s(r.Context())
	return listOf(w, "xd28s", list, err)
}

func (s *Server) retention(w http.ResponseWriter, r *http.Request) error {
	p := parametersOf(r)
	weeks := p.number("weeks", defaultRetentionWeeks)
	if err := p.err(); err != nil {
		return err
	}
	list, err := s.deps.Insights.Retention(r.Context(), weeks)
	return listOf(w, "cohorts", list, err)
}

func (s *Server) funnel(w http.ResponseWriter, r *http.Request) error {
	p := parametersOf(r)
	var steps []schemas.Verb
	for _, verb := range strings.Split(p.text("steps"), ",") {
		if _, known := s.deps.Verbs[schemas.Verb(verb)]; !known {
			p.wrong("steps: unknown verb " + quote(verb))
		}
		steps = append(steps, schemas.Verb(verb))
	}
	days, within := p.number("days", defaultFunnelDays), p.duration("within", defaultFunnelWithin)
	if err := p.err(); err != nil {
		return err
	}
	list, err := s.deps.Insights.Funnel(r.Context(), steps, within, days)
	return listOf(w, "steps", list, err)
}

func (s *Server) popularity(w http.ResponseWriter, r *http.Request) error {
	p := parametersOf(r)
	limit := p.number("limit", defaultPopular)
	if err := p.err(); err != nil {
		return err
	}
	list, err := s.deps.Insights.Popularity(r.Context(), limit)
	return listOf(w, "interests", list, err)
}

// number returns an integer. The called service checks its bounds.
func (p *parameters) number(name string, byDefault int) int {
	text := p.text(name)
	if text == "" {
		return byDefault
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		p.wrong(name + " " + quote(text) + " is no whole number")
	}
	return n
}

func (p *parameters) duration(name string, byDefault time.Duration) time.Duration {
	text := p.text(name)
	if text == "" {
		return byDefault
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		p.wrong(name + " " + quote(text) + " is no duration such as 90s, 2m or 24h")
	}
	return d
}
