package topics

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/smartfeed/smartfeed/internal/convert"
	"github.com/smartfeed/smartfeed/topics/generation"
)

// Roles of the users of the brokers: processes, people and other programs.
const (
	RoleProcess     = "process"     // runs all groups with rows
	RoleMaterialize = "materialize" // fills feed stores
	RoleServe       = "serve"       // answers requests, accepts events, fills embedded stores
	RoleProduce     = "produce"     // `smartfeed publish`, or any client that writes the input topics
	RoleOperate     = "operate"     // every other command, including `doctor`
)

// Roles returns all roles.
func Roles() []string {
	return []string{RoleProcess, RoleMaterialize, RoleServe, RoleProduce, RoleOperate}
}

// Kinds of Kafka resources, as kafka-acls.sh names them.
const (
	TopicResource         = "topic"
	GroupResource         = "group"
	TransactionalResource = "transactional-id"
)

// Kafka operations, as Kafka names them. Read and Write imply Describe.
const (
	Read            = "Read"
	Write           = "Write"
	Describe        = "Describe"
	DescribeConfigs = "DescribeConfigs"
	Create          = "Create"
	AlterConfigs    = "AlterConfigs"
)

// Grant is a permission that a role needs on one resource, or on all resources whose names start with Name.
type Grant struct {
	Kind       string   `json:"kind"`
	Name       string   `json:"name"`
	Prefix     bool     `json:"prefix,omitempty"`
	Operations []string `json:"operations"`
}

// String returns the permission for people: "Read, Describe on topic pins".
func (g Grant) String() string {
	name := g.Name
	if g.Prefix {
		name += "*"
	}
	return fmt.Sprintf("%s on %s %s", strings.Join(g.Operations, ", "), g.Kind, name)
}

// Arguments returns the arguments of kafka-acls.sh that grant the permission to a principal, "User:name".
func (g Grant) Arguments(principal string) []string {
	args := []string{"--add", "--allow-principal", principal}
	for _, op := range g.Operations {
		args = append(args, "--operation", op)
	}
	args = append(args, "--"+g.Kind, g.Name)
	if g.Prefix {
		args = append(args, "--resource-pattern-type", "prefixed")
	}
	return args
}

// Grants returns the minimal permissions of a role. catalogue must have the profile of the brokers.
func Grants(role string, catalogue []Topic) ([]Grant, error) {
	r, known := accessOfRoles()[role]
	if !known {
		return nil, fmt.Errorf("role: %q: want one of %s", role, strings.Join(Roles(), ", "))
	}
	var all []Grant
	for _, t := range catalogue {
		if ops := r.operationsOn(t); len(ops) > 0 {
			all = append(all, Grant{Kind: TopicResource, Name: t.Name, Operations: ops})
		}
	}
	prefixed := func(kind string, names []string, operations ...string) {
		for _, name := range names {
			all = append(all, Grant{Kind: kind, Name: name, Prefix: true, Operations: operations})
		}
	}
	prefixed(GroupResource, r.joins, Read)
	prefixed(GroupResource, r.describes, Describe)
	prefixed(TransactionalResource, r.transactions, Write)
	prefixed(TopicResource, r.generations, r.withConfigs(Read, Write, Describe)...)
	return all, nil
}

// roleAccess lists the consumers, topics, groups and transactions for which a role needs permissions.
type roleAccess struct {
	consumers          []string // reads the topics of these consumers
	writers            []string // writes the topics of these writers
	reads              []string // reads these topics, too
	globalTables       bool     // reads every global table
	retriesDeadLetters bool     // retries dead letters: writes to the topics that they came from
	configure          bool     // creates topics and alters their configuration
	allTopics          bool     // reads and writes every topic of the catalogue

	joins, describes []string // prefixes of consumer groups that the role joins, or describes: "features" covers every process
	transactions     []string // prefixes of transactional ids
	generations      []string // prefixes of the topics of later generations that the role reads and writes
}

func accessOfRoles() map[string]roleAccess {
	rows, sinks := RowGroups(), []string{Materialize, Features, FeatureFiles}
	laterPools := []string{generation.Prefix(Pools)}
	known := []string{UsersDeleted, InterestDecisions} // every process reads these
	globalTables := func(names ...string) []string { return convert.All(names, globalTablePrefix) }
	return map[string]roleAccess{
		RoleProcess: {
			consumers: rows, writers: rows, reads: []string{Generations}, globalTables: true, retriesDeadLetters: true,
			joins:        slices.Concat(rows, globalTables(UsersDeleted, InterestDecisions, RecentsPulled, HotPins, PopularPins)),
			transactions: rows, generations: laterPools,
		},
		RoleMaterialize: {
			consumers: []string{Materialize}, writers: []string{Materialize}, reads: known,
			joins: append(globalTables(known...), Materialize),
		},
		RoleServe: {
			consumers: sinks, writers: append(sinks, Serving, Producers), reads: append(known, DeadLetters, Generations),
			joins: slices.Concat(globalTables(known...), sinks, []string{RetriedGroup}), describes: rows,
		},
		RoleProduce: {writers: []string{Producers}},
		RoleOperate: {
			allTopics: true, configure: true, generations: laterPools,
			joins:        []string{RetriedGroup, generation.Prefix(Pools)}, // it commits offsets for both
			describes:    slices.Concat(rows, sinks, globalTables(UsersDeleted, InterestDecisions, RecentsPulled, HotPins, PopularPins)),
			transactions: []string{DoctorID},
		},
	}
}

// DoctorID is the prefix of the transactional id that `smartfeed doctor` uses for its test transaction.
const DoctorID = "smartfeed-doctor-"

// operationsOn returns the operations that the role needs on a topic.
func (r roleAccess) operationsOn(t Topic) []string {
	intersect := func(a, b []string) bool {
		return slices.ContainsFunc(a, func(name string) bool { return slices.Contains(b, name) })
	}
	var ops []string
	if r.allTopics || intersect(r.consumers, t.Readers) || r.globalTables && t.GlobalTable || slices.Contains(r.reads, t.Name) || slices.ContainsFunc(r.consumers, t.isTableOf) {
		ops = append(ops, Read)
	}
	if r.allTopics || intersect(r.writers, t.Writers) || r.retriesDeadLetters && len(t.Readers) > 0 {
		ops = append(ops, Write)
	}
	if len(ops) == 0 && len(r.joins) == 0 {
		return nil // a pure producer does not verify the other topics
	}
	return r.withConfigs(ops...)
}

func (t Topic) isTableOf(group string) bool { return t.Name == TableOf(group) }

// withConfigs adds the operations that a role needs to compare a topic with the catalogue.
func (r roleAccess) withConfigs(ops ...string) []string {
	if len(r.joins) == 0 {
		return ops
	}
	if len(ops) == 0 {
		ops = []string{Describe}
	}
	ops = append(ops, DescribeConfigs)
	if r.configure {
		ops = append(ops, Create, AlterConfigs)
	}
	return ops
}

// missingGrants returns the grants that the user of k does not have, with the missing operations. For transactional ids, for
// groups that never had members, and for topic prefixes, brokers report only the permission to describe them. Without an
// authorizer, no grant is missing.
func missingGrants(ctx context.Context, k Kafka, grants []Grant) ([]Grant, error) {
	client, err := k.Client()
	if err != nil {
		return nil, err
	}
	defer client.Close()
	allowed, err := allowedOnTopics(ctx, client, grants)
	if err != nil {
		return nil, err
	}
	adm := kadm.NewClient(client)
	var missing []Grant
	for _, g := range grants {
		operations, err := g.missing(ctx, adm, allowed)
		if err != nil {
			return nil, err
		}
		if len(operations) > 0 {
			missing = append(missing, Grant{g.Kind, g.Name, g.Prefix, operations})
		}
	}
	return missing, nil
}

// allowedOnTopics returns the operations for which the user has permission, by topic. A missing topic has no entry, unless
// the user has no permission to describe it: brokers then do not report that it is missing. For this reason a prefix is
// queried as if it were a topic name.
func allowedOnTopics(ctx context.Context, client *kgo.Client, grants []Grant) (map[string][]kadm.ACLOperation, error) {
	req := kmsg.NewPtrMetadataRequest()
	req.IncludeTopicAuthorizedOperations = true
	for _, g := range grants {
		if g.Kind == TopicResource {
			t := kmsg.NewMetadataRequestTopic()
			t.Topic = kmsg.StringPtr(g.Name)
			req.Topics = append(req.Topics, t)
		}
	}
	if len(req.Topics) == 0 {
		return nil, nil // an empty list would mean all topics
	}
	resp, err := req.RequestWith(ctx, client)
	if err != nil {
		return nil, fmt.Errorf("fetch authorized operations of topics: %w", err)
	}
	allowed := map[string][]kadm.ACLOperation{}
	for _, t := range resp.Topics {
		switch err := kerr.ErrorForCode(t.ErrorCode); {
		case errors.Is(err, kerr.TopicAuthorizationFailed):
			allowed[*t.Topic] = []kadm.ACLOperation{}
		case err == nil && t.AuthorizedOperations != noOperations:
			allowed[*t.Topic] = kadm.DecodeACLOperations(t.AuthorizedOperations)
		}
	}
	return allowed, nil
}

// noOperations is the value with which brokers omit the authorized operations.
const noOperations = -1 << 31

// missing returns the operations of g for which the user has no permission, as far as the brokers report them.
func (g Grant) missing(ctx context.Context, adm *kadm.Client, allowed map[string][]kadm.ACLOperation) ([]string, error) {
	has, known := allowed[g.Name]
	if g.Kind != TopicResource {
		var err error
		if has, known, err = g.askCoordinator(ctx, adm); err != nil {
			return nil, fmt.Errorf("fetch authorized operations of %s %s: %w", g.Kind, g.Name, err)
		}
	}
	if !known {
		return nil, nil
	}
	return slices.DeleteFunc(slices.Clone(g.Operations), func(name string) bool {
		op, err := kmsg.ParseACLOperation(name)
		return err == nil && slices.Contains(has, op)
	}), nil
}

// askCoordinator returns the operations for which the user has permission on a group or a transactional id. known is false if
// the broker did not report them. For a transactional id, it reports only that the user has no permission to describe it.
func (g Grant) askCoordinator(ctx context.Context, adm *kadm.Client) (has []kadm.ACLOperation, known bool, err error) {
	if g.Kind == GroupResource {
		groups, failure := adm.DescribeGroups(ctx, g.Name)
		has, err = groups[g.Name].AuthorizedOperations, cmp.Or(failure, groups[g.Name].Err)
	} else {
		transactions, failure := adm.DescribeTransactions(ctx, g.Name)
		err = cmp.Or(failure, transactions[g.Name].Err)
	}
	switch {
	case errors.Is(err, kerr.GroupAuthorizationFailed), errors.Is(err, kerr.TransactionalIDAuthorizationFailed):
		return nil, true, nil
	case errors.Is(err, kerr.GroupIDNotFound), errors.Is(err, kerr.TransactionalIDNotFound), coordinatorUnavailable(err):
		return nil, false, nil
	}
	return has, len(has) > 0, err
}

// coordinatorUnavailable reports whether err means that no coordinator can answer at the moment. Brokers create coordinators
// with the first group or transaction. While a coordinator moves, clients that need it retry.
func coordinatorUnavailable(err error) bool {
	return errors.Is(err, kerr.CoordinatorNotAvailable) || errors.Is(err, kerr.CoordinatorLoadInProgress) || errors.Is(err, kerr.NotCoordinator)
}

// AccessError lists the permissions that a user of the brokers lacks for a role.
type AccessError struct {
	Role    string
	User    string // empty: not authenticated
	Missing []Grant
}

// Error names each missing operation with its resource, and the command that prints all permissions of the role.
func (e *AccessError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s has no permission for these operations of the role %s:", cmp.Or(e.User, "this process"), e.Role)
	for _, g := range e.Missing {
		fmt.Fprintf(&b, "\n  %s", g)
	}
	fmt.Fprintf(&b, "\n(\"smartfeed topics acls %s\" prints all permissions of the role)", e.Role)
	return b.String()
}

// VerifyAccess returns an *AccessError if the user of k lacks a permission that the role needs.
func VerifyAccess(ctx context.Context, k Kafka, role string) error {
	grants, err := Grants(role, Catalogue(Profile{Partitions: k.Partitions}))
	if err != nil {
		return err
	}
	denied, err := missingGrants(ctx, k, grants)
	if err != nil {
		return err
	}
	if len(denied) > 0 {
		return &AccessError{Role: role, User: k.SASL.User, Missing: denied}
	}
	return nil
}
