package app

import (
	"math"
	"slices"
	"testing"

	"github.com/smartfeed/smartfeed/internal/ops/generations"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/internal/testkit/oracle/visits"
	"github.com/smartfeed/smartfeed/processors/actors"
	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// poolsOf returns the pools of some users from the API.
func (s *started) poolsOf(users []schemas.UserID) map[string]*schemas.Pool {
	s.t.Helper()
	all := map[string]*schemas.Pool{}
	for _, user := range users {
		for _, source := range []schemas.Source{schemas.Following, schemas.FromInterest, schemas.Related} {
			all[string(user)+" "+string(source)] = s.pool(user, source, everyCap)
		}
	}
	return all
}

// rebuilt rebuilds the pools of one user.
func (s *started) rebuilt(args ...string) {
	s.t.Helper()
	done := runJSON[generations.Rebuilt](s, append([]string{"rebuild"}, args...)...)
	expect.Equal(s.t, done.Users, 1, "users of rebuild %v", args)
}

// local returns the status of a group in this process.
func (s *started) local(group string) (status rows.Status) {
	for _, g := range s.groups {
		if one := g.Status(); one.Group == group {
			status = one
		}
	}
	return status
}

// effect returns the number of an effect in a local group.
func (s *started) effect(group, name string) int64 { return int64(s.local(group).Effects[name]) }

// A rebuilt pool equals the previous one without the seen pins. With another cap it equals that of the oracle.
func TestRebuild_RestoresPools(t *testing.T) {
	t.Parallel()
	d := readDataset(t, generated(t, 0.02))
	cfg := testConfig(t.TempDir())
	cfg.Pools.MaxCandidates = 20
	// A backfill uses the current weights of edges; brute force has none.
	cfg.Actors.EdgeWeightSteps = actors.Steps{{MinAffinity: math.Inf(-1), Weight: 1}}
	s := start(t, cfg)
	s.importSet(d)
	s.checkPools(d, 20)
	s.stop()

	cfg.Pools.MaxCandidates = DefaultConfig().Pools.MaxCandidates
	s = start(t, cfg)
	if done := s.generate("all").Rebuilt; done.Users < len(d.users) || s.effect(topics.Pools, "rebuilt") != int64(done.Users) {
		t.Errorf("%+v, %d pools rebuilt", done, s.effect(topics.Pools, "rebuilt"))
	}
	s.checkPools(d, cfg.Pools.MaxCandidates)

	// After visits, a rebuild fills a full pool with candidates that did not fit before.
	at := slices.IndexFunc(d.users, func(user schemas.UserID) bool {
		for _, pool := range s.poolsOf([]schemas.UserID{user}) {
			if pool.Total >= cfg.Pools.MaxCandidates {
				return false
			}
		}
		return true
	})
	if at < 0 {
		t.Fatal("every user has a full pool")
	}
	shown := d.users[at]
	r := &reading{started: s, user: shown, limit: 20, shown: map[schemas.PinID]visits.Item{}}
	r.visit()
	must.AtLeast(t, len(r.shown), 1, "new pins of the visits")
	r.wait()
	before := s.poolsOf(d.users)
	for what, rebuild := range map[string]func(){
		"a user":             func() { s.rebuilt(string(shown)) },
		"a source of a user": func() { s.rebuilt(string(shown), "--source", "interest") },
		"following":          func() { s.generate("following") },
		"interest":           func() { s.generate("interest") },
		"all":                func() { s.generate("all") },
	} {
		rebuild()
		expect.NoDiff(t, s.poolsOf(d.users), before, "pools after a rebuild of %s (-before +after)", what)
	}
	r.visit() // checks that no pin is new twice
}
