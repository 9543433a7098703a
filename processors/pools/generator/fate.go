package generator

import (
	"github.com/smartfeed/smartfeed/processors/rules"
	"github.com/smartfeed/smartfeed/schemas"
)

// fateOf converts the decision of the rules to the terms of the result.
func fateOf(e *rules.Explanation) (schemas.Fate, schemas.Reason) {
	switch e.Fate {
	case rules.Shown:
		return schemas.FateNext, ""
	case rules.Similar:
		return schemas.FateWaiting, schemas.ReasonSimilar
	case rules.Capped:
		return schemas.FateWaiting, schemas.Reason("cap_" + e.Cap)
	case rules.Weak:
		return schemas.FateDeferred, schemas.ReasonWeak
	case rules.Deferred:
		return schemas.FateDeferred, schemas.ReasonDeferredEarlier
	case rules.DeferralExpired:
		return schemas.FateOut, schemas.ReasonDeferralExpired
	case rules.NoShare:
		return schemas.FateWaiting, schemas.ReasonNoShare
	}
	return schemas.FateWaiting, schemas.ReasonOutranked
}
