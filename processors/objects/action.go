package objects

import "github.com/smartfeed/smartfeed/schemas"

// attributes returns the attributes of a version for a join with actions. The author, creation and quality are those of the
// pin, regardless of the sender of the version. The version number is the newest.
func attributes(p *pin, version *schemas.PinEvent) schemas.ObjectAttributes {
	now, facets := p.version(), version.Facets()
	facets.Author = now.Author
	return schemas.ObjectAttributes{
		Facets:     facets,
		Embedding:  version.Embedding,
		Attributes: version.Attributes,
		Version:    now.Version,
		Created:    now.Created,
		Quality:    now.Quality,
	}
}

// stepOf returns the start of the step of counts that contains t.
func stepOf(t schemas.Micros) schemas.Micros {
	rest := t % schemas.ItemStep
	if rest < 0 { // before 1970
		rest += schemas.ItemStep
	}
	return t - rest
}
