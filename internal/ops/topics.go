package ops

import (
	"context"

	"github.com/smartfeed/smartfeed/topics"
)

// WantedTopics returns the topics that the brokers must have: those of the catalogue and of the generations.
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
