package api

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/smartfeed/smartfeed/schemas"
)

// parameters reads the parts of a request line and collects all problems, so that one answer lists them all.
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

// text returns a query parameter, or "" if it is absent or empty.
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
		p.wrong("limit " + quote(text) + " is no number from 1 to " + strconv.Itoa(most))
	}
	return n
}

// source returns the parameter source, which is required.
func (p *parameters) source() schemas.Source {
	text := p.text("source")
	switch {
	case text == "":
		p.wrong("source is missing: following, interest, or a source of candidates")
	case len(text) > schemas.MaxSourceBytes, !utf8.ValidString(text), strings.ContainsFunc(text, unicode.IsControl):
		p.wrong("source " + quote(text) + " is no name of a source")
	}
	return schemas.Source(text)
}

// pin returns the parameter pin, which is required.
func (p *parameters) pin() schemas.PinID {
	text := p.text("pin")
	if text == "" {
		p.wrong("pin is missing: the one that is asked about")
		return ""
	}
	pin, err := schemas.ParsePinID(text)
	if err != nil {
		p.wrong("pin: " + err.Error())
	}
	return pin
}

// quote quotes a caller's text, at most 64 bytes of it.
func quote(text string) string {
	const most = 64
	if len(text) > most {
		return strconv.Quote(text[:most]) + "…"
	}
	return strconv.Quote(text)
}

// id parses a wildcard of the path.
func id[T ~string](p *parameters, name string, parse func(string) (T, error)) T {
	v, err := parse(p.r.PathValue(name))
	if err != nil {
		p.wrong(err.Error())
	}
	return v
}

// err returns a 400 that lists every problem, including unknown query parameters, or nil.
func (p *parameters) err() error {
	for _, name := range slices.Sorted(maps.Keys(p.query)) {
		if !p.known[name] {
			p.wrong("no parameter " + quote(name) + " is known here")
		}
	}
	if len(p.problems) == 0 {
		return nil
	}
	return listed(p.problems)
}

func (p *parameters) user() schemas.UserID { return id(p, "user", schemas.ParseUserID) }

// viewer returns the user for whom the answer is: the user of the token, or the user that a service names. "" means no
// particular user.
func (p *parameters) viewer() schemas.UserID {
	text, own := p.text("viewer"), callerOf(p.r).User
	switch {
	case text == "":
		return own
	case own != "" && text != string(own):
		p.wrong("viewer " + quote(text) + " is not the user of the token: only a service can name another one")
		return own
	}
	viewer, err := schemas.ParseUserID(text)
	if err != nil {
		p.wrong("viewer: " + err.Error())
	}
	return viewer
}
