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
)

// The roles that a user of the brokers can have: those of processes, and of people and programs beside them.
const (
	RoleProcess     = "process"     // all groups
	RoleMaterialize = "materialize" // fills feed stores
	RoleServe       = "serve"       // answers, takes events, fills embedded stores
	RoleProduce     = "produce"     // `smartfeed publish`, or any client that writes the input topics
	RoleOperate     = "operate"     // every other command: those of package operate, and `doctor`
)

// Roles returns all roles.
func Roles() []string {
	return []string{RoleProcess, RoleMaterialize, RoleServe, RoleProduce, RoleOperate}
}

// Kinds of what Kafka guards, in the words of kafka-acls.sh.
const (
	TopicResource         = "topic"
	GroupResource         = "group"
	TransactionalResource = "transactional-id"
)

// The operations that Kafka allows, in its words. Read and Write have Describe in them.
const (
	Read            = "Read"
	Write           = "Write"
	Describe        = "Describe"
	DescribeConfigs = "DescribeConfigs"
	Create          = "Create"
	AlterConfigs    = "AlterConfigs"
)

// Grant is what a role must be allowed on one resource, or on all whose names begin like it.
type Grant struct {
	Kind       string   `json:"kind"`
	Name       string   `json:"name"`
	Prefix     bool     `json:"prefix,omitempty"`
	Operations []string `json:"operations"`
}

// String says it in words: "Read, Describe on topic pins".
func (g Grant) String() string {
	name := g.Name
	if g.Prefix {
		name += "*"
	}
	return fmt.Sprintf("%s on %s %s", strings.Join(g.Operations, ", "), g.Kind, name)
}

// Arguments are those of kafka-acls.sh that allow it to a principal, "User:name".
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

// Grants returns the least that a role must be allowed. The catalogue is the brokers'.
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
		all = append(all, Grant{Kind: TopicResource, Name: generationPrefix(name), Prefix: true, Operations: r.configs(Read, Write, Describe)})
	}
	for _, name := range r.measures {
		all = append(all, Grant{Kind: TopicResource, Name: generationPrefix(name), Prefix: true, Operations: []string{Describe}})
	}
	return all, nil
}

// duty is what a role does on the brokers.
type duty struct {
	consumers []string // whose topics it reads
	writers   []string // whose topics it writes
	reads     []string // further topics
	wholes    bool     // every topic that is held whole
	returns   bool     // dead letters, to where they came from
	configure bool     // makes topics, and alters them
	everyone  bool     // reads and writes every topic that no group keeps for itself

	takes, sees []string // beginnings of the names of groups that it is a member of, or asks about: "features" is of every process
	begins      []string // beginnings of transactional ids
	generations []string // groups that there may be a generation of, with topics that it reads and writes
	measures    []string // such groups; it asks how far their generations are behind
}

func duties() map[string]duty {
	rows, sinks := RowGroups(), []string{Materialize, Features, FeatureFiles, Insights}
	known := []string{UsersDeleted, InterestDecisions} // every process has to know these
	wholes := func(names ...string) (groups []string) {
		for _, n := range names {
			groups = append(groups, wholePrefix(n))
		}
		return groups
	}
	return map[string]duty{
		RoleProcess: {
			consumers: rows, writers: rows, reads: []string{Generations}, wholes: true, returns: true,
			takes:  slices.Concat(rows, wholes(UsersDeleted, InterestDecisions, RecentsPulled, HotPins)),
			begins: rows, generations: []string{Pools},
		},
		RoleMaterialize: {
			consumers: []string{Materialize}, writers: []string{Materialize}, reads: known,
			takes: append(wholes(known...), Materialize),
		},
		RoleServe: {
			consumers: sinks, writers: append(sinks, Serving, Producers), reads: append(known, DeadLetters, Generations),
			takes: slices.Concat(wholes(known...), sinks, []string{RetriedGroup}), sees: rows, measures: []string{Pools},
		},
		RoleProduce: {writers: []string{Producers}},
		RoleOperate: {
			everyone: true, configure: true, generations: []string{Pools},
			takes:  []string{RetriedGroup, generationPrefix(Pools)}, // it says where both begin
			sees:   slices.Concat(rows, sinks, wholes(UsersDeleted, InterestDecisions, RecentsPulled, HotPins)),
			begins: []string{DoctorID},
		},
	}
}

// DoctorID begins the transactional id of the transaction that `smartfeed doctor` tries.
const DoctorID = "smartfeed-doctor-"

// on returns what the duty does with a topic.
func (d duty) on(t Topic) []string {
	meet := func(a, b []string) bool {
		return slices.ContainsFunc(a, func(name string) bool { return slices.Contains(b, name) })
	}
	var ops []string
	if d.everyone || meet(d.consumers, t.Readers) || d.wholes && t.Whole || slices.Contains(d.reads, t.Name) || slices.ContainsFunc(d.consumers, t.isTableOf) {
		ops = append(ops, Read)
	}
	if d.everyone || meet(d.writers, t.Writers) || d.returns && len(t.Readers) > 0 {
		ops = append(ops, Write)
	}
	if len(ops) == 0 && len(d.takes) == 0 {
		return nil // a client beside the product does not look at what is none of its business
	}
	return d.configs(ops...)
}

func (t Topic) isTableOf(group string) bool { return t.Name == TableOf(group) }

// configs adds what whoever holds the topics against the catalogue needs of each.
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

// lacking asks the brokers what of some grants the user of k does not have. Of transactional ids, of groups that nobody has
// been in, and of topics that begin in some way, they say no more than whether they may be described. Without an authorizer
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

// allowedOnTopics are the operations that the user may do, by topic. A topic that is not there is not among them, unless it
// may not be described: brokers do not say then that it is not. So the beginning of names is asked about as a name.
func allowedOnTopics(ctx context.Context, client *kgo.Client, grants []Grant) (map[string][]string, error) {
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
		return nil, nil // none would mean all
	}
	resp, err := req.RequestWith(ctx, client)
	if err != nil {
		return nil, fmt.Errorf("ask what is allowed: %w", err)
	}
	allowed := map[string][]string{}
	for _, t := range resp.Topics {
		switch err := kerr.ErrorForCode(t.ErrorCode); {
		case errors.Is(err, kerr.TopicAuthorizationFailed):
			allowed[*t.Topic] = []string{}
		case err == nil && t.AuthorizedOperations != omitted:
			allowed[*t.Topic] = operations(kadm.DecodeACLOperations(t.AuthorizedOperations))
		}
	}
	return allowed, nil
}

// omitted is what brokers say that do not tell what is allowed.
const omitted = -1 << 31

// operations are the names of operations, and of those in them.
func operations(ops []kadm.ACLOperation) []string {
	var names []string
	for _, op := range ops {
		names = append(names, map[kmsg.ACLOperation]string{
			kmsg.ACLOperationRead: Read, kmsg.ACLOperationWrite: Write, kmsg.ACLOperationDescribe: Describe,
			kmsg.ACLOperationDescribeConfigs: DescribeConfigs, kmsg.ACLOperationCreate: Create, kmsg.ACLOperationAlterConfigs: AlterConfigs,
		}[op])
	}
	return names
}

// lacks returns which of its operations are not allowed, as far as the brokers tell.
func (g Grant) lacks(ctx context.Context, adm *kadm.Client, allowed map[string][]string) ([]string, error) {
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
	return slices.DeleteFunc(slices.Clone(g.Operations), func(op string) bool { return slices.Contains(has, op) }), nil
}

// allowedOnGroup returns what is allowed on a group; told: the broker has said so.
func allowedOnGroup(ctx context.Context, adm *kadm.Client, name string) (has []string, told bool, err error) {
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
	has = operations(groups[name].AuthorizedOperations)
	return has, len(has) > 0, nil
}

// allowedOnTransaction returns nothing, and told, when a transactional id may not even be described.
func allowedOnTransaction(ctx context.Context, adm *kadm.Client, id string) (has []string, told bool, err error) {
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

// undecided says that there is no coordinator to ask: on brokers that never had a group or a transaction there is none
// until somebody begins one, and while it moves whoever needs it tries again.
func undecided(err error) bool {
	for _, e := range []error{kerr.CoordinatorNotAvailable, kerr.CoordinatorLoadInProgress, kerr.NotCoordinator} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// AccessError says what a user of the brokers lacks for a role.
type AccessError struct {
	Role    string
	User    string // empty: nobody in particular
	Lacking []Grant
}

// Error names each operation with its resource, and what to do.
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

// VerifyAccess returns an *AccessError if the user of k lacks something that a role needs.
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
