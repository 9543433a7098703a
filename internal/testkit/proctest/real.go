package proctest

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/sr/srfake"

	"github.com/smartfeed/smartfeed/topics"
)

// RealKafka names the environment variable that holds the addresses of Kafka brokers for tests. The tests leave topics
// behind.
const RealKafka = "SMARTFEED_TEST_KAFKA"

// NewReal returns a wire on the brokers that RealKafka names, and skips the test if it is not set. Only the named topics of
// the catalogue exist. They are deleted and created again, and consumer groups without members are deleted. The registry is
// embedded.
func NewReal(t testing.TB, names ...string) *Wire {
	t.Helper()
	addrs := os.Getenv(RealKafka)
	if addrs == "" {
		t.Skipf("set %s to the addresses of Kafka brokers", RealKafka)
	}
	w := newWire(t)
	w.Kafka = topics.Kafka{Brokers: strings.Split(addrs, ","), Partitions: topics.EmbeddedPartitions}
	profile, err := topics.ProfileOf(t.Context(), w.Kafka)
	w.must(err)
	if profile.Embedded {
		t.Fatalf("%s is an embedded broker", addrs)
	}
	w.Forget(names...)
	registry := srfake.New()
	t.Cleanup(registry.Close)
	w.connect(slices.DeleteFunc(topics.Catalogue(profile), func(topic topics.Topic) bool {
		return !slices.Contains(names, topic.Name)
	}), registry.URL())
	return w
}

// Forget deletes the named topics, if they exist, and all consumer groups without members.
func (w *Wire) Forget(names ...string) {
	w.t.Helper()
	admin, err := w.Kafka.Admin()
	w.must(err)
	defer admin.Close()
	groups, err := admin.ListGroups(w.t.Context())
	w.must(err)
	_, err = admin.DeleteGroups(w.t.Context(), groups.Groups()...)
	w.must(err)
	_, err = admin.DeleteTopics(w.t.Context(), names...)
	w.must(err)
	w.Eventually("the topics are gone", func() bool {
		left, err := admin.ListTopics(w.t.Context())
		return err == nil && !slices.ContainsFunc(names, kadm.TopicDetails(left).Has)
	})
}
