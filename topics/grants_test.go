package topics_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/internal/testkit/topicstest"
	"github.com/smartfeed/smartfeed/topics"
)

// grantsOf returns the permissions of a role, by resource.
func grantsOf(t *testing.T, role string) map[string][]string {
	t.Helper()
	grants := must.Get(topics.Grants(role, topics.Catalogue(oneBroker())))(t)
	of := map[string][]string{}
	for _, g := range grants {
		name := g.Kind + " " + g.Name
		if g.Prefix {
			name += "*"
		}
		of[name] = append(of[name], g.Operations...)
	}
	return of
}

func TestGrants(t *testing.T) {
	for _, c := range []struct {
		role, resource string
		want           []string
	}{
		{topics.RoleProcess, "topic follows", []string{topics.Read, topics.Write, topics.DescribeConfigs}}, // it retries dead letters to it
		{topics.RoleProcess, "topic pools-table", []string{topics.Read, topics.Write, topics.DescribeConfigs}},
		{topics.RoleProcess, "topic recents-pulled", []string{topics.Read, topics.Write, topics.DescribeConfigs}},
		{topics.RoleProcess, "topic feature-log", []string{topics.Write, topics.DescribeConfigs}},
		{topics.RoleProcess, "topic pools.*", []string{topics.Read, topics.Write, topics.Describe, topics.DescribeConfigs}},
		{topics.RoleProcess, "group pools*", []string{topics.Read}},
		{topics.RoleProcess, "group recents-pulled-global-table-*", []string{topics.Read}},
		{topics.RoleProcess, "group features*", nil},
		{topics.RoleProcess, "transactional-id fanout*", []string{topics.Write}},
		{topics.RoleMaterialize, "topic feed-entries", []string{topics.Read, topics.DescribeConfigs}},
		{topics.RoleMaterialize, "topic dead-letters", []string{topics.Write, topics.DescribeConfigs}},
		{topics.RoleMaterialize, "topic actions", []string{topics.Describe, topics.DescribeConfigs}},
		{topics.RoleMaterialize, "group materialize*", []string{topics.Read}},
		{topics.RoleMaterialize, "transactional-id pools*", nil},
		{topics.RoleServe, "topic served", []string{topics.Write, topics.DescribeConfigs}},
		{topics.RoleServe, "topic pins", []string{topics.Write, topics.DescribeConfigs}},
		{topics.RoleServe, "topic deliveries", []string{topics.Describe, topics.DescribeConfigs}},
		{topics.RoleServe, "group pools*", []string{topics.Describe}},
		{topics.RoleServe, "group features*", []string{topics.Read}},     // prefix of every process's group
		{topics.RoleServe, "group dead-letters*", []string{topics.Read}}, // it retries dead letters
		{topics.RoleProduce, "topic pins", []string{topics.Write}},
		{topics.RoleProduce, "topic served", nil},
		{topics.RoleOperate, "topic pins", []string{topics.Read, topics.Write, topics.DescribeConfigs, topics.Create, topics.AlterConfigs}},
		{topics.RoleOperate, "group pools.*", []string{topics.Read}}, // it sets the initial offsets of a generation from the previous one
		{topics.RoleOperate, "group pools*", []string{topics.Describe}},
		{topics.RoleOperate, "transactional-id smartfeed-doctor-*", []string{topics.Write}},
	} {
		expect.NoDiff(t, grantsOf(t, c.role)[c.resource], c.want, "%s on %s", c.role, c.resource)
	}
	expect.Fails(t, expect.ErrorOf(topics.Grants("cook", nil)), "grants of an unknown role")
}

// Every reader and writer in the catalogue has a role with the required permissions.
func TestGrants_CoverReadersAndWriters(t *testing.T) {
	of := map[string]map[string][]string{}
	for _, role := range topics.Roles() {
		of[role] = grantsOf(t, role)
	}
	role := func(name string) string {
		switch {
		case slices.Contains(topics.RowGroups(), name):
			return topics.RoleProcess
		case name == topics.Materialize:
			return topics.RoleMaterialize
		case name == topics.Producers:
			return topics.RoleProduce
		case name == topics.Operators:
			return topics.RoleOperate
		}
		return topics.RoleServe
	}
	for _, topic := range topics.Catalogue(oneBroker()) {
		may := func(who, op string) {
			expect.True(t, slices.Contains(of[role(who)]["topic "+topic.Name], op), "%s has a grant of %s on %s", who, op, topic.Name)
		}
		for _, who := range topic.Writers {
			may(who, topics.Write)
		}
		for _, who := range topic.Readers {
			may(who, topics.Read)
		}
	}
}

func TestVerifyAccess_NamesMissingPermissions(t *testing.T) {
	admin, as := topicstest.Guarded(t, "stranger", "almost", "whole")
	adm := must.Get(admin.Admin())(t)
	t.Cleanup(adm.Close)
	grants := must.Get(topics.Grants(topics.RoleProcess, topics.Catalogue(oneBroker())))(t)
	topicstest.Grant(t, adm, "User:whole", grants)
	topicstest.Grant(t, adm, "User:almost", slices.DeleteFunc(slices.Clone(grants), func(g topics.Grant) bool {
		return g.Name == topics.Deliveries || g.Name == topics.Fanout
	}))
	for _, c := range []struct {
		user string
		all  int
		want []string
	}{
		{"root", 0, nil},
		{"whole", 0, nil},
		{"almost", 3, []string{"Read, Write, DescribeConfigs on topic deliveries", "Read on group fanout*", "Write on transactional-id fanout*"}},
		{"stranger", len(grants), []string{
			"Read, Write, DescribeConfigs on topic pins", "Describe, DescribeConfigs on topic pools.*", "stranger has no permission", "topics acls process",
		}},
	} {
		err := topics.VerifyAccess(t.Context(), as(c.user), topics.RoleProcess)
		var denied *topics.AccessError
		if !errors.As(err, &denied) {
			if c.all > 0 || err != nil {
				t.Errorf("%s: got %v, want %d missing grants", c.user, err, c.all)
			}
			continue
		}
		expect.Equal(t, len(denied.Missing), c.all, "%s: number of missing grants %v", c.user, err)
		for _, want := range c.want {
			expect.Contains(t, err.Error(), want, "%s: error", c.user)
		}
	}
	expect.Fails(t, topics.VerifyAccess(t.Context(), as("whole"), "cook"), "unknown role")
}

// A missing permission on a group without members is detected like all others.
func TestVerifyAccess_DetectsMissingPermissionOfServe(t *testing.T) {
	retried := func(g topics.Grant) bool { return g.Kind == topics.GroupResource && g.Name == topics.RetriedGroup }
	_, as := topicstest.Admitted(t, topics.RoleServe, map[string]func(topics.Grant) bool{
		"whole": func(topics.Grant) bool { return false }, "former": retried,
	})
	must.OK(t, topics.VerifyAccess(t.Context(), as("whole"), topics.RoleServe))
	denied := must.As[*topics.AccessError](t, topics.VerifyAccess(t.Context(), as("former"), topics.RoleServe))
	want := []topics.Grant{
		{Kind: topics.GroupResource, Name: topics.RetriedGroup, Prefix: true, Operations: []string{topics.Read}},
	}
	expect.NoDiff(t, denied.Missing, want, "missing")
}

// A topic that a user has no permission to describe is not reported as missing.
func TestVerify_DistinguishesHiddenFromMissingTopic(t *testing.T) {
	_, as := topicstest.Guarded(t, "stranger")
	err := topics.Verify(t.Context(), as("stranger"), topics.Catalogue(oneBroker()))
	if err == nil || strings.Contains(err.Error(), "missing") || !strings.Contains(err.Error(), "Describe on topic ") {
		t.Errorf("got %v, want a missing permission to describe it", err)
	}
}

// A process that runs generations starts only if their topics are correct. Other processes, which have no permission to describe
// them, start anyway.
func TestVerifyAll_ChecksGenerationsOfRole(t *testing.T) {
	admin, as := topicstest.Guarded(t, topics.Roles()...)
	w := topicstest.On(t, admin, nil)
	adm := w.Admin()
	w.CreateGeneration(oneBroker(), 2)
	w.SetGeneration(2, 0)
	for role, works := range map[string]bool{
		topics.RoleProcess: true, topics.RoleOperate: true, topics.RoleServe: false, topics.RoleMaterialize: false,
	} {
		grants := must.Get(topics.Grants(role, topics.Catalogue(oneBroker())))(t)
		topicstest.Grant(t, adm, "User:"+role, grants)
		expect.Error(t, expect.ErrorOf(topics.VerifyAll(t.Context(), as(role), role)), "", "%s", role)
		w.SetConfig("pools.2-table", "max.message.bytes", "1000")
		_, err := topics.VerifyAll(t.Context(), as(role), role)
		reported := err != nil && strings.Contains(err.Error(), "pools.2-table: max.message.bytes is 1000")
		expect.Equal(t, reported, works, "%s: %v is reported", role, err)
		expect.Equal(t, err != nil, reported, "%s: %v is an error", role, err)
		w.CreateGeneration(oneBroker(), 2)
	}
}
