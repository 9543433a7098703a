package api

import (
	"cmp"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
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

// parsed returns a parameter, or byDefault if it is absent. want describes the accepted values.
func parsed[T any](p *parameters, name string, byDefault T, want string, parse func(string) (T, error)) T {
	text := p.text(name)
	if text == "" {
		return byDefault
	}
	v, err := parse(text)
	if err != nil {
		p.wrong(name + " " + quote(text) + ": want " + want)
	}
	return v
}

// limit returns the parameter limit, 1 to most.
func (p *parameters) limit(byDefault, most int) int { return p.within("limit", byDefault, most) }

// within returns a number from 1 to most.
func (p *parameters) within(name string, byDefault, most int) int {
	return parsed(p, name, byDefault, "a number from 1 to "+strconv.Itoa(most), func(text string) (int, error) {
		n, err := strconv.Atoi(text)
		if n < 1 || n > most {
			return 0, strconv.ErrRange
		}
		return n, err
	})
}

// number returns an integer. The called service checks its bounds.
func (p *parameters) number(name string, byDefault int) int {
	return parsed(p, name, byDefault, "a whole number", strconv.Atoi)
}

func (p *parameters) duration(name string, byDefault time.Duration) time.Duration {
	return parsed(p, name, byDefault, "a duration such as 90s, 2m or 24h", time.ParseDuration)
}

// boolean returns a parameter that is true or false, by default false.
func (p *parameters) boolean(name string) bool {
	return oneOf(p, name, []string{"true", "false"}) == "true"
}

// idempotencyKey returns the header Idempotency-Key, or "" if it is absent or empty.
func (p *parameters) idempotencyKey() string {
	const name, most = "Idempotency-Key", 256
	key := p.r.Header.Get(name)
	if len(key) > most {
		p.wrong(name + ": want at most " + strconv.Itoa(most) + " bytes")
	}
	return key
}

// feed returns the parameter feed.
func (p *parameters) feed() string { return cmp.Or(p.text("feed"), DefaultFeed) }

// oneOf returns a parameter with one of the given values, or "" if it is absent.
func oneOf[T ~string](p *parameters, name string, values []T) T {
	return parsed(p, name, "", "one of "+strings.Join(schemas.Strings(values), ", "), func(text string) (T, error) {
		if !slices.Contains(values, T(text)) {
			return "", strconv.ErrRange
		}
		return T(text), nil
	})
}

// source returns the parameter source, which is required.
func (p *parameters) source() schemas.Source {
	text := p.text("source")
	switch {
	case text == "":
		p.wrong("source is missing: following, interest, or a source of candidates")
	case len(text) > schemas.MaxSourceBytes, !utf8.ValidString(text), strings.ContainsFunc(text, unicode.IsControl):
		p.wrong("source " + quote(text) + ": want the name of a source")
	}
	return schemas.Source(text)
}

// pin returns the parameter pin, which is required.
func (p *parameters) pin() schemas.PinID {
	text := p.text("pin")
	if text == "" {
		p.wrong("pin is missing")
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
			p.wrong("unknown parameter " + quote(name))
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
	text, own := p.text("viewer"), answerOf(p.r.Context()).caller.User
	switch {
	case text == "":
		return own
	case own != "" && text != string(own):
		p.wrong("viewer " + quote(text) + ": want the user of the token; only a service can name another user")
		return own
	}
	viewer, err := schemas.ParseUserID(text)
	if err != nil {
		p.wrong("viewer: " + err.Error())
	}
	return viewer
}
