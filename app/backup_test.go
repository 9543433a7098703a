package app

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
	"github.com/smartfeed/smartfeed/topics/embedded"
)

// The test restores new brokers from a mirror of the inputs, in the order of docs/operations/failures.md.
func TestBackup_MirrorOfInputsRestoresEverything(t *testing.T) {
	t.Parallel()
	d := readDataset(t, generated(t, 0.03))
	lost, found := startBroker(t), startBroker(t)
	workers, front := startPieces(t, roleConfig(t, lost), processing(topics.RowGroups())), startPieces(t, roleConfig(t, lost), serving())
	front.importSet(d)
	front.stop()
	workers.stop()

	restored := func(pieces []opener) *started {
		cfg := roleConfig(t, found)
		cfg.Registry = lost.RegistryURL() // records contain its schema ids
		return startPieces(t, cfg, pieces)
	}
	workers, after := restored(processing(topics.RowGroups())), restored(serving())
	first, second := []string{topics.Users, topics.Follows, topics.InterestDecisions}, []string{topics.Pins}
	others := slices.DeleteFunc(schemas.InputStreams(), func(name string) bool { return slices.Contains(first, name) || slices.Contains(second, name) })
	for _, part := range [][]string{first, second, others} {
		mirror(t, lost, found, part...)
		after.wait()
	}
	limit := DefaultConfig().Pools.MaxCandidates
	after.checkPools(d, limit)
	after.api().checkFeatures(d)
	after.checkLists(d)
	after.api().checkRelated(d)
	after.api().checkVisits(d, limit)
	workers.checkNoLoss()
}

// mirror copies topics like MirrorMaker: it keeps partitions, keys, values and headers, but not offsets or topic ids.
func mirror(t *testing.T, from, to *embedded.Server, names ...string) {
	t.Helper()
	log := must.Get(topics.NewLog(from.Kafka(0)))(t)
	defer log.Close()
	out, err := to.Kafka(0).Client(
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.RecordDeliveryTimeout(0)) // the timeout counts from a record's timestamp, and these are old
	must.OK(t, err)
	defer out.Close()
	for _, topic := range names {
		err := log.ReadAll(t.Context(), topic, func(r *kgo.Record) error {
			copied := &kgo.Record{Topic: r.Topic, Partition: r.Partition, Key: r.Key, Value: r.Value, Headers: r.Headers, Timestamp: r.Timestamp}
			out.Produce(t.Context(), copied, func(_ *kgo.Record, err error) {
				expect.Error(t, err, "", "copy")
			})
			return nil
		})
		must.OK(t, err)
	}
	must.OK(t, out.Flush(t.Context()))
}

// Only records of external producers cannot be recomputed. The runbook must name each topic with such records, or refer to the
// generated list of input topics.
func TestBackup_RunbookNamesTopicsThatCannotBeRecomputed(t *testing.T) {
	text := must.Get(os.ReadFile("../docs/operations/failures.md"))(t)
	_, section, found := strings.Cut(string(text), "\n## Backup and restore\n")
	section, _, _ = strings.Cut(section, "\n## ")
	if !found {
		t.Fatal("docs/operations/failures.md has no section on backups")
	}
	expect.Contains(t, section, "(../reference/events-and-topics.md#input-topics)", "the section on backups")
	outside := 0
	for _, topic := range topics.Catalogue(topics.Profile{}) {
		if !slices.ContainsFunc(topic.Writers, func(writer string) bool {
			return slices.Contains([]string{topics.Producers, topics.Serving, topics.Operators}, writer)
		}) {
			continue
		}
		outside++
		expect.True(t, topic.Input || strings.Contains(section, "`"+topic.Name+"`"), "the section on backups names %s", topic.Name)
	}
	expect.AtLeast(t, outside, 10, "topics with external producers")
}
