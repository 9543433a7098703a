package topics

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/smartfeed/smartfeed/internal/convert"
	"github.com/smartfeed/smartfeed/internal/periodic"
)

// Plan is the difference between a catalogue and the brokers.
type Plan struct {
	Create []Topic   `json:"create,omitempty"`
	Alter  []Setting `json:"alter,omitempty"`
	// Conflicts are differences that Apply must not alter, because data or order would be lost.
	Conflicts []Conflict `json:"conflicts,omitempty"`
	// FewReplicas lists topics with fewer replicas than min(3, brokers). They are not an error. Use Kafka's
	// kafka-reassign-partitions.sh to add replicas.
	FewReplicas []Setting `json:"few_replicas,omitempty"`

	leaderless bool // a partition has no leader
}

// Empty reports whether the brokers match the catalogue, apart from replicas.
func (p Plan) Empty() bool { return len(p.Create)+len(p.Alter)+len(p.Conflicts) == 0 }

// Err returns all conflicts joined, each a *Conflict, or nil if there is none.
func (p Plan) Err() error {
	return errors.Join(convert.All(p.Conflicts, func(c Conflict) error { return &c })...)
}

// Setting is one configuration key of one topic that differs.
type Setting struct {
	Topic string `json:"topic"`
	Key   string `json:"key"`
	Have  string `json:"have"`
	Want  string `json:"want"`
}

// Conflict is a difference that an operator must resolve. Its message says how.
type Conflict struct {
	Setting
	Advice string `json:"advice"`
}

// Error returns the difference and the advice.
func (c *Conflict) Error() string {
	return fmt.Sprintf("topic %s: %s is %s and must be %s: %s", c.Topic, c.Key, c.Have, c.Want, c.Advice)
}

const (
	cleanupKey    = "cleanup.policy"
	replicasKey   = "replicas"
	partitionsKey = "partitions"

	partitionsAdvice = "the partition of an owner cannot change; configure the topic's number of partitions, or create new topics"
	cleanupAdvice    = "records may already be deleted: find out why the policy was changed, then set it with Kafka's tools"
)

// settings returns the configuration of a topic on Kafka. On the embedded broker it is empty, because any clean-up key
// there starts a log cleaner that is not safe.
func (t Topic) settings() map[string]string {
	if t.Embedded {
		return nil
	}
	set := map[string]string{
		cleanupKey:               "delete",
		"retention.ms":           "-1",
		"retention.bytes":        "-1",
		"max.message.bytes":      strconv.Itoa(int(maxBatchBytes(t.Name))),
		"min.insync.replicas":    strconv.Itoa(int(t.InSync)),
		"message.timestamp.type": "CreateTime",
	}
	if t.AppendTime {
		set["message.timestamp.type"] = "LogAppendTime"
	}
	if t.Retention > 0 {
		set["retention.ms"] = millis(t.Retention)
	}
	if t.Compact {
		set[cleanupKey] = "compact"
		// A local store that resumes within this time still sees the tombstones.
		set["delete.retention.ms"] = millis(DeletionsKept)
	}
	return set
}

func millis(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

// EmbeddedCluster is the prefix of the embedded broker's cluster id.
const EmbeddedCluster = "smartfeed-embedded-"

// ErrPartitions is returned for brokers other than the embedded one when no number of partitions is configured.
var ErrPartitions = errors.New("partitions: is not set, and only the embedded broker has a default. " +
	"All topics of the groups have this number of partitions, and it cannot change after the topics exist. " +
	"Choose a power of two that is at least the largest number of processes that you expect to run, for example 16. " +
	"Set the same number in every process (partitions, SMARTFEED_PARTITIONS or --partitions). " +
	"If the topics exist, set their number of partitions")

// ProfileOf returns the profile of the brokers' topics. The brokers' metadata shows whether they are the embedded one and how
// many there are: replicas are min(3, brokers). The partition count and the retentions of actions and of logged visits come from k. It returns
// ErrPartitions if the brokers are not the embedded one and k.Partitions was not configured.
func ProfileOf(ctx context.Context, k Kafka) (Profile, error) {
	adm, err := k.Admin()
	if err != nil {
		return Profile{}, err
	}
	defer adm.Close()
	meta, err := adm.BrokerMetadata(ctx)
	if err != nil {
		return Profile{}, fmt.Errorf("fetch metadata of brokers %s: %w", strings.Join(k.Brokers, ","), err)
	}
	own := strings.HasPrefix(meta.Cluster, EmbeddedCluster)
	if k.Assumed && !own {
		return Profile{}, ErrPartitions
	}
	return Profile{
		Partitions: k.Partitions,
		Replicas:   int16(min(3, len(meta.Brokers))),
		Actions:    k.Actions,
		VisitLog:   k.VisitLog,
		Embedded:   own,
	}, nil
}

// Differences compares a catalogue with the brokers. It changes nothing.
func Differences(ctx context.Context, k Kafka, want []Topic) (Plan, error) {
	client, err := k.Client()
	if err != nil {
		return Plan{}, err
	}
	defer client.Close()
	return differences(ctx, client, want)
}

func differences(ctx context.Context, client *kgo.Client, want []Topic) (Plan, error) {
	// A list of all topics omits those that the user has no permission to describe. They would count as missing.
	if err := checkDescribable(ctx, client, want); err != nil {
		return Plan{}, err
	}
	adm := kadm.NewClient(client)
	have, err := adm.ListTopics(ctx)
	if err != nil {
		return Plan{}, fmt.Errorf("list topics: %w", err)
	}
	var present []string
	for _, t := range want {
		if have.Has(t.Name) {
			present = append(present, t.Name)
		}
	}
	configs, err := adm.DescribeTopicConfigs(ctx, present...)
	if err != nil {
		return Plan{}, fmt.Errorf("describe topics: %w", err)
	}
	var plan Plan
	for _, t := range want {
		if !have.Has(t.Name) {
			plan.Create = append(plan.Create, t)
			continue
		}
		plan.leaderless = plan.leaderless || !hasLeaders(have[t.Name])
		rc, err := configs.On(t.Name, nil)
		if err = errors.Join(err, rc.Err); err != nil {
			return Plan{}, fmt.Errorf("%s on topic %s: %w", DescribeConfigs, t.Name, err)
		}
		plan.compare(plan.withPresentReplicas(t, have[t.Name].Partitions.NumReplicas()), len(have[t.Name].Partitions), rc.Configs)
	}
	return plan, nil
}

// hasLeaders reports whether every partition of a topic has a leader.
func hasLeaders(t kadm.TopicDetail) bool {
	for _, p := range t.Partitions {
		if p.Err != nil || p.Leader < 0 {
			return false
		}
	}
	return len(t.Partitions) > 0
}

// checkDescribable returns an error for each topic that the user has no permission to describe.
func checkDescribable(ctx context.Context, client *kgo.Client, want []Topic) error {
	all := convert.All(want, func(t Topic) Grant { return Grant{Kind: TopicResource, Name: t.Name, Operations: []string{Describe}} })
	allowed, err := allowedOnTopics(ctx, client, all)
	if err != nil {
		return err
	}
	var errs []error
	for _, g := range all {
		if ops, known := allowed[g.Name]; known && len(ops) == 0 {
			errs = append(errs, fmt.Errorf("%s: %w", g, kerr.TopicAuthorizationFailed))
		}
	}
	return errors.Join(errs...)
}

// withPresentReplicas returns the desired state of a topic for the replicas that it has. The catalogue's number depends on the
// brokers that are available now. While a broker is unavailable, min.insync.replicas must not be lowered.
func (p *Plan) withPresentReplicas(t Topic, have int) Topic {
	if have < int(t.Replicas) {
		p.FewReplicas = append(p.FewReplicas, Setting{t.Name, replicasKey, strconv.Itoa(have), strconv.Itoa(int(t.Replicas))})
	}
	if have != int(t.Replicas) {
		t.InSync = max(1, int16(have)-1)
	}
	return t
}

// compare adds the differences of one topic.
func (p *Plan) compare(t Topic, partitions int, configs []kadm.Config) {
	if partitions != int(t.Partitions) {
		p.Conflicts = append(p.Conflicts, Conflict{
			Setting: Setting{t.Name, partitionsKey, strconv.Itoa(partitions), strconv.Itoa(int(t.Partitions))},
			Advice:  partitionsAdvice,
		})
	}
	have := map[string]string{}
	for _, c := range configs {
		have[c.Key] = c.MaybeValue()
	}
	want := t.settings()
	for _, key := range slices.Sorted(maps.Keys(want)) {
		s := Setting{t.Name, key, have[key], want[key]}
		switch {
		case s.Have == s.Want:
		case key == cleanupKey:
			p.Conflicts = append(p.Conflicts, Conflict{Setting: s, Advice: cleanupAdvice})
		default:
			p.Alter = append(p.Alter, s)
		}
	}
}

// Apply creates missing topics and alters settings that differ. It returns what it did, once every new topic is usable and
// the brokers report every new setting. If there is a conflict, Apply changes nothing and returns all conflicts, each a
// *Conflict.
func Apply(ctx context.Context, k Kafka, want []Topic) (Plan, error) {
	client, err := k.Client()
	if err != nil {
		return Plan{}, err
	}
	defer client.Close()
	plan, err := differences(ctx, client, want)
	if err == nil {
		err = plan.Err()
	}
	if err != nil {
		return Plan{}, err
	}
	if plan.Empty() {
		return plan, nil
	}
	adm := kadm.NewClient(client)
	if err := create(ctx, adm, plan.Create); err != nil {
		return plan, err
	}
	if err := alter(ctx, adm, plan.Alter); err != nil {
		return plan, err
	}
	return plan, awaitApplied(ctx, client, want)
}

// VerifyAll compares the catalogue with the brokers. A process calls it before it starts. For a role that processes
// generations, it includes their topics, which other roles may have no permission to describe. The error names every
// difference, and the command that creates and alters topics.
func VerifyAll(ctx context.Context, k Kafka, role string) (Profile, error) {
	profile, err := ProfileOf(ctx, k)
	if err != nil {
		return profile, err
	}
	want := Catalogue(profile)
	if len(accessOfRoles()[role].generations) > 0 {
		own, err := TopicsOfGenerations(ctx, k, profile)
		if err != nil {
			return profile, err
		}
		want = append(want, own...)
	}
	if err := Verify(ctx, k, want); err != nil {
		return profile, fmt.Errorf("%w\n(\"smartfeed topics apply\" creates missing topics and alters settings)", err)
	}
	return profile, nil
}

// Verify returns every difference between a catalogue and the brokers, or nil if there is none.
func Verify(ctx context.Context, k Kafka, want []Topic) error {
	plan, err := Differences(ctx, k, want)
	if err != nil {
		return err
	}
	errs := []error{plan.Err()}
	for _, t := range plan.Create {
		errs = append(errs, fmt.Errorf("topic %s: missing", t.Name))
	}
	for _, s := range plan.Alter {
		errs = append(errs, fmt.Errorf("topic %s: %s is %s and should be %s", s.Topic, s.Key, s.Have, s.Want))
	}
	return errors.Join(errs...)
}

// create creates topics. It ignores topics that exist: another process applies the same catalogue.
func create(ctx context.Context, adm *kadm.Client, list []Topic) error {
	for _, t := range list {
		settings := map[string]*string{}
		for key, value := range t.settings() {
			settings[key] = &value
		}
		_, err := adm.CreateTopic(ctx, t.Partitions, t.Replicas, settings, t.Name)
		if err != nil && !errors.Is(err, kerr.TopicAlreadyExists) {
			return fmt.Errorf("create topic %s: %w", t.Name, err)
		}
	}
	return nil
}

func alter(ctx context.Context, adm *kadm.Client, settings []Setting) error {
	byTopic := map[string][]kadm.AlterConfig{}
	for _, s := range settings {
		byTopic[s.Topic] = append(byTopic[s.Topic], kadm.AlterConfig{Op: kadm.SetConfig, Name: s.Key, Value: &s.Want})
	}
	var errs []error
	for topic, configs := range byTopic {
		answers, err := adm.AlterTopicConfigs(ctx, configs, topic)
		for _, a := range answers {
			err = errors.Join(err, a.Err)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("alter topic %s: %w", topic, err))
		}
	}
	return errors.Join(errs...)
}

// settingsPatience bounds the time until brokers report a setting that they accepted. Usually they take milliseconds.
const settingsPatience = 15 * time.Second

// awaitApplied waits until every partition has a leader and the brokers report all settings. Brokers respond before all of
// them have applied a change, and a process that verifies the topics next would not start.
func awaitApplied(ctx context.Context, client *kgo.Client, want []Topic) error {
	until := time.Now().Add(settingsPatience)
	return periodic.Until(ctx, 20*time.Millisecond, func() (bool, error) {
		left, err := differences(ctx, client, want)
		switch {
		case errors.Is(err, kerr.UnknownTopicOrPartition): // from a broker that has not learned of a new topic yet
			return false, nil
		case err != nil:
			return false, err
		case len(left.Alter) > 0 && time.Now().After(until):
			s := left.Alter[0]
			return false, fmt.Errorf("alter topic %s: the brokers do not report %s = %s after %s", s.Topic, s.Key, s.Want, settingsPatience)
		}
		return left.Empty() && !left.leaderless, left.Err()
	})
}
