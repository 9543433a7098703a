package ops

import (
	"context"
	"errors"

	"github.com/smartfeed/smartfeed/topics"
)

// WantedTopics returns the topics that the brokers should have: those of the catalogue and of the generations.
func WantedTopics(ctx context.Context, k topics.Kafka) ([]topics.Topic, error) {
	profile, err := topics.ProfileOf(ctx, k)
	if err != nil {
		return nil, err
	}
	own, err := topics.TopicsOfGenerations(ctx, k, profile)
	if err != nil {
		return nil, err
	}
	return append(topics.Catalogue(profile), own...), nil
}

// Prune deletes the topics and consumer groups of the former generations, and returns the deleted ones. With dryRun it
// only returns them. A generation that still has members is not deleted, and the error names it.
func Prune(ctx context.Context, k topics.Kafka, dryRun bool) (done []topics.FormerGeneration, err error) {
	profile, err := topics.ProfileOf(ctx, k)
	if err != nil {
		return nil, err
	}
	list, err := topics.FormerGenerations(ctx, k)
	if err != nil || dryRun {
		return list, err
	}
	var problems []error
	for _, f := range list {
		err := topics.DeleteFormer(ctx, k, profile, f)
		if err == nil {
			done = append(done, f)
		}
		problems = append(problems, err)
	}
	return done, errors.Join(problems...)
}
