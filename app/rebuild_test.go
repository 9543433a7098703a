package app

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/smartfeed/smartfeed/internal/ops/generations"
	"github.com/smartfeed/smartfeed/internal/testkit/oracle/visits"
	"github.com/smartfeed/smartfeed/processors/actors"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// poolsOf returns the pools of some users from the API.
func (s *started) poolsOf(users []schemas.UserID) map[string]*schemas.Pool {
	s.t.Helper()
	all := map[string]*schemas.Pool{}
	for _, user := range users {
		for _, source := range []schemas.Source{schemas.Following, schemas.FromInterest, schemas.Related} {
			pool, err := s.services.Generator.Pool(s.t.Context(), user, source, everyCap)
			if err != nil {
				s.t.Fatal(err)
			}
			all[string(user)+" "+string(source)] = pool
		}
	}
	return all
}

// rebuilt runs a rebuild and returns its result.
func (s *started) rebuilt(args ...string) (done generations.Rebuilt) {
	s.t.Helper()
	out, err := s.run(append([]string{"rebuild", "-o", "json", "--rate", "100000"}, args...)...)
	if err == nil {
		err = json.Unmarshal([]byte(out), &done)
	}
	if err != nil {
		s.t.Fatalf("rebuild %v: %v: %s", args, err, out)
	}
	return done
}

// effect returns the number of an effect in a local group.
func (s *started) effect(group, name string) (n int64) {
	for _, g := range s.groups {
		if status := g.Status(); status.Group == group {
			n += int64(status.Effects[name])
		}
	}
	return n
}

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
	if done := s.rebuilt("all"); done.Users < len(d.users) || s.effect(topics.Pools, "rebuilt") != int64(done.Users) {
		t.Errorf("%+v, %d pools rebuilt", done, s.effect(topics.Pools, "rebuilt"))
	}
	s.checkPools(d, cfg.Pools.MaxCandidates)

	shown := d.users[0]
	r := &reading{started: s, user: shown, limit: 20, shown: map[schemas.PinID]visits.Item{}}
	if r.visit(); len(r.shown) == 0 {
		t.Fatal("the visits have no new pins")
	}
	r.applied()
	before := s.poolsOf(d.users)
	for _, what := range [][]string{{string(shown)}, {string(shown), "--source", "interest"}, {"following"}, {"interest"}, {"all"}} {
		s.rebuilt(what...)
		if diff := cmp.Diff(before, s.poolsOf(d.users)); diff != "" {
			t.Fatalf("pools after rebuild %v (-before +after):\n%.3000s", what, diff)
		}
	}
	r.visit() // checks that no pin is new twice
}

// An interrupted rebuild of all users resumes.
func TestRebuild_Resumes(t *testing.T) {
	t.Parallel()
	s := start(t, testConfig(t.TempDir()))
	history := &story{now: time.Now().Add(-time.Hour)}
	var users []schemas.UserID
	for n := range 400 {
		users = append(users, schemas.UserID(fmt.Sprint("user:", n)))
		history.add("follows", string(users[n]), "follow", fmt.Sprint("interest:", n%7), nil)
	}
	for n := range 70 {
		history.add("pins", "user:author", "create", fmt.Sprint("pin:", n), map[string]any{"interests": []string{fmt.Sprint("interest:", n%7)}})
	}
	s.publish(history.events...)
	before := s.poolsOf(users)
	if _, err := s.run("rebuild", "all", "--resume"); err == nil || !strings.Contains(err.Error(), "no run to resume") {
		t.Errorf("resume without a run: got error %v", err)
	}
	s.interrupt(topics.Pools, "rebuilt", 110, "--resume", "rebuild", "all", "--rate", "40")
	if done := s.rebuilt("all", "--resume"); done.Before == 0 || done.Before == done.Users {
		t.Errorf("resumed: %+v", done)
	}
	if diff := cmp.Diff(before, s.poolsOf(users)); diff != "" {
		t.Errorf("pools (-before +after):\n%.3000s", diff)
	}
}
