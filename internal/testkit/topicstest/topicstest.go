// Package topicstest provides brokers with topics for tests, and faults on them.
package topicstest

import (
	"log/slog"
	"sync/atomic"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/smartfeed/smartfeed/topics"
	"github.com/smartfeed/smartfeed/topics/embedded"
)

// Bare starts an embedded broker and registry without topics, and closes them when the test ends. The setup is for commands
// that use them.
func Bare(t testing.TB) (*embedded.Server, topics.Setup) {
	t.Helper()
	cfg := embedded.DefaultConfig()
	cfg.Dir, cfg.Kafka, cfg.Registry = t.TempDir(), "127.0.0.1:0", "127.0.0.1:0"
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	server, err := embedded.Start(t.Context(), cfg, log)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	return server, topics.Setup{Kafka: server.Kafka(0), Registry: server.RegistryURL(), Log: log}
}

// Wire is Bare with every topic of the catalogue.
func Wire(t testing.TB) (*embedded.Server, topics.Setup) {
	t.Helper()
	server, s := Bare(t)
	if _, err := topics.Apply(t.Context(), s.Kafka, topics.Catalogue(topics.Profile{Embedded: true})); err != nil {
		t.Fatal(err)
	}
	return server, s
}

// FailProduce answers produce requests for only one partition, the given one, with an error code of Kafka. It returns the
// number of such answers.
func FailProduce(b *kfake.Cluster, partition int32, code int16) *atomic.Int64 {
	var hits atomic.Int64
	b.ControlKey(int16(kmsg.Produce), func(kreq kmsg.Request) (kmsg.Response, error, bool) {
		b.KeepControl()
		req := kreq.(*kmsg.ProduceRequest)
		for _, rt := range req.Topics {
			for _, rp := range rt.Partitions {
				if rp.Partition != partition || len(rt.Partitions) != 1 || len(req.Topics) != 1 {
					continue
				}
				hits.Add(1)
				sp := kmsg.NewProduceResponseTopicPartition()
				sp.Partition, sp.ErrorCode = partition, code
				st := kmsg.NewProduceResponseTopic()
				st.Topic, st.TopicID, st.Partitions = rt.Topic, rt.TopicID, append(st.Partitions, sp)
				resp := req.ResponseKind().(*kmsg.ProduceResponse)
				resp.Topics = append(resp.Topics, st)
				return resp, nil, true
			}
		}
		return nil, nil, false
	})
	return &hits
}

// Generation creates the topics of a generation of the pools.
func Generation(t *testing.T, k topics.Kafka, p topics.Profile, number int) {
	t.Helper()
	if _, err := topics.Apply(t.Context(), k, topics.GenerationTopics(p, topics.Pools, number)); err != nil {
		t.Fatal(err)
	}
}

// CutOver publishes the active generation of the pools and the one being built; building 0: none.
func CutOver(t *testing.T, k topics.Kafka, active, building int) {
	t.Helper()
	client, err := k.Client()
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	g := topics.Generation{Group: topics.Pools, Active: active, Building: building}
	if err := topics.SetGeneration(t.Context(), client, g); err != nil {
		t.Fatal(err)
	}
}

// Names returns the names of all topics on the brokers.
func Names(t *testing.T, k topics.Kafka) []string {
	t.Helper()
	adm, err := k.Admin()
	if err != nil {
		t.Fatal(err)
	}
	defer adm.Close()
	have, err := adm.ListTopics(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return have.Names()
}

// Alter changes a setting of a topic directly on the brokers.
func Alter(t *testing.T, k topics.Kafka, topic, key, value string) {
	t.Helper()
	adm, err := k.Admin()
	if err != nil {
		t.Fatal(err)
	}
	defer adm.Close()
	set := []kadm.AlterConfig{{Op: kadm.SetConfig, Name: key, Value: &value}}
	if _, err := adm.AlterTopicConfigs(t.Context(), set, topic); err != nil {
		t.Fatal(err)
	}
}
