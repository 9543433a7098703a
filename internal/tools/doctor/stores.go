package doctor

import (
	"context"
	"strings"
)

// Names of the checks on stores.
const (
	PrimaryCheck = "feed store"
	StandbyCheck = "standby"
	PinotCheck   = "pinot"
)

// FeedStore returns the check on one cluster of a feed store. verify returns an error for each difference from the
// expected schema, or an error if the cluster is unreachable.
func FeedStore(name string, verify func(context.Context) error) Check {
	return Check{Name: name, Examine: func(ctx context.Context, found *Findings) error {
		err := verify(ctx)
		if err == nil {
			found.OK("reachable, keyspace and tables as configured")
			return nil
		}
		for line := range strings.Lines(reason(ctx, err).Error()) {
			found.Problem(`if the cluster runs, "smartfeed feed-store apply" creates missing tables; otherwise start it; reads use the other store until then`, "%s", strings.TrimSpace(line))
		}
		return nil
	}}
}

// Pinot configures the check on Pinot.
type Pinot struct {
	Answers func(context.Context) (int, []error)    // returns the number of brokers that answer queries, and the errors of the others
	Verify  func(context.Context) ([]string, error) // returns the differences of schema and table
}

// Check returns the check, which examines tables, controller and brokers.
func (p Pinot) Check() Check {
	return Check{Name: PinotCheck, Examine: func(ctx context.Context, found *Findings) error {
		differ, errController := p.Verify(ctx)
		if errController != nil {
			found.Warn(`check pinot.controller: queries work without it, but "smartfeed wait" waits for it, and the alert FeaturesLagging fires`,
				"the controller does not respond: %v", reason(ctx, errController))
		}
		for _, d := range differ {
			found.Problem(`run "smartfeed pinot apply"`, "%s", d)
		}
		p.answers(ctx, found)
		if len(*found) == 0 {
			found.OK("answers queries, tables as configured")
		}
		return nil
	}}
}

// answers reports the brokers that do not answer queries.
func (p Pinot) answers(ctx context.Context, found *Findings) {
	available, failed := p.Answers(ctx)
	for _, err := range failed {
		if available > 0 {
			found.Warn("check pinot.brokers: queries use the other brokers until then", "a broker does not answer queries: %v", reason(ctx, err))
			continue
		}
		found.Problem("check pinot.brokers, and Pinot's servers: responses are degraded and omit features", "no broker answers queries: %v", reason(ctx, err))
	}
}
