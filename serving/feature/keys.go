package feature

import "go.yaml.in/yaml/v3"

// key reads the value of a key into a definition. It reports an unknown key. internal/reference describes the keys.
func (p *parser) key(d *Definition, key, v *yaml.Node) {
	switch name := key.Value; name {
	case "name":
		d.Name = scalar(p, v, name, parseName)
	case "description":
		d.Description = p.text(v, name)
	case "entity":
		d.Entity = scalar(p, v, name, parseEntity)
	case "verbs":
		d.Verbs = p.verbs(v)
	case "window":
		d.Window = scalar(p, v, name, parseWindow)
	case "where":
		d.Where = p.where(v)
	case "group_by":
		d.GroupBy = parseList(p, v, name, MaxKeys, ParsePath)
	case "aggregate":
		d.Aggregate = scalar(p, v, name, parseAggregate)
	case "of":
		d.Of = scalar(p, v, name, ParsePath)
	case "n":
		d.N = scalar(p, v, name, parseN)
	case "half_life":
		d.HalfLife = scalar(p, v, name, parseHalfLife)
	case "columns":
		d.Columns = parseList(p, v, name, MaxColumns, ParsePath)
	case "embedding":
		d.Embedding = scalar(p, v, name, parseEmbedding)
	case "numerator": // ratio resolves it
		d.Numerator = &Definition{Name: p.text(v, name)}
	case "denominator":
		d.Denominator = &Definition{Name: p.text(v, name)}
	default:
		p.at(key.Line, "unknown key %q", name)
	}
}
