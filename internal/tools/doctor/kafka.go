package doctor

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/smartfeed/smartfeed/internal/command"
	"github.com/smartfeed/smartfeed/topics"
	"github.com/smartfeed/smartfeed/topics/generation"
)

// Names of the checks on Kafka. All run after KafkaCheck, and those that need topics after TopicsCheck.
const (
	KafkaCheck        = "kafka"
	AccessCheck       = "access"
	TopicsCheck       = "topics"
	TransactionsCheck = "transactions"
	GroupsCheck       = "groups"
	LettersCheck      = "dead letters"
)

// Kafka configures the checks on brokers.
type Kafka struct {
	topics.Kafka
	Readers []topics.Reader // that should be running
	Own     bool            // the broker is that of `smartfeed dev`, which may not be running
	Member  string          // name of this machine in transactional ids
	Now     func() time.Time
}

// Checks returns the checks on brokers. The first is KafkaCheck.
func (k Kafka) Checks() []Check {
	return []Check{
		{Name: KafkaCheck, Look: k.brokers},
		{Name: AccessCheck, After: KafkaCheck, Look: k.access},
		{Name: TopicsCheck, After: KafkaCheck, Look: k.topics},
		{Name: TransactionsCheck, After: TopicsCheck, Look: k.transaction},
		{Name: GroupsCheck, After: TopicsCheck, Look: k.groups},
		{Name: LettersCheck, After: TopicsCheck, Look: k.letters},
	}
}

// brokers connects to every address separately, because one that works hides others that do not. It then checks what
// the brokers are.
func (k Kafka) brokers(ctx context.Context, found *Findings) {
	reached := 0
	for _, address := range k.Brokers {
		if err := k.dial(ctx, address); err == nil {
			reached++
		} else if !k.Own {
			found.Problem("check the address in kafka, the network, and that the broker runs", "%s cannot be reached: %v", address, reason(ctx, err))
		}
	}
	if reached == 0 {
		if k.Own {
			found.Note(`start "smartfeed dev", which brings a broker of its own; or name yours in kafka`, "no broker at %s", strings.Join(k.Brokers, ", "))
		}
		return
	}
	adm, err := k.Admin()
	if err != nil {
		found.Problem("mend kafka and kafka_client in the configuration", "%v", err)
		return
	}
	defer adm.Close()
	meta, err := adm.BrokerMetadata(ctx)
	if err != nil {
		found.Problem("check kafka_client (tls, sasl), and the brokers' listeners and advertised.listeners", "the brokers do not answer: %v", reason(ctx, err))
		return
	}
	k.versions(ctx, adm, meta, found)
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

// needed are the requests that exactly-once requires, with their purpose.
var needed = []struct {
	key kmsg.Key
	is  string
}{
	{kmsg.InitProducerID, "transactional producers"},
	{kmsg.AddPartitionsToTxn, "transactions"},
	{kmsg.EndTxn, "transactions"},
	{kmsg.DescribeConfigs, "topic configuration"},
}

func (k Kafka) versions(ctx context.Context, adm *kadm.Client, meta kadm.Metadata, found *Findings) {
	answers, err := adm.ApiVersions(ctx)
	if err != nil {
		found.Problem("the addresses that brokers advertise (advertised.listeners) must be reachable from here", "not every broker answers: %v", reason(ctx, err))
		return
	}
	var releases []string
	for _, b := range answers.Sorted() {
		if b.Err != nil {
			found.Problem("the addresses that brokers advertise (advertised.listeners) must be reachable from here", "broker %d does not answer: %v", b.NodeID, b.Err)
			continue
		}
		for _, n := range needed {
			if _, there := b.KeyMaxVersion(n.key.Int16()); !there {
				found.Problem("run Apache Kafka 3.6 or later", "broker %d knows no %s", b.NodeID, n.is)
			}
		}
		if release := b.VersionGuess(); !slices.Contains(releases, release) {
			releases = append(releases, release)
		}
	}
	if len(releases) > 1 {
		found.Warn("finish the upgrade", "the brokers are of different releases: %s", strings.Join(releases, ", "))
	}
	if strings.HasPrefix(meta.Cluster, topics.EmbeddedCluster) {
		found.OK("the embedded broker, for one machine and for trying out")
		return
	}
	if len(meta.Brokers) < 3 {
		found.Warn("three brokers, so that one may be away", "%s: a record is lost with its disk", command.Count(len(meta.Brokers), "broker"))
	}
	found.OK("%s of cluster %s, Kafka %s", command.Count(len(meta.Brokers), "broker"), meta.Cluster, strings.Join(releases, ", "))
}

// access checks for which roles this user has sufficient permissions. One role is enough, because each may have its own
// user.
func (k Kafka) access(ctx context.Context, found *Findings) {
	var may, not, lacks []string
	for _, role := range topics.Roles() {
		var lacking *topics.AccessError
		err := topics.VerifyAccess(ctx, k.Kafka, role)
		switch {
		case err == nil:
			may = append(may, role)
		case errors.As(err, &lacking):
			not, lacks = append(not, role), append(lacks, fmt.Sprintf("for the role %s it lacks %s", role, fewGrants(lacking.Lacking)))
		default:
			found.Problem("see kafka", "%v", reason(ctx, err))
			return
		}
	}
	const do = `"smartfeed topics acls ROLE --principal User:NAME" prints what kafka-acls.sh has to allow`
	switch {
	case len(may) == 0:
		for _, says := range lacks {
			found.Problem(do, "this user is allowed too little: %s", says)
		}
	case len(not) > 0:
		found.Note(do, "this user may %s, and not %s", strings.Join(may, ", "), strings.Join(not, ", "))
	default:
		found.OK("this user may do what every role does")
	}
}

func fewGrants(all []topics.Grant) string {
	var list []string
	for _, g := range all {
		list = append(list, g.String())
	}
	return few(list)
}

// topics compares the catalogue and the topics of generations with the brokers, and checks that every partition has the
// replicas that it needs.
func (k Kafka) topics(ctx context.Context, found *Findings) {
	profile, err := topics.ProfileOf(ctx, k.Kafka)
	if err != nil {
		found.Problem("see kafka", "%v", reason(ctx, err))
		return
	}
	want := topics.Catalogue(profile)
	if err := k.held(ctx, want, found); err != nil {
		found.Problem("this user may need DESCRIBE and DESCRIBE_CONFIGS on the topics", "%v", reason(ctx, err))
		return
	}
	own := k.generations(ctx, profile, found)
	if len(*found) == 0 {
		found.OK("%s of %s, as planned", command.Count(len(want)+own, "topic"), command.Count(want[0].Partitions, "partition"))
	}
}

// generations checks the topics of generations, which few roles may describe, and returns their number. The list of
// generations is itself in a topic that this user may not be allowed to read, so this check comes last.
func (k Kafka) generations(ctx context.Context, profile topics.Profile, found *Findings) int {
	own, err := topics.TopicsOfGenerations(ctx, k.Kafka, profile)
	if err == nil && len(own) > 0 {
		err = k.held(ctx, own, found)
	}
	switch {
	case errors.Is(err, kerr.TopicAuthorizationFailed):
		found.Note("ask as a user who may operate", "the topics of generations are not looked at: %v", err)
	case err != nil:
		found.Problem("see kafka", "the topics of generations are not looked at: %v", reason(ctx, err))
	}
	return len(own)
}

// held compares topics with the brokers.
func (k Kafka) held(ctx context.Context, want []topics.Topic, found *Findings) error {
	plan, err := topics.Differences(ctx, k.Kafka, want)
	if err != nil {
		return err
	}
	for _, c := range plan.Conflicts {
		found.Problem(c.Advice, "%s: %s is %s and must be %s", c.Topic, c.Key, c.Have, c.Want)
	}
	for _, t := range plan.Create {
		found.Problem(`"smartfeed topics apply" creates it`, "%s is missing", t.Name)
	}
	for _, s := range plan.Alter {
		found.Warn(`"smartfeed topics apply" sets it`, "%s: %s is %s and should be %s", s.Topic, s.Key, s.Have, s.Want)
	}
	if len(plan.Thin) > 0 {
		found.Warn(`kafka-reassign-partitions.sh gives them more, then "smartfeed topics apply" has these used`,
			"with fewer replicas than there are brokers for: %s", thin(plan.Thin))
	}
	return k.replicas(ctx, want, found)
}

func thin(all []topics.Setting) string {
	var list []string
	for _, s := range all {
		list = append(list, fmt.Sprintf("%s (%s of %s)", s.Topic, s.Have, s.Want))
	}
	return few(list)
}

// replicas checks that every partition has the in-sync replicas that its topic requires, according to the topic's own
// setting. The catalogue depends on the number of brokers, and some may be unavailable.
func (k Kafka) replicas(ctx context.Context, want []topics.Topic, found *Findings) error {
	adm, err := k.Admin()
	if err != nil {
		return err
	}
	defer adm.Close()
	var names []string
	for _, t := range want {
		names = append(names, t.Name)
	}
	have, err := adm.ListTopics(ctx, names...)
	if err != nil {
		return fmt.Errorf("list topics: %w", err)
	}
	configs, err := adm.DescribeTopicConfigs(ctx, names...)
	if err != nil {
		return fmt.Errorf("describe topics: %w", err)
	}
	for _, name := range names {
		inSync(name, have[name].Partitions, wanted(configs, name), found)
	}
	return nil
}

// inSync counts the partitions of a topic with fewer in-sync replicas than required, or than they have replicas.
func inSync(topic string, partitions kadm.PartitionDetails, wanted int, found *Findings) {
	short, stopped := 0, 0
	for _, p := range partitions {
		switch {
		case p.Leader < 0 || len(p.ISR) < wanted:
			stopped++
		case len(p.ISR) < len(p.Replicas):
			short++
		}
	}
	if stopped > 0 {
		found.Problem("bring the missing brokers back", "%s: %s cannot be written: fewer in-sync replicas than %d", topic, command.Count(stopped, "partition"), wanted)
	}
	if short > 0 {
		found.Warn("look why a broker is away or behind", "%s: %s without all of its replicas", topic, command.Count(short, "partition"))
	}
}

// wanted returns a topic's min.insync.replicas, and 1 if it is unknown.
func wanted(configs kadm.ResourceConfigs, topic string) int {
	rc, _ := configs.On(topic, nil)
	for _, c := range rc.Configs {
		if n, err := strconv.Atoi(c.MaybeValue()); err == nil && c.Key == topics.InSyncKey {
			return n
		}
	}
	return 1
}

// groups checks the state and the lag of each consumer group.
func (k Kafka) groups(ctx context.Context, found *Findings) {
	readers, lags, err := k.lags(ctx)
	if err != nil {
		found.Problem("this user may need DESCRIBE on the groups, and READ on generations", "%v", reason(ctx, err))
		return
	}
	adm, err := k.Admin()
	if err != nil {
		found.Problem("see kafka", "%v", err)
		return
	}
	defer adm.Close()
	var names []string
	for _, r := range readers {
		names = append(names, r.Group)
	}
	groups, err := adm.DescribeGroups(ctx, names...)
	if err != nil {
		found.Problem("this user may need DESCRIBE on the groups", "describe groups: %v", reason(ctx, err))
		return
	}
	members, behind := 0, int64(0)
	for _, name := range names {
		members += len(groups[name].Members)
		behind += lags[name].records
		group(groups[name], lags[name], name, found)
	}
	if len(*found) == 0 {
		found.OK("%s with %s, at most %s behind", command.Count(len(names), "group"), command.Count(members, "member"), command.Count(behind, "record"))
	}
}

// lag is the lag of a group, and the partitions whose records were deleted before the group read them.
type lag struct {
	records int64
	lost    []string // topic/partition
}

// farBehind is the lag that is reported: ten seconds of a busy product.
const farBehind = 100_000

func group(g kadm.DescribedGroup, l lag, name string, found *Findings) {
	for _, place := range l.lost {
		found.Problem("find out what was lost, then set the offset to the oldest with kafka-consumer-groups", "%s: retention deleted records of %s before they were read", name, place)
	}
	switch {
	case g.Err != nil && !errors.Is(g.Err, kerr.GroupIDNotFound):
		found.Problem("this user may need DESCRIBE on the group", "%s: %v", name, g.Err)
	case g.State == "PreparingRebalance" || g.State == "CompletingRebalance":
		found.Warn("look again: if it goes on, a member is too slow or comes and goes", "%s: members are being assigned partitions", name)
	case len(g.Members) == 0:
		found.Warn(start(name), "%s: no member; %s unprocessed", name, command.Count(l.records, "record"))
	case l.records > farBehind:
		found.Warn("look again: if it grows, start more processes, or see what the group's metrics and log say", "%s: %s behind", name, command.Count(l.records, "record"))
	}
}

// start returns the command that runs a consumer group. A process that runs a group runs every generation of it.
func start(group string) string {
	switch base := generation.GroupOf(group); {
	case slices.Contains(topics.RowGroups(), base):
		return fmt.Sprintf(`start "smartfeed process %s"`, base)
	case strings.HasPrefix(group, topics.Materialize):
		return `start "smartfeed materialize", or "smartfeed serve" with an embedded feed store`
	}
	return `start "smartfeed serve"`
}

// lags compares the groups' committed offsets with the start and end offsets of the topics. For a group with
// generations it returns the existing generations, and for a reader with one group per process the existing processes.
func (k Kafka) lags(ctx context.Context) ([]topics.Reader, map[string]lag, error) {
	l, err := topics.NewLog(k.Kafka)
	if err != nil {
		return nil, nil, err
	}
	defer l.Close()
	generations := topics.GenerationWatch{Log: l}
	if err := generations.Refresh(ctx); err != nil {
		return nil, nil, err
	}
	readers, err := l.Instances(ctx, generations.Readers(k.Readers))
	if err != nil {
		return nil, nil, err
	}
	all, err := l.Positions(ctx, readers)
	if err != nil {
		return nil, nil, err
	}
	out := map[string]lag{}
	for group, positions := range all {
		var sum lag
		for _, p := range positions {
			if p.Topic == topics.TicksOf(group) { // ticks only wake running processes, and are kept for a day
				continue
			}
			sum.records += p.End - max(p.Committed, p.Start)
			if p.Committed >= 0 && p.Committed < p.Start {
				sum.lost = append(sum.lost, fmt.Sprintf("%s/%d", p.Topic, p.Partition))
			}
		}
		out[group] = sum
	}
	return readers, out, nil
}

// letters counts the dead letters of the last day.
func (k Kafka) letters(ctx context.Context, found *Findings) {
	n, err := k.count(ctx, topics.DeadLetters, k.Now().Add(-24*time.Hour))
	switch {
	case err != nil:
		found.Problem("see kafka", "%v", reason(ctx, err))
	case n > 0:
		found.Warn(`"smartfeed deadletters list" says what they are; "retry" sends them again`, "%s in the last 24 h", command.Count(n, "record"))
	default:
		found.OK("none in the last 24 h")
	}
}

// count reads the committed records of a topic since a time.
func (k Kafka) count(ctx context.Context, topic string, since time.Time) (n int, err error) {
	l, err := topics.NewLog(k.Kafka)
	if err != nil {
		return 0, err
	}
	defer l.Close()
	from, err := l.From(ctx, since, topic)
	if err != nil {
		return 0, err
	}
	ends, err := l.Ends(ctx, topic)
	if err != nil {
		return 0, err
	}
	for partition, end := range ends[topic] {
		err := l.ReadTo(ctx, topic, partition, from[topic][partition], end, func(*kgo.Record) error { n++; return nil })
		if err != nil {
			return 0, err
		}
	}
	return n, nil
}
