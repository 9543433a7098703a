package topicstest

import (
	"maps"
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/smartfeed/smartfeed/internal/secure"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/internal/testkit/securetest"
	"github.com/smartfeed/smartfeed/topics"
)

// Guarded starts a broker with every topic, which allows only its superuser anything.
func Guarded(t testing.TB, users ...string) (admin topics.Kafka, as func(user string) topics.Kafka) {
	t.Helper()
	opts := []kfake.Opt{kfake.NumBrokers(1), kfake.EnableSASL(), kfake.EnableACLs(), kfake.Superuser(topics.ScramSHA256, "root", securetest.Literal)}
	for _, u := range users {
		opts = append(opts, kfake.User(topics.ScramSHA256, u, securetest.Literal))
	}
	c := must.Get(kfake.NewCluster(opts...))(t)
	t.Cleanup(c.Close)
	as = func(user string) topics.Kafka {
		login := topics.SASL{Mechanism: topics.ScramSHA256, Login: secure.Login{User: user, Password: securetest.Literal}}
		return topics.Kafka{Brokers: c.ListenAddrs(), Partitions: 2, SASL: login}
	}
	admin = as("root")
	must.Get(topics.Apply(t.Context(), admin, topics.Catalogue(topics.Profile{Partitions: 2, Replicas: 1})))(t)
	return admin, as
}

// Admitted returns users of a broker. Each has the permissions of a role, apart from those that without selects.
func Admitted(t testing.TB, role string, without map[string]func(topics.Grant) bool) (admin topics.Kafka, as func(user string) topics.Kafka) {
	t.Helper()
	admin, as = Guarded(t, slices.Sorted(maps.Keys(without))...)
	adm := must.Get(admin.Admin())(t)
	t.Cleanup(adm.Close)
	grants := must.Get(topics.Grants(role, topics.Catalogue(topics.Profile{Partitions: 2, Replicas: 1})))(t)
	for user, lacks := range without {
		Grant(t, adm, "User:"+user, slices.DeleteFunc(slices.Clone(grants), lacks))
	}
	return admin, as
}

// Grant grants permissions to a principal, as kafka-acls.sh would.
func Grant(t testing.TB, adm *kadm.Client, principal string, grants []topics.Grant) {
	t.Helper()
	for _, g := range grants {
		b := kadm.NewACLs().Allow(principal).AllowHosts()
		switch g.Kind {
		case topics.TopicResource:
			b = b.Topics(g.Name)
		case topics.GroupResource:
			b = b.Groups(g.Name)
		case topics.TransactionalResource:
			b = b.TransactionalIDs(g.Name)
		}
		b = b.ResourcePatternType(kadm.ACLPatternLiteral)
		if g.Prefix {
			b = b.ResourcePatternType(kadm.ACLPatternPrefixed)
		}
		var ops []kadm.ACLOperation
		for _, name := range g.Operations {
			ops = append(ops, must.Get(kmsg.ParseACLOperation(name))(t))
		}
		for _, r := range must.Get(adm.CreateACLs(t.Context(), b.Operations(ops...)))(t) {
			expect.Error(t, r.Err, "", "%s", g)
		}
	}
}
