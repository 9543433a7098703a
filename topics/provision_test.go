package topics_test

import (
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/smartfeed/smartfeed/internal/convert"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/faultnet"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/internal/testkit/topicstest"
	"github.com/smartfeed/smartfeed/topics"
)

// oneBroker is a profile with topic configuration that fits one broker.
func oneBroker() topics.Profile { return topics.Profile{Partitions: 2, Replicas: 1} }

// brokers starts n brokers that support the settings of topics.
func brokers(t *testing.T, n int) topics.Kafka {
	t.Helper()
	c := must.Get(kfake.NewCluster(kfake.NumBrokers(n)))(t)
	t.Cleanup(c.Close)
	return topics.Kafka{Brokers: c.ListenAddrs(), Partitions: 2}
}

func TestApply_CreatesWhatVerifyExpects(t *testing.T) {
	for name, profile := range map[string]topics.Profile{"embedded": {Embedded: true}, "real": oneBroker()} {
		t.Run(name, func(t *testing.T) {
			w := newBareWire(t)
			want := topics.Catalogue(profile)
			if err := topics.Verify(t.Context(), w.Kafka, want); err == nil || strings.Count(err.Error(), "missing") != len(want) {
				t.Errorf("Verify before Apply = %v, want every topic missing", err)
			}
			done := must.Get(topics.Apply(t.Context(), w.Kafka, want))(t)
			expect.Equal(t, len(done.Create), len(want), "topics that Apply created")
			must.OK(t, topics.Verify(t.Context(), w.Kafka, want))
			again := must.Get(topics.Apply(t.Context(), w.Kafka, want))(t)
			expect.True(t, again.Empty(), "the second Apply changes nothing")
		})
	}
}

// Any clean-up key starts the embedded broker's cleaner, which is not safe.
func TestApply_SetsNothingOnEmbeddedBroker(t *testing.T) {
	w := newBareWire(t)
	want := topics.Catalogue(topics.Profile{Embedded: true})
	must.Get(topics.Apply(t.Context(), w.Kafka, want))(t)
	names := convert.All(want, func(topic topics.Topic) string { return topic.Name })
	for _, rc := range must.Get(w.Admin().DescribeTopicConfigs(t.Context(), names...))(t) {
		for _, c := range rc.Configs {
			expect.True(t, c.Source != kmsg.ConfigSourceDynamicTopicConfig, "topic %s does not set %s", rc.Name, c.Key)
		}
	}
}

func TestApply_AltersSettings(t *testing.T) {
	w := newBareWire(t)
	must.Get(topics.Apply(t.Context(), w.Kafka, topics.Catalogue(oneBroker())))(t)
	longer := oneBroker()
	longer.Actions = 30 * 24 * time.Hour
	done := must.Get(topics.Apply(t.Context(), w.Kafka, topics.Catalogue(longer)))(t)
	want := []topics.Setting{{Topic: "actions", Key: "retention.ms", Have: "604800000", Want: "2592000000"}}
	expect.NoDiff(t, done.Alter, want, "Apply altered")
	must.OK(t, topics.Verify(t.Context(), w.Kafka, topics.Catalogue(longer)))
}

func TestApply_ReportsEveryConflict(t *testing.T) {
	w := newBareWire(t)
	want := topics.Catalogue(oneBroker())
	adm := w.Admin()
	wrong := "compact"
	must.Get(adm.CreateTopic(t.Context(), 3, 1, nil, "follows"))(t)
	must.Get(adm.CreateTopic(t.Context(), 2, 1, map[string]*string{"cleanup.policy": &wrong}, "pins"))(t)
	_, err := topics.Apply(t.Context(), w.Kafka, want)
	must.As[*topics.Conflict](t, err)
	for _, text := range []string{"topic follows: partitions is 3 and must be 2", "topic pins: cleanup.policy is compact and must be delete"} {
		expect.Contains(t, err.Error(), text, "Apply")
	}
	have := must.Get(adm.ListTopics(t.Context()))(t)
	expect.NoDiff(t, have.Names(), []string{"follows", "pins"}, "topics after a conflict")
}

func TestProfileOf_EmbeddedBroker(t *testing.T) {
	w := newBareWire(t)
	got := must.Get(topics.ProfileOf(t.Context(), w.Kafka))(t)
	expect.Equal(t, got, topics.Profile{Partitions: 4, Replicas: 1, Embedded: true}, "profile")
}

func TestProfileOf_RequiresPartitionsOnKafka(t *testing.T) {
	k := brokers(t, 1)
	k.Assumed = true
	expect.Is(t, expect.ErrorOf(topics.ProfileOf(t.Context(), k)), topics.ErrPartitions, "ProfileOf")
	k.Assumed = false
	must.Get(topics.ProfileOf(t.Context(), k))(t) // the number is configured
	w := newBareWire(t)
	w.Kafka.Assumed = true
	must.Get(topics.ProfileOf(t.Context(), w.Kafka))(t)
}

// While a broker is unavailable, its topics are unchanged, and processes start. A topic with fewer replicas than possible
// is only reported.
func TestApply_KeepsReplicas(t *testing.T) {
	k := brokers(t, 3)
	profile, err := topics.ProfileOf(t.Context(), k)
	if err != nil || profile.Replicas != 3 {
		t.Fatalf("profile %+v, %v, want three replicas", profile, err)
	}
	want := topics.Catalogue(profile)
	must.Get(topics.Apply(t.Context(), k, want))(t)
	for name, replicas := range map[string]int16{"one broker down": 2, "two brokers down": 1, "none down": 3} {
		now := topics.Catalogue(topics.Profile{Partitions: 2, Replicas: replicas})
		if plan, err := topics.Apply(t.Context(), k, now); err != nil || !plan.Empty() || len(plan.FewReplicas) > 0 {
			t.Errorf("%s: Apply = %+v, %v, want nothing done", name, plan, err)
		}
	}
	grown := topics.Catalogue(topics.Profile{Partitions: 2, Replicas: 5})
	if plan, err := topics.Differences(t.Context(), k, grown); err != nil || !plan.Empty() || len(plan.FewReplicas) != len(grown) || plan.FewReplicas[0].Have != "3" {
		t.Errorf("with more brokers: %+v, %v, want every topic in FewReplicas and no changes", plan, err)
	}
}

// The configured retention of actions is set on the brokers, and it applies to no other topic.
func TestApply_SetsRetentionOfActions(t *testing.T) {
	k := brokers(t, 1)
	kept := map[string]string{}
	for _, actions := range []time.Duration{0, 30 * 24 * time.Hour} {
		k.Actions = actions
		profile := must.Get(topics.ProfileOf(t.Context(), k))(t)
		must.Get(topics.Apply(t.Context(), k, topics.Catalogue(profile)))(t)
		configs := must.Get(topicstest.On(t, k, nil).Admin().DescribeTopicConfigs(t.Context(), topics.Actions, topics.ActionsJoined))(t)
		for _, topic := range configs {
			for _, c := range topic.Configs {
				if c.Key == "retention.ms" {
					kept[topic.Name] += c.MaybeValue() + " "
				}
			}
		}
	}
	want := map[string]string{topics.Actions: "604800000 2592000000 ", topics.ActionsJoined: "604800000 604800000 "}
	expect.NoDiff(t, kept, want, "retention of 7 and then of 30 days")
}

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
	expect.Equal(t, requests, late+1, "requests for the settings")
	must.OK(t, topics.Verify(t.Context(), w.Kafka, topics.Catalogue(longer)))
}
