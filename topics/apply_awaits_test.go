package topics_test

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/smartfeed/smartfeed/internal/testkit/faultnet"
	"github.com/smartfeed/smartfeed/topics"
)

// Kafka brokers report a setting a moment after they accept it.
func TestApplyWaitsUntilWhatItAlteredIsShown(t *testing.T) {
	w := newBareWire(t)
	if _, err := topics.Apply(t.Context(), w.Kafka, topics.Catalogue(oneBroker())); err != nil {
		t.Fatal(err)
	}
	longer := oneBroker()
	longer.Actions = 30 * 24 * time.Hour
	const late = 4
	n, asked := faultnet.New(), 0
	n.Alter(kmsg.DescribeConfigs, 1, func(resp kmsg.Response) {
		if asked++; asked > late {
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
	if _, err := topics.Apply(t.Context(), w.Kafka, topics.Catalogue(longer)); err != nil {
		t.Fatal(err)
	}
	if asked != late+1 {
		t.Errorf("the brokers were asked %d times, want %d: until they showed it", asked, late+1)
	}
	if err := topics.Verify(t.Context(), w.Kafka, topics.Catalogue(longer)); err != nil {
		t.Errorf("Verify right after Apply: %v", err)
	}
}
