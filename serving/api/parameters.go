package api

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/smartfeed/smartfeed/schemas"
)

// parameters reads the parts of a request line and gathers what is wrong with them, so that one answer names it all.
type parameters struct {
	r        *http.Request
	query    url.Values
	known    map[string]bool
	problems []string
}

func parametersOf(r *http.Request) *parameters {
	p := &parameters{r: r, known: map[string]bool{}}
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		p.wrong("the query string is malformed")
	}
	p.query = query
	return p
}

func (p *parameters) wrong(problem string) { p.problems = append(p.problems, problem) }

// text returns a query parameter, "" if it is absent.
func (p *parameters) text(name string) string {
	p.known[name] = true
	values := p.query[name]
	switch len(values) {
	case 0:
		return ""
	case 1:
		return values[0]
	}
	p.wrong(name + " is given " + strconv.Itoa(len(values)) + " times")
	return ""
}

// limit returns the parameter limit, 1 to most.
func (p *parameters) limit(byDefault, most int) int {
	text := p.text("limit")
	if text == "" {
		return byDefault
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > most {
		p.wrong("limit " + strconv.Quote(text) + " is no number from 1 to " + strconv.Itoa(most))
	}
	return n
}

// id parses a wildcard of the path.
func id[T ~string](p *parameters, name string, parse func(string) (T, error)) T {
	v, err := parse(p.r.PathValue(name))
	if err != nil {
		p.wrong(err.Error())
	}
	return v
}

// err returns a 400 that names every problem, unknown query parameters among them, or nil.
func (p *parameters) err() error {
	for name := range p.query {
		if !p.known[name] {
			p.wrong("no parameter " + strconv.Quote(name) + " is known here")
		}
	}
	if len(p.problems) == 0 {
		return nil
	}
	bad := problem(http.StatusBadRequest, "%s", strings.Join(p.problems, "; "))
	bad.Errors = p.problems
	return bad
}

func (p *parameters) user() schemas.UserID { return id(p, "user", schemas.ParseUserID) }
