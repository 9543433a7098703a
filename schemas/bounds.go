package schemas

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// The bounds of input events. An event that exceeds one is rejected, never truncated.
const (
	MaxEventIDBytes   = 128
	MaxInterests      = 64   // of a pin, a user or a candidate; repeats do not count
	MaxAttributes     = 64   // of a pin, a user or an action
	MaxAttributeName  = 64   // bytes
	MaxAttributeBytes = 1024 // of one value
	MaxTitleBytes     = 512
	MaxLinkBytes      = 2048
	MaxSurfaceBytes   = 128
	MaxSourceBytes    = 64
	MaxVerbBytes      = 64
	MaxEmbedding      = 2048 // numbers
	MaxCandidates     = 1000 // of an offer
)

// MaxAhead is how far an event's time may be after its arrival, to allow for differences between clocks. There is no lower
// bound.
const MaxAhead = 5 * time.Minute

// maxProblems is the maximum number of problems that are reported for one event.
const maxProblems = 20

// problems collects the problems of one event.
type problems struct {
	told []string
	more int // problems that are not reported
}

// note adds err, if it is not nil, under the field's name.
func (p *problems) note(name string, err error) {
	switch {
	case err == nil:
	case len(p.told) == maxProblems:
		p.more++
	default:
		p.told = append(p.told, name+": "+err.Error())
	}
}

func (p *problems) notef(name, format string, args ...any) {
	p.note(name, fmt.Errorf(format, args...))
}

// err returns all problems as one *BadRecordError, or nil if there are none.
func (p *problems) err() error {
	if len(p.told) == 0 {
		return nil
	}
	reason := strings.Join(p.told, "; ")
	if p.more > 0 {
		reason += fmt.Sprintf("; and %d more", p.more)
	}
	return Bad(reason)
}

func (p *problems) time(name string, t, arrival Micros) {
	const longest = 1e6 * time.Hour // a time.Duration can hold at most 2.5 times as much
	if t <= arrival+Micros(MaxAhead/time.Microsecond) {
		return
	}
	ahead := time.Duration(min(t-arrival, Micros(longest/time.Microsecond))) * time.Microsecond
	p.notef(name, "%s ahead of its arrival, at most %s are allowed", ahead.Round(time.Second), MaxAhead)
}

func (p *problems) id(name, id string, kinds ...string) { p.note(name, parseKind(id, kinds...)) }

func (p *problems) facets(board BoardID, interests []InterestID) {
	if board != "" {
		p.id("board", string(board), KindBoard)
	}
	p.count("interests", len(interests), MaxInterests)
	for i, id := range interests[:min(len(interests), MaxInterests)] {
		p.id(fmt.Sprintf("interests[%d]", i), string(id), KindInterest)
	}
}

func (p *problems) count(name string, n, most int) {
	if n > most {
		p.notef(name, "%d entries, at most %d are allowed", n, most)
	}
}

func (p *problems) text(name, s string, maxBytes int) {
	switch {
	case len(s) > maxBytes:
		p.notef(name, "%d bytes, at most %d are allowed", len(s), maxBytes)
	case !utf8.ValidString(s):
		p.note(name, errText)
	}
}

// attributes checks names in sorted order, so that the problems of an event are always the same.
func (p *problems) attributes(m map[string]string) {
	p.count("attributes", len(m), MaxAttributes)
	if len(m) > MaxAttributes {
		return
	}
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		p.note("attributes: name "+quote(name), checkText(name, MaxAttributeName))
		p.text("attributes: "+quote(name), m[name], MaxAttributeBytes)
	}
}

func (p *problems) embedding(vector []float32) {
	p.count("embedding", len(vector), MaxEmbedding)
	for i, x := range vector {
		if math.IsNaN(float64(x)) || math.IsInf(float64(x), 0) {
			p.notef("embedding", "number %d is not finite", i)
			return
		}
	}
}

func (p *problems) finite(name string, x float64) {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		p.note(name, errors.New("not a finite number"))
	}
}

func checkKey(key, want string) error {
	if key == want {
		return nil
	}
	return badf("key %s: want the record's %s", quote(key), quote(want))
}
