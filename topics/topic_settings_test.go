package topics

import (
	"maps"
	"slices"
	"testing"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
)

// The Kafka configuration of each topic in the catalogue. Apply and Verify cannot test it, because they compare it with
// itself.
func TestSettingsOfTopics(t *testing.T) {
	settingsOf := map[string]map[string]string{}
	for _, topic := range Catalogue(Profile{}) {
		settingsOf[topic.Name] = topic.settings()
	}
	for name, differs := range map[string]map[string]string{
		"pins":           {},
		"actions":        {"retention.ms": "604800000"},
		"pools-ticks":    {"retention.ms": "86400000"},
		"dead-letters":   {"retention.ms": "604800000", "max.message.bytes": "2162688"},
		"recents-pulled": {"cleanup.policy": "compact", "delete.retention.ms": "604800000"},
		"pools-table":    {"cleanup.policy": "compact", "delete.retention.ms": "604800000"},
	} {
		want := map[string]string{
			"cleanup.policy":         "delete",
			"retention.ms":           "-1",
			"retention.bytes":        "-1",
			"max.message.bytes":      "1114112",
			"min.insync.replicas":    "2",
			"message.timestamp.type": "LogAppendTime",
		}
		maps.Copy(want, differs)
		got := settingsOf[name]
		for _, key := range slices.Sorted(maps.Keys(want)) {
			expect.Equal(t, got[key], want[key], "%s: %s", name, key)
		}
		expect.Equal(t, len(got), len(want), "%s: number of settings %v, only those of %v", name, got, want)
	}
	for _, topic := range Catalogue(Profile{Embedded: true}) {
		expect.Equal(t, len(topic.settings()), 0, "settings of %s on the embedded broker", topic.Name)
	}
}
