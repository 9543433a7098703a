package rules

import (
	"slices"

	"github.com/smartfeed/smartfeed/schemas"
)

// Share returns the target share of a source. Exploration and popular pins have none unless Shares names them.
func (f Feed) Share(s schemas.Source) float64 {
	if share, ok := f.Shares[s]; ok || s == schemas.Explore || s == schemas.FromPopular || f.Fills(s) {
		return share
	}
	return f.DefaultShare
}

// Fills reports whether a source fills the places that the shares leave over.
func (f Feed) Fills(s schemas.Source) bool { return slices.Contains(f.Fill, s) }

// Targets returns the target shares of the feed's sources and the given ones, with a sum of 1.
func (f Feed) Targets(sources ...schemas.Source) map[schemas.Source]float64 {
	targets, sum := make(map[schemas.Source]float64, len(f.Shares)+len(sources)), 0.0
	for source, share := range f.Shares {
		targets[source] = share
		sum += share
	}
	for _, source := range sources {
		if _, known := targets[source]; !known {
			targets[source] = f.Share(source)
			sum += f.Share(source)
		}
	}
	if sum > 0 {
		for source := range targets {
			targets[source] /= sum
		}
	}
	return targets
}
