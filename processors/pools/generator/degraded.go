package generator

import "slices"

// Reasons why a chunk is degraded.
const (
	degradedReactivating = "reactivating" // some followees have not delivered the backfill for a reactivated user
	degradedAffinities   = "affinities"   // the affinities of the user cannot be read
	degradedPulled       = "pulled"       // the pins of pulled followees are not loaded yet
	degradedPopular      = "popular"      // the popular pins are not loaded yet
	degradedItems        = "items"        // the counts of impressions and saves are not loaded yet
	degradedEmbeddings   = "embeddings"   // the embeddings of pins cannot be read, so similar ones may be adjacent
	degradedModel        = "model"        // the external model did not answer
	degradedSource       = "source:"      // prefix of the name of an external source that did not answer
)

// degrade records a reason, once.
func (c *composition) degrade(reason string) {
	if !slices.Contains(c.degraded, reason) {
		c.degraded = append(c.degraded, reason)
	}
}
