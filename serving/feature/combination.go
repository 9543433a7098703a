package feature

import "slices"

// combination checks that the keys of a definition fit together, and sets defaults that depend on other keys.
type combination struct {
	*parser
	*Definition
	lines keyLines
}

// want reports a mistake in the line of a key, unless ok.
func (c *combination) want(ok bool, key, format string, args ...any) {
	if !ok {
		c.at(c.lines.of(key), format, args...)
	}
}

// none reports each of the keys that is present.
func (c *combination) none(because string, keys ...string) {
	for _, key := range keys {
		c.want(!c.lines.has(key), key, "%s: %s: want none", key, because)
	}
}

func (c *combination) check() {
	for _, key := range []string{"name", "entity", "aggregate"} {
		c.want(c.lines.has(key), key, "no %s", key)
	}
	switch {
	case c.Entity == "" || c.Aggregate == "":
		return
	case c.Aggregate == Ratio: // the window, the grouping and so on belong to the parts
		c.Window = 0
		c.none("a ratio has those of its parts", "verbs", "window", "where", "group_by", "of", "n", "half_life", "columns", "embedding")
		for _, key := range []string{"numerator", "denominator"} {
			c.want(c.lines.has(key), key, "no %s: want the name of a feature", key)
		}
		return
	case c.Entity == Pin:
		c.ofPin()
	case c.Entity == Pair:
		c.ofPair()
	}
	if c.Entity != Pin {
		c.ofActions()
	}
	c.none(string(c.Aggregate)+" is not a ratio", "numerator", "denominator")
	r, _ := c.Aggregate.rule()
	c.want(c.HalfLife == 0 || r.decays, "half_life", "half_life: %s does not decay: want none", c.Aggregate)
	c.want(c.N == 0 || r.n || len(c.GroupBy) > 0 && c.Entity != Pair, "n", "n: %s has no length: want none", c.Aggregate)
	if r.n && c.N == 0 {
		c.N = DefaultN
	}
	if c.Aggregate == TakeSequence {
		c.ofSequence()
	} else {
		c.none(string(c.Aggregate)+" has no columns", "columns", "embedding")
	}
}

// ofSequence checks the columns, and that the definition is one of a user.
func (c *combination) ofSequence() {
	c.Window = 0
	c.none("a sequence is kept by count", "window")
	c.want(c.Entity == User, "entity", "entity %s: a sequence has the actions of a user: want user", c.Entity)
	c.want(c.N <= MaxSequence, "n", "n: %d: want at most %d for a sequence", c.N, MaxSequence)
	if !c.lines.has("columns") {
		c.Columns = []Path{{part: objectPart}, {part: verbPart}, {part: verbSurface}}
	}
	c.want(len(c.Columns) > 0, "columns", "columns: none: want at least one path")
	for _, p := range c.Columns {
		c.want(!p.isList(), "columns", "columns %q: an action can have several values: want a path with one", p)
	}
	vectors := slices.ContainsFunc(c.Columns, Path.isVector)
	c.want(vectors || c.Embedding == "", "embedding", "embedding: no column is an embedding: want none")
	if vectors && c.Embedding == "" {
		c.Embedding = Float32
	}
}

// ofPin checks that the rows of a pin suffice for the definition.
func (c *combination) ofPin() {
	const because = "a pin has counts by verb and time, its actors, and the mean of their embeddings"
	switch c.Aggregate {
	case Count, Rate:
		c.none(because, "where", "of")
		c.eachKey(func(p Path) bool { return p.part == verbPart }, because+": want verb or none")
	case CountDistinct:
		c.none(because, "where", "group_by", "verbs")
		c.only(Path{part: actorPart})
	case MeanEmbedding:
		c.Window = 0
		c.none("the mean of a pin's recent actors is kept as one vector, with the half-life of objects.actor_embedding_half_life",
			"where", "group_by", "verbs", "window", "half_life")
		c.only(Path{part: actorEmbedding})
	default:
		c.want(false, "aggregate", "aggregate %s: %s: want count, rate, distinct or mean_embedding", c.Aggregate, because)
	}
}

// only checks that of is the given path, which is its default.
func (c *combination) only(path Path) {
	c.defaultOf(path)
	c.want(c.Of == path, "of", "of %q: of a pin it is %s", c.Of, path)
}

func (c *combination) defaultOf(path Path) {
	if c.Of.isZero() {
		c.Of = path
	}
}

// ofPair checks that the definition has groups in which a pin can be looked up, or a vector to compare with the pin's.
func (c *combination) ofPair() {
	if c.Aggregate == Cosine {
		c.want(len(c.GroupBy) == 0, "group_by", "group_by: cosine is not taken by group")
		return
	}
	const want = "a pair has the user's value for the pin's own group: want object or a name below objectAttributes other than embedding"
	c.want(len(c.GroupBy) > 0, "group_by", `group_by "": %s`, want)
	c.eachKey(Path.ofPin, want)
}

// eachKey checks each path of group_by.
func (c *combination) eachKey(ok func(Path) bool, problem string) {
	for _, p := range c.GroupBy {
		c.want(ok(p), "group_by", "group_by %q: %s", p, problem)
	}
}

// ofActions checks group_by, of and verbs of a definition over the actions of a user.
func (c *combination) ofActions() {
	r, _ := c.Aggregate.rule()
	c.want(len(c.GroupBy) == 0 || r.grouped || c.Aggregate == Cosine, "group_by", "group_by: %s is not taken by group", c.Aggregate)
	c.want(c.Aggregate != Cosine || c.Entity == Pair, "aggregate", "aggregate cosine: compares a pin with a user: want entity pair")
	c.eachKey(func(p Path) bool { return !p.isVector() || c.Entity != User }, "an embedding has no values to group by")
	switch r.of {
	case nothing, columns:
		c.want(c.Of.isZero(), "of", "of: %s is taken of actions: want none", c.Aggregate)
	case numbersAt:
		c.want(c.Of.isFree(), "of",
			"of %q: %s is taken of numbers: want an attribute below objectAttributes, actorAttributes or verbAttributes", c.Of, c.Aggregate)
	case valuesAt:
		c.defaultOf(Path{part: objectPart})
		c.want(!c.Of.isVector(), "of", "of %q: an embedding has no values to count", c.Of)
	case vectorsAt:
		if c.Aggregate == Cosine {
			c.defaultOf(Path{part: objectEmbedding})
		}
		c.want(c.Of.isVector(), "of", "of %q: want objectAttributes.embedding or actorAttributes.embedding", c.Of)
	}
}

// ratio replaces the names of the parts of a ratio by their definitions, and checks that they fit together.
func (p *parser) ratio(defs []Definition, d *Definition, lines keyLines) {
	d.Numerator = p.part(defs, d, "numerator", d.Numerator, lines)
	d.Denominator = p.part(defs, d, "denominator", d.Denominator, lines)
	if d.Numerator == nil || d.Denominator == nil {
		return
	}
	d.GroupBy = d.Numerator.GroupBy
	if !slices.Equal(d.GroupBy, d.Denominator.GroupBy) {
		p.at(lines.of("denominator"), "denominator %s: want the same group_by as %s", d.Denominator.Name, d.Numerator.Name)
	}
}

// part returns the definition with the name of of, or nil if it does not exist or cannot be part of a ratio.
func (p *parser) part(defs []Definition, d *Definition, key string, of *Definition, lines keyLines) *Definition {
	if of == nil || of.Name == "" {
		return nil // already reported
	}
	i := slices.IndexFunc(defs, func(other Definition) bool { return other.Name == of.Name })
	if i < 0 {
		p.at(lines.of(key), "%s %q: no such feature in this file", key, of.Name)
		return nil
	}
	found := defs[i]
	if rule, _ := found.Aggregate.rule(); found.Entity != d.Entity || !rule.grouped {
		p.at(lines.of(key), "%s %s: want a feature of entity %s that is a number: count, rate, sum, mean, min, max or distinct", key, of.Name, d.Entity)
		return nil
	}
	if found.N > 0 {
		p.at(lines.of(key), "%s %s: has only its n largest groups: want a feature without n", key, of.Name)
	}
	return &found
}
