package doctor

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/smartfeed/smartfeed/internal/command"
	"github.com/smartfeed/smartfeed/topics"
)

// Names of the checks on Kafka. All run after KafkaCheck, and those that need topics after TopicsCheck.
const (
	KafkaCheck        = "kafka"
	AccessCheck       = "access"
	TopicsCheck       = "topics"
	TransactionsCheck = "transactions"
)

// Kafka configures the checks on brokers.
type Kafka struct {
	topics.Kafka
	Embedded bool   // the broker is that of `smartfeed dev`, which need not be running
	Member   string // name of this machine in transactional ids
}

// Checks returns the checks on brokers. The first is KafkaCheck.
func (k Kafka) Checks() []Check {
	const see = "see the check kafka"
	return []Check{
		{Name: KafkaCheck, Examine: k.brokers},
		{Name: AccessCheck, After: KafkaCheck, Examine: k.access, Advice: see},
		{Name: TopicsCheck, After: KafkaCheck, Examine: k.topics, Advice: see},
		{Name: TransactionsCheck, After: TopicsCheck, Examine: k.transaction},
	}
}

// brokers connects to every address separately: a client would hide unreachable addresses if one is reachable. It then
// checks the releases and the number of the brokers.
func (k Kafka) brokers(ctx context.Context, found *Findings) error {
	reached := 0
	for _, address := range k.Brokers {
		if err := k.dial(ctx, address); err == nil {
			reached++
		} else if !k.Embedded {
			found.Problem("check the address in kafka, the network, and that the broker runs", "%s is unreachable: %v", address, reason(ctx, err))
		}
	}
	switch {
	case reached == 0 && k.Embedded:
		found.Note(`start "smartfeed dev", which includes a broker; or set kafka`, "no broker listens on %s", strings.Join(k.Brokers, ", "))
		return nil
	case reached == 0:
		return nil
	}
	adm, err := k.Admin()
	if err != nil {
		return advise("check kafka and kafka_client in the configuration", "%w", err)
	}
	defer adm.Close()
	meta, err := adm.BrokerMetadata(ctx)
	if err != nil {
		return advise("check kafka_client (tls, sasl), and the brokers' listeners and advertised.listeners", "the brokers do not respond: %w", err)
	}
	return k.versions(ctx, adm, meta, found)
}

func (k Kafka) dial(ctx context.Context, address string) error {
	dial := k.Dial
	if dial == nil {
		dial = new(net.Dialer).DialContext
	}
	conn, err := dial(ctx, "tcp", address)
	if err != nil {
		return err
	}
	return conn.Close()
}

func (k Kafka) versions(ctx context.Context, adm *kadm.Client, meta kadm.Metadata, found *Findings) error {
	const advice = "make the addresses that the brokers advertise (advertised.listeners) reachable from this machine"
	answers, err := adm.ApiVersions(ctx)
	if err != nil {
		return advise(advice, "some brokers do not respond: %w", err)
	}
	var releases []string
	for _, b := range answers.Sorted() {
		if b.Err != nil {
			found.Problem(advice, "broker %d does not respond: %v", b.NodeID, b.Err)
		} else if release := b.VersionGuess(); !slices.Contains(releases, release) {
			releases = append(releases, release)
		}
	}
	if len(releases) > 1 {
		found.Warn("finish the upgrade", "the brokers run different releases: %s", strings.Join(releases, ", "))
	}
	if strings.HasPrefix(meta.Cluster, topics.EmbeddedCluster) {
		found.OK("the embedded broker, for evaluation on one machine")
		return nil
	}
	if len(meta.Brokers) < 3 {
		found.Warn("run at least three brokers", "%s: records are lost if a disk fails", command.Count(len(meta.Brokers), "broker"))
	}
	found.OK("%s of cluster %s, Kafka %s", command.Count(len(meta.Brokers), "broker"), meta.Cluster, strings.Join(releases, ", "))
	return nil
}

// access checks for which roles this user has sufficient permissions. One role suffices, because each role can have its
// own user.
func (k Kafka) access(ctx context.Context, found *Findings) error {
	var granted, denied, missing []string
	for _, role := range topics.Roles() {
		var lacking *topics.AccessError
		switch err := topics.VerifyAccess(ctx, k.Kafka, role); {
		case err == nil:
			granted = append(granted, role)
		case errors.As(err, &lacking):
			denied, missing = append(denied, role), append(missing, fmt.Sprintf("the role %s needs %s", role, few(lacking.Missing, topics.Grant.String)))
		default:
			return err
		}
	}
	const advice = `"smartfeed topics acls ROLE --principal User:NAME" prints the kafka-acls.sh commands`
	switch {
	case len(granted) == 0:
		for _, one := range missing {
			found.Problem(advice, "this user lacks permissions: %s", one)
		}
	case len(denied) > 0:
		found.Note(advice, "this user has the permissions of %s, and not of %s", strings.Join(granted, ", "), strings.Join(denied, ", "))
	default:
		found.OK("this user has the permissions of every role")
	}
	return nil
}

// topics compares the catalogue and the topics of generations with the brokers.
func (k Kafka) topics(ctx context.Context, found *Findings) error {
	profile, err := topics.ProfileOf(ctx, k.Kafka)
	if err != nil {
		return err
	}
	want := topics.Catalogue(profile)
	if err := k.compare(ctx, want, found); err != nil {
		return advise("this user may need DESCRIBE and DESCRIBE_CONFIGS on the topics", "%w", err)
	}
	own := k.generations(ctx, profile, found)
	if len(*found) == 0 {
		found.OK("%s of %s, as configured", command.Count(len(want)+own, "topic"), command.Count(want[0].Partitions, "partition"))
	}
	return nil
}

// generations checks the topics of generations and returns their number. Few roles have the permissions to read the list
// of generations and to describe their topics, so this check is the last one.
func (k Kafka) generations(ctx context.Context, profile topics.Profile, found *Findings) int {
	own, err := topics.TopicsOfGenerations(ctx, k.Kafka, profile)
	if err == nil && len(own) > 0 {
		err = k.compare(ctx, own, found)
	}
	switch {
	case errors.Is(err, kerr.TopicAuthorizationFailed):
		found.Note("run this as a user with the role operate", "the topics of generations are not checked: %v", err)
	case err != nil:
		found.Problem("see the check kafka", "the topics of generations are not checked: %v", reason(ctx, err))
	}
	return len(own)
}

// compare compares topics with the brokers.
func (k Kafka) compare(ctx context.Context, want []topics.Topic, found *Findings) error {
	plan, err := topics.Differences(ctx, k.Kafka, want)
	if err != nil {
		return err
	}
	for _, c := range plan.Conflicts {
		found.Problem(c.Advice, "%s: %s is %s and must be %s", c.Topic, c.Key, c.Have, c.Want)
	}
	for _, t := range plan.Create {
		found.Problem(`run "smartfeed topics apply"`, "%s is missing", t.Name)
	}
	for _, s := range plan.Alter {
		found.Warn(`run "smartfeed topics apply"`, "%s: %s is %s and must be %s", s.Topic, s.Key, s.Have, s.Want)
	}
	if len(plan.FewReplicas) > 0 {
		replicas := func(s topics.Setting) string { return fmt.Sprintf("%s (%s of %s)", s.Topic, s.Have, s.Want) }
		found.Warn(`add replicas with kafka-reassign-partitions.sh, then run "smartfeed topics apply"`,
			"fewer replicas than the number of brokers permits: %s", few(plan.FewReplicas, replicas))
	}
	return nil
}
