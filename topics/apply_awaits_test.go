package topics_test

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/smartfeed/smartfeed/internal/testkit/faultnet"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/topics"
)

// Kafka brokers report a setting a moment after they accept it.
func TestApply_WaitsForAlteredSettings(t *testing.T) {
	w := newBareWire(t)
	must.Get(topics.Apply(t.Context(), w.Kafka, topics.Catalogue(oneBroker())))(t)
	longer := oneBroker()
	longer.Actions = 30 * 24 * time.Hour
	const late = 4
	n, requests := faultnet.New(), 0
	n.Alter(kmsg.DescribeConfigs, 1, func(resp kmsg.Response) {
		if requests++; requests > late {
			return
		}
		for _, r := range resp.(*kmsg.DescribeConfigsResponse).Resources {
			for i, c := range r.Configs {
				if r.ResourceName == topics.Actions && c.Name == "retention.ms" {
					r.Configs[i].Value = kmsg.StringPtr("604800000")
				}
			}
		}
	})
	w.Kafka.Dial = n.Dial
	must.Get(topics.Apply(t.Context(), w.Kafka, topics.Catalogue(longer)))(t)
	if requests != late+1 {
		t.Errorf("%d requests for the settings, want %d", requests, late+1)
	}
	if err := topics.Verify(t.Context(), w.Kafka, topics.Catalogue(longer)); err != nil {
		t.Errorf("Verify right after Apply: %v", err)
	}
}
