package feature

import (
	"slices"

	"github.com/smartfeed/smartfeed/schemas"
)

// combination checks that the keys of a definition fit together, and sets defaults that depend on other keys.
func (p *parser) combination(d *Definition, lines keyLines) {
	for _, key := range []string{"name", "entity", "aggregate"} {
		if !lines.has(key) {
			p.at(lines.start, "no %s", key)
		}
	}
	if d.Entity == "" || d.Aggregate == "" {
		return
	}
	switch {
	case d.Aggregate == Ratio:
		p.onlyParts(d, lines)
		return
	case d.Entity == Pin:
		p.ofPin(d, lines)
	case d.Entity == Pair:
		p.ofPair(d, lines)
	}
	if d.Entity != Pin {
		p.ofActions(d, lines)
	}
	p.noParts(d, lines)
	p.decay(d, lines)
	p.lookedUp(d, lines)
	p.listLength(d, lines)
}

// ofPin checks that the rows of a pin suffice for the definition.
func (p *parser) ofPin(d *Definition, lines keyLines) {
	const because = "a pin has counts by verb and time, its actors, and the mean of their embeddings"
	switch d.Aggregate {
	case Count, Rate:
		p.none(lines, because, "where", "of")
		if !d.GroupBy.isZero() && d.GroupBy.part != verbPart {
			p.at(lines.of("group_by"), "group_by %q: %s: want verb or none", d.GroupBy, because)
		}
	case CountDistinct:
		p.none(lines, because, "where", "group_by", "verbs")
		p.only(d, Path{part: actorPart}, lines)
	case MeanEmbedding:
		d.Window = 0
		p.none(lines, "the mean of a pin's recent actors is kept as one vector, with the half-life of objects.actors_half_life",
			"where", "group_by", "verbs", "window", "half_life")
		p.only(d, Path{part: actorEmbedding}, lines)
	default:
		p.at(lines.of("aggregate"), "aggregate %s: %s: want count, rate, distinct or mean_embedding", d.Aggregate, because)
	}
}

// none reports each of the keys that is present.
func (p *parser) none(lines keyLines, because string, keys ...string) {
	for _, key := range keys {
		if lines.has(key) {
			p.at(lines.of(key), "%s: %s: want none", key, because)
		}
	}
}

// only checks that of is the given path, which is its default.
func (p *parser) only(d *Definition, path Path, lines keyLines) {
	if d.Of.isZero() {
		d.Of = path
	}
	if d.Of != path {
		p.at(lines.of("of"), "of %q: of a pin it is %s", d.Of, path)
	}
}

// ofPair checks that the definition has groups in which a pin can be looked up, or a vector to compare with the pin's.
func (p *parser) ofPair(d *Definition, lines keyLines) {
	switch {
	case d.Aggregate == Cosine:
		if !d.GroupBy.isZero() {
			p.at(lines.of("group_by"), "group_by: cosine is not taken by group")
		}
	case !d.GroupBy.ofPin():
		p.at(lines.of("group_by"), "group_by %q: a pair has the user's value for the pin's own group: want object or a name below objectAttributes other than embedding", d.GroupBy)
	}
}

// ofActions checks group_by, of and verbs of a definition over the actions of a user.
func (p *parser) ofActions(d *Definition, lines keyLines) {
	r, _ := d.Aggregate.rule()
	if !d.GroupBy.isZero() && !r.grouped && d.Aggregate != Cosine {
		p.at(lines.of("group_by"), "group_by: %s is not taken by group", d.Aggregate)
	}
	if d.Aggregate == Cosine && d.Entity != Pair {
		p.at(lines.of("aggregate"), "aggregate cosine: compares a pin with a user: want entity pair")
	}
	if d.GroupBy.isVector() && d.Entity == User {
		p.at(lines.of("group_by"), "group_by %q: an embedding has no values to group by", d.GroupBy)
	}
	if slices.Contains(d.Verbs, schemas.ImpressionCount) {
		p.at(lines.of("verbs"), "verbs: impressions are counted for entity pin only")
	}
	if d.Of.isZero() {
		switch {
		case r.of == valuesAt:
			d.Of = Path{part: objectPart}
		case d.Aggregate == Cosine:
			d.Of = Path{part: objectEmbedding}
		}
	}
	p.taken(d, r, lines.of("of"))
}

// taken checks the input of an aggregate.
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

// listLength checks n and sets its default.
func (p *parser) listLength(d *Definition, lines keyLines) {
	r, _ := d.Aggregate.rule()
	switch {
	case r.n && d.N == 0:
		d.N = DefaultN
	case !r.n && d.N != 0:
		p.at(lines.of("n"), "n: %s has no length: want none", d.Aggregate)
	}
}

// decay checks half_life.
func (p *parser) decay(d *Definition, lines keyLines) {
	if r, _ := d.Aggregate.rule(); d.HalfLife != 0 && !r.decays {
		p.at(lines.of("half_life"), "half_life: %s does not decay: want none", d.Aggregate)
	}
}

// lookedUp checks lookup, which requires the pins' embeddings.
func (p *parser) lookedUp(d *Definition, lines keyLines) {
	if d.Lookup && (d.Entity == Pin || d.Of.part != objectEmbedding) {
		p.at(lines.of("lookup"), "lookup: only objectAttributes.embedding of entity user or pair is looked up by key")
	}
}

// parts are the names of the two parts of a ratio.
type parts struct{ numerator, denominator string }

// ratio is a ratio whose parts are resolved after all definitions have been read.
type ratio struct {
	index int
	parts parts
	lines keyLines
}

// onlyParts checks that a ratio has its parts and no keys that belong to the parts, such as the window and the
// grouping.
func (p *parser) onlyParts(d *Definition, lines keyLines) {
	d.Window = 0
	p.none(lines, "a ratio has those of its parts", "verbs", "window", "where", "group_by", "of", "n", "half_life", "lookup")
	for _, key := range []string{"numerator", "denominator"} {
		if !lines.has(key) {
			p.at(lines.start, "no %s: want the name of a feature", key)
		}
	}
}

func (p *parser) noParts(d *Definition, lines keyLines) {
	p.none(lines, string(d.Aggregate)+" is no ratio", "numerator", "denominator")
}

// ratio resolves the parts of a ratio and checks that they fit together.
func (p *parser) ratio(defs []Definition, r ratio) {
	d := &defs[r.index]
	p.feature = d.Name
	defer func() { p.feature = "" }()
	d.Numerator = p.part(defs, d, "numerator", r.parts.numerator, r.lines)
	d.Denominator = p.part(defs, d, "denominator", r.parts.denominator, r.lines)
	if d.Numerator == nil || d.Denominator == nil {
		return
	}
	d.GroupBy = d.Numerator.GroupBy
	if d.GroupBy != d.Denominator.GroupBy {
		p.at(r.lines.of("denominator"), "denominator %s: want the same group_by as %s", d.Denominator.Name, d.Numerator.Name)
	}
}

// part returns the definition with the name, or nil if it does not exist or cannot be part of a ratio.
func (p *parser) part(defs []Definition, d *Definition, key, name string, lines keyLines) *Definition {
	i := slices.IndexFunc(defs, func(other Definition) bool { return other.Name == name })
	if name == "" {
		return nil // already reported
	}
	if i < 0 {
		p.at(lines.of(key), "%s %q: there is no such feature in this file", key, name)
		return nil
	}
	of := defs[i]
	if rule, _ := of.Aggregate.rule(); of.Entity != d.Entity || !rule.grouped {
		p.at(lines.of(key), "%s %s: want a feature of entity %s that is a number: count, rate, sum, mean, min, max or distinct", key, name, d.Entity)
		return nil
	}
	return &of
}
