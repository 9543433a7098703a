package schemas

import (
	"fmt"
	"strings"
	"time"
)

// The bounds of input events. An event that exceeds one is rejected, never truncated.
const (
	MaxEventIDBytes      = 128
	MaxInterests         = 64   // of a pin, a user or a candidate; repeats do not count
	MaxAttributes        = 64   // of a pin, a user or an action
	MaxAttributeName     = 64   // bytes
	MaxAttributeBytes    = 1024 // of one value
	MaxTitleBytes        = 512
	MaxLinkBytes         = 2048
	MaxSurfaceBytes      = 128
	MaxSourceBytes       = 64
	MaxVerbBytes         = 64
	MaxEmbedding         = 2048 // numbers
	MaxCandidates        = 1000 // of an offer
	MaxClientImpressions = 100  // pins of a record; ClientImpressions.Actions numbers them with two digits
)

// MaxAhead is the maximum time between an event's arrival and a later event time, to allow for differences between clocks.
// There is no lower bound.
const MaxAhead = 5 * time.Minute

// maxProblems is the maximum number of problems that are reported for one event.
const maxProblems = 20

// problems collects the problems of one event.
type problems struct {
	listed []string
	more   int // problems that are not reported
}

// note adds err, if it is not nil, under the field's name.
func (p *problems) note(name string, err error) {
	switch {
	case err == nil:
	case len(p.listed) == maxProblems:
		p.more++
	default:
		p.listed = append(p.listed, name+": "+err.Error())
	}
}

func (p *problems) notef(name, format string, args ...any) {
	p.note(name, fmt.Errorf(format, args...))
}

// err returns all problems as one *BadRecordError, or nil if there are none.
func (p *problems) err() error {
	if len(p.listed) == 0 {
		return nil
	}
	reason := strings.Join(p.listed, "; ")
	if p.more > 0 {
		reason += fmt.Sprintf("; and %d more", p.more)
	}
	return Bad(reason)
}

// notAhead notes a time that is more than MaxAhead after arrival.
func (p *problems) notAhead(name string, t, arrival Micros) {
	const longest = 1e6 * time.Hour // a time.Duration can hold at most 2.5 times as much
	if t <= arrival+Micros(MaxAhead/time.Microsecond) {
		return
	}
	ahead := time.Duration(min(t-arrival, Micros(longest/time.Microsecond))) * time.Microsecond
	p.notef(name, "%s ahead of its arrival, at most %s are allowed", ahead.Round(time.Second), MaxAhead)
}

func (p *problems) count(name string, n, limit int) {
	if n > limit {
		p.notef(name, "%d entries, at most %d are allowed", n, limit)
	}
}
