package insight_test

import (
	"context"
	"fmt"
	"time"

	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/serving/insight"
)

// perPartition has two users who viewed in each partition, one of whom saved soon after.
type perPartition struct{}

func (perPartition) Insight(_ context.Context, r schemas.InsightRequest) (*schemas.InsightPart, error) {
	return &schemas.InsightPart{Steps: []schemas.FunnelStep{{Verb: r.Funnel.Steps[0], Users: 2}, {Verb: r.Funnel.Steps[1], Users: 1}}}, nil
}

// The service adds up the users of all partitions.
func ExampleService_Funnel() {
	cfg := insight.Config{Partitions: 4, SequenceDays: 35, Timeout: time.Second}
	service := insight.NewService(cfg, perPartition{}, time.Now)
	steps, err := service.Funnel(context.Background(), []schemas.Verb{schemas.View, schemas.Save}, time.Hour, 7)
	for _, step := range steps {
		fmt.Println(step.Verb, step.Users)
	}
	if err != nil {
		fmt.Println(err)
	}
	// Output:
	// view 8
	// save 4
}
