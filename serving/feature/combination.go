package feature

import (
	"slices"

	"github.com/smartfeed/smartfeed/schemas"
)

// combination judges what goes together in a definition, and fills in what depends on other keys.
func (p *parser) combination(d *Definition, lines keyLines) {
	for _, key := range []string{"name", "entity", "aggregate"} {
		if !lines.has(key) {
			p.at(lines.start, "no %s", key)
		}
	}
	if d.Entity == "" || d.Aggregate == "" {
		return
	}
	switch d.Entity {
	case Pin:
		p.ofPin(d, lines)
	case Pair:
		p.ofPair(d, lines)
	}
	if d.Entity != Pin {
		p.ofActions(d, lines)
	}
	p.listLength(d, lines)
}

// ofPin holds a definition to what the counts of a pin can tell.
func (p *parser) ofPin(d *Definition, lines keyLines) {
	const because = "a pin has counts by verb and time only"
	if d.Aggregate != Count && d.Aggregate != Rate {
		p.at(lines.of("aggregate"), "aggregate %s: %s: want count or rate", d.Aggregate, because)
	}
	if len(d.Where) > 0 {
		p.at(lines.of("where"), "where: %s: want none", because)
	}
	if lines.has("of") {
		p.at(lines.of("of"), "of: %s: want none", because)
	}
	if !d.GroupBy.isZero() && d.GroupBy.part != verbPart {
		p.at(lines.of("group_by"), "group_by %q: %s: want verb or none", d.GroupBy, because)
	}
}

// ofPair holds a definition to groups that a pin can be looked up in.
func (p *parser) ofPair(d *Definition, lines keyLines) {
	if !d.GroupBy.ofPin() {
		p.at(lines.of("group_by"), "group_by %q: a pair has the user's value for the pin's own group: want object or a name below objectAttributes other than embedding", d.GroupBy)
	}
}

// ofActions judges group_by, of and verbs of a definition over the actions of a user.
func (p *parser) ofActions(d *Definition, lines keyLines) {
	r, _ := d.Aggregate.rule()
	if !d.GroupBy.isZero() && !r.grouped {
		p.at(lines.of("group_by"), "group_by: %s is not taken by group", d.Aggregate)
	}
	if d.GroupBy.isVector() && d.Entity == User {
		p.at(lines.of("group_by"), "group_by %q: an embedding has no values to group by", d.GroupBy)
	}
	if slices.Contains(d.Verbs, schemas.ImpressionCount) {
		p.at(lines.of("verbs"), "verbs: impressions are counted for entity pin only")
	}
	if r.of == valuesAt && d.Of.isZero() {
		d.Of = Path{part: objectPart}
	}
	p.taken(d, r, lines.of("of"))
}

// taken judges what an aggregate is taken of.
func (p *parser) taken(d *Definition, r rule, line int) {
	switch r.of {
	case nothing:
		if !d.Of.isZero() {
			p.at(line, "of: %s is taken of actions: want none", d.Aggregate)
		}
	case numbersAt:
		if !d.Of.isFree() {
			p.at(line, "of %q: %s is taken of numbers: want an attribute below objectAttributes, actorAttributes or verbAttributes", d.Of, d.Aggregate)
		}
	case valuesAt:
		if d.Of.isVector() {
			p.at(line, "of %q: an embedding has no values to count", d.Of)
		}
	case vectorsAt:
		if !d.Of.isVector() {
			p.at(line, "of %q: want objectAttributes.embedding or actorAttributes.embedding", d.Of)
		}
	}
}

// listLength judges n.
func (p *parser) listLength(d *Definition, lines keyLines) {
	r, _ := d.Aggregate.rule()
	switch {
	case r.n && d.N == 0:
		d.N = DefaultN
	case !r.n && d.N != 0:
		p.at(lines.of("n"), "n: %s has no length: want none", d.Aggregate)
	}
}
