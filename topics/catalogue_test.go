package topics_test

import (
	"strings"
	"testing"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/topics"
)

func TestCatalogue(t *testing.T) {
	profiles := map[string]topics.Profile{"embedded": {Embedded: true}, "real": {}, "own": {Partitions: 16, Replicas: 2}}
	partitions := map[string]int32{"embedded": topics.EmbeddedPartitions, "real": topics.RealPartitions, "own": 16}
	inSync := map[string]int16{"embedded": 1, "real": 2, "own": 1}
	for name, profile := range profiles {
		seen := map[string]bool{}
		for _, topic := range topics.Catalogue(profile) {
			expect.False(t, seen[topic.Name], "%s: topic %s is listed twice", name, topic.Name)
			seen[topic.Name] = true
			if topic.Key == "" || len(topic.Writers) == 0 {
				t.Errorf("%s: topic %s has key %q and writers %v", name, topic.Name, topic.Key, topic.Writers)
			}
			if topic.Partitions != partitions[name] || topic.InSync != inSync[name] || topic.AppendTime == profile.Embedded {
				t.Errorf("%s: topic %s has %d partitions, %d in sync, broker's clock %v",
					name, topic.Name, topic.Partitions, topic.InSync, topic.AppendTime)
			}
		}
		for _, group := range topics.RowGroups() {
			hasBoth := seen[topics.TableOf(group)] && seen[topics.TicksOf(group)]
			expect.True(t, hasBoth, "%s: group %s has a table and ticks", name, group)
		}
	}
}

// Retention decides whether data can be lost. Input topics from which all state can be rebuilt are kept forever. Global
// tables and changelogs are compacted. All other topics have a limited retention.
func TestCatalogue_Retention(t *testing.T) {
	for _, topic := range topics.Catalogue(topics.Profile{}) {
		want := "for a time"
		switch {
		case topic.Name == topics.Pins, topic.Name == topics.Follows, topic.Name == topics.Users:
			want = "for ever"
		case topic.GlobalTable, topic.Name == topics.Generations, strings.HasSuffix(topic.Name, "-table"):
			want = "compacted"
		}
		got := "for a time"
		switch {
		case topic.Compact:
			got = "compacted"
		case topic.Retention == 0:
			got = "for ever"
		}
		expect.Equal(t, got, want, "topic %s is kept", topic.Name)
	}
}
