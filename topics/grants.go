package topics

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/smartfeed/smartfeed/topics/generation"
)

// Roles of the users of the brokers: processes, people and other programs.
const (
	RoleProcess     = "process"     // runs all groups with rows
	RoleMaterialize = "materialize" // fills feed stores
	RoleServe       = "serve"       // answers requests, accepts events, fills embedded stores
	RoleProduce     = "produce"     // `smartfeed publish`, or any client that writes the input topics
	RoleOperate     = "operate"     // every other command: those of package operate, and `doctor`
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
	r, known := duties()[role]
	if !known {
		return nil, fmt.Errorf("there is no role %q, but %s", role, strings.Join(Roles(), ", "))
	}
	var all []Grant
	for _, t := range catalogue {
		if ops := r.on(t); len(ops) > 0 {
			all = append(all, Grant{Kind: TopicResource, Name: t.Name, Operations: ops})
		}
	}
	for _, name := range r.takes {
		all = append(all, Grant{Kind: GroupResource, Name: name, Prefix: true, Operations: []string{Read}})
	}
	for _, name := range r.sees {
		all = append(all, Grant{Kind: GroupResource, Name: name, Prefix: true, Operations: []string{Describe}})
	}
	for _, name := range r.begins {
		all = append(all, Grant{Kind: TransactionalResource, Name: name, Prefix: true, Operations: []string{Write}})
	}
	for _, name := range r.generations {
		all = append(all, Grant{Kind: TopicResource, Name: generation.Prefix(name), Prefix: true, Operations: r.configs(Read, Write, Describe)})
	}
	for _, name := range r.measures {
		all = append(all, Grant{Kind: TopicResource, Name: generation.Prefix(name), Prefix: true, Operations: []string{Describe}})
	}
	return all, nil
}

// duty is what a role does on the brokers.
type duty struct {
	consumers    []string // reads the topics of these consumers
	writers      []string // writes the topics of these writers
	reads        []string // reads these topics, too
	globalTables bool     // reads every global table
	returns      bool     // retries dead letters: writes to the topics that they came from
	configure    bool     // creates topics and alters their configuration
	everyone     bool     // reads and writes every topic of the catalogue

	takes, sees []string // prefixes of consumer groups that the role joins, or describes: "features" covers every process
	begins      []string // prefixes of transactional ids
	generations []string // groups that may have several generations, whose topics the role reads and writes
	measures    []string // groups that may have several generations, whose lag the role measures
}

func duties() map[string]duty {
	rows, sinks := RowGroups(), []string{Materialize, Features, FeatureFiles, Insights}
	known := []string{UsersDeleted, InterestDecisions} // every process reads these
	globalTables := func(names ...string) (groups []string) {
		for _, n := range names {
			groups = append(groups, globalTablePrefix(n))
		}
		return groups
	}
	return map[string]duty{
		RoleProcess: {
			consumers: rows, writers: rows, reads: []string{Generations}, globalTables: true, returns: true,
			takes:  slices.Concat(rows, globalTables(UsersDeleted, InterestDecisions, RecentsPulled, HotPins)),
			begins: rows, generations: []string{Pools},
		},
		RoleMaterialize: {
			consumers: []string{Materialize}, writers: []string{Materialize}, reads: known,
			takes: append(globalTables(known...), Materialize),
		},
		RoleServe: {
			consumers: sinks, writers: append(sinks, Serving, Producers), reads: append(known, DeadLetters, Generations),
			takes: slices.Concat(globalTables(known...), sinks, []string{RetriedGroup}), sees: rows, measures: []string{Pools},
		},
		RoleProduce: {writers: []string{Producers}},
		RoleOperate: {
			everyone: true, configure: true, generations: []string{Pools},
			takes:  []string{RetriedGroup, generation.Prefix(Pools)}, // it commits offsets for both
			sees:   slices.Concat(rows, sinks, globalTables(UsersDeleted, InterestDecisions, RecentsPulled, HotPins)),
			begins: []string{DoctorID},
		},
	}
}

// DoctorID is the prefix of the transactional id that `smartfeed doctor` uses for its test transaction.
const DoctorID = "smartfeed-doctor-"

// on returns the operations that the role needs on a topic.
func (d duty) on(t Topic) []string {
	meet := func(a, b []string) bool {
		return slices.ContainsFunc(a, func(name string) bool { return slices.Contains(b, name) })
	}
	var ops []string
	if d.everyone || meet(d.consumers, t.Readers) || d.globalTables && t.GlobalTable || slices.Contains(d.reads, t.Name) || slices.ContainsFunc(d.consumers, t.isTableOf) {
		ops = append(ops, Read)
	}
	if d.everyone || meet(d.writers, t.Writers) || d.returns && len(t.Readers) > 0 {
		ops = append(ops, Write)
	}
	if len(ops) == 0 && len(d.takes) == 0 {
		return nil // a pure producer does not verify the other topics
	}
	return d.configs(ops...)
}

func (t Topic) isTableOf(group string) bool { return t.Name == TableOf(group) }

// configs adds the operations that a role needs to compare a topic with the catalogue.
func (d duty) configs(ops ...string) []string {
	if len(d.takes) == 0 {
		return ops
	}
	if len(ops) == 0 {
		ops = []string{Describe}
	}
	ops = append(ops, DescribeConfigs)
	if d.configure {
		ops = append(ops, Create, AlterConfigs)
	}
	return ops
}

// lacking asks the brokers which of the grants the user of k does not have. For transactional ids, for groups without
// members so far, and for topic prefixes, brokers report only whether the user may describe them. Without an authorizer,
// nothing is lacking.
func lacking(ctx context.Context, k Kafka, grants []Grant) ([]Grant, error) {
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
	var lacking []Grant
	for _, g := range grants {
		missing, err := g.lacks(ctx, adm, allowed)
		if err != nil {
			return nil, err
		}
		if len(missing) > 0 {
			lacking = append(lacking, Grant{g.Kind, g.Name, g.Prefix, missing})
		}
	}
	return lacking, nil
}

// allowedOnTopics returns the operations that the user may perform, by topic. A missing topic has no entry, unless the user
// may not describe it: brokers then do not say that it is missing. For this reason a prefix is queried as if it were a
// topic name.
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
		return nil, fmt.Errorf("ask what is allowed: %w", err)
	}
	allowed := map[string][]kadm.ACLOperation{}
	for _, t := range resp.Topics {
		switch err := kerr.ErrorForCode(t.ErrorCode); {
		case errors.Is(err, kerr.TopicAuthorizationFailed):
			allowed[*t.Topic] = []kadm.ACLOperation{}
		case err == nil && t.AuthorizedOperations != omitted:
			allowed[*t.Topic] = kadm.DecodeACLOperations(t.AuthorizedOperations)
		}
	}
	return allowed, nil
}

// omitted is the value with which brokers leave out the authorized operations.
const omitted = -1 << 31

// lacks returns the operations of g that are not allowed, as far as the brokers report them.
func (g Grant) lacks(ctx context.Context, adm *kadm.Client, allowed map[string][]kadm.ACLOperation) ([]string, error) {
	has, told := allowed[g.Name]
	var err error
	switch {
	case g.Kind == GroupResource:
		has, told, err = allowedOnGroup(ctx, adm, g.Name)
	case g.Kind == TransactionalResource:
		has, told, err = allowedOnTransaction(ctx, adm, g.Name)
	}
	if err != nil {
		return nil, fmt.Errorf("ask what is allowed on %s %s: %w", g.Kind, g.Name, err)
	}
	if !told {
		return nil, nil
	}
	return slices.DeleteFunc(slices.Clone(g.Operations), func(name string) bool {
		op, err := kmsg.ParseACLOperation(name)
		return err == nil && slices.Contains(has, op)
	}), nil
}

// allowedOnGroup returns the operations allowed on a group. told is false if the broker did not report them.
func allowedOnGroup(ctx context.Context, adm *kadm.Client, name string) (has []kadm.ACLOperation, told bool, err error) {
	groups, err := adm.DescribeGroups(ctx, name)
	if err == nil {
		err = groups[name].Err
	}
	switch {
	case errors.Is(err, kerr.GroupAuthorizationFailed):
		return nil, true, nil
	case errors.Is(err, kerr.GroupIDNotFound) || undecided(err):
		return nil, false, nil
	case err != nil:
		return nil, false, err
	}
	has = groups[name].AuthorizedOperations
	return has, len(has) > 0, nil
}

// allowedOnTransaction returns told with no operations if the user may not even describe a transactional id.
func allowedOnTransaction(ctx context.Context, adm *kadm.Client, id string) (has []kadm.ACLOperation, told bool, err error) {
	described, err := adm.DescribeTransactions(ctx, id)
	if err == nil {
		err = described[id].Err
	}
	switch {
	case errors.Is(err, kerr.TransactionalIDAuthorizationFailed):
		return nil, true, nil
	case err == nil || errors.Is(err, kerr.TransactionalIDNotFound) || undecided(err):
		return nil, false, nil
	}
	return nil, false, err
}

// undecided reports whether err means that no coordinator can answer now. Brokers create coordinators with the first group
// or transaction. While a coordinator moves, clients that need it retry.
func undecided(err error) bool {
	for _, e := range []error{kerr.CoordinatorNotAvailable, kerr.CoordinatorLoadInProgress, kerr.NotCoordinator} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// AccessError lists the permissions that a user of the brokers lacks for a role.
type AccessError struct {
	Role    string
	User    string // empty: not authenticated
	Lacking []Grant
}

// Error names each missing operation with its resource, and says what to do.
func (e *AccessError) Error() string {
	user := e.User
	if user == "" {
		user = "this process"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "the brokers do not allow %s what the role %s needs:", user, e.Role)
	for _, g := range e.Lacking {
		fmt.Fprintf(&b, "\n  %s", g)
	}
	fmt.Fprintf(&b, "\n(\"smartfeed topics acls %s\" prints all that it needs)", e.Role)
	return b.String()
}

// VerifyAccess returns an *AccessError if the user of k lacks a permission that the role needs.
func VerifyAccess(ctx context.Context, k Kafka, role string) error {
	grants, err := Grants(role, Catalogue(Profile{Partitions: k.Partitions}))
	if err != nil {
		return err
	}
	denied, err := lacking(ctx, k, grants)
	if err != nil {
		return err
	}
	if len(denied) > 0 {
		return &AccessError{Role: role, User: k.SASL.User, Lacking: denied}
	}
	return nil
}
