package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/smartfeed/smartfeed/internal/config"
	"github.com/smartfeed/smartfeed/internal/reload"
	"github.com/smartfeed/smartfeed/internal/status"
	"github.com/smartfeed/smartfeed/internal/testkit/eventually"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/internal/testkit/oracle/visits"
	"github.com/smartfeed/smartfeed/processors/rules"
	"github.com/smartfeed/smartfeed/schemas"
)

// onlyFrom returns a configuration file in which the feed home shows one source, and one verb is added.
func onlyFrom(source schemas.Source, verb string) string {
	shares := map[schemas.Source]int{schemas.Following: 0, schemas.FromInterest: 0, schemas.Related: 0, source: 1}
	const home = "{caps: {window: 0}, default_share: 0, shares: {explore: 0, following: %d, interest: %d, related: %d}}"
	return fmt.Sprintf("verbs: {%s: 2}\ngenerator: {feeds: {home: "+home+"}}\n", verb, shares[schemas.Following], shares[schemas.FromInterest], shares[schemas.Related])
}

// startReloading starts all roles with a configuration file.
func startReloading(t *testing.T, text string) (s *started, path string) {
	t.Helper()
	dir := t.TempDir()
	path = filepath.Join(dir, "smartfeed.yaml")
	define(t, path, text)
	load := func() (Config, error) {
		cfg := testConfig(dir)
		cfg.ReloadInterval = 100 * time.Millisecond
		err := config.Load(&cfg, config.Source{File: path})
		return cfg, err
	}
	cfg := must.Get(load())(t)
	shortHandover(&cfg)
	s = launchWith(t, Options{Config: cfg, File: ConfigFile{path, load}, Log: slog.New(slog.DiscardHandler)}, everything())
	eventually.True(t, "ready", func() bool { return len(s.missing()) == 0 })
	return s, path
}

// reloadsTo writes the configuration file, and returns the state of its reload.
func (s *started) reloadsTo(path, text string) (state reload.State) {
	s.t.Helper()
	before := s.App.reloaded[len(s.App.reloaded)-1].State()
	define(s.t, path, text)
	eventually.True(s.t, "the file is reloaded", func() bool {
		state = get[status.Status](s.api(), "/v1/status").Reloads[0]
		return state.Error != before.Error || state.Loaded != nil && (before.Loaded == nil || state.Loaded.After(*before.Loaded))
	})
	return state
}

// Users visit the feed while its rules change. The new items of a visit all follow the previous rules or all the new ones,
// and no visit follows the previous rules after one that followed the new ones.
func TestReload_ChangesFeedsUnderLoad(t *testing.T) {
	t.Parallel()
	s, path := startReloading(t, onlyFrom(schemas.Following, "dance"))
	const readers = 4
	now := time.Now()
	events := generatorEvents(now)
	reader := func(n int) schemas.UserID { return schemas.UserID(fmt.Sprint("user:reader-", n)) }
	for n := range readers {
		follows := story{prefix: fmt.Sprint("r", n), now: now}
		for a := range 20 {
			follows.add("follows", string(reader(n)), "follow", fmt.Sprintf("user:author-%d", a), nil)
		}
		follows.add("follows", string(reader(n)), "follow", "interest:tea", nil)
		events = append(events, follows.events...)
	}
	s.publish(events...)

	ctx, cancel := context.WithTimeout(t.Context(), eventually.Patience)
	defer cancel()
	load, ctx := errgroup.WithContext(ctx)
	started := make(chan schemas.UserID, readers) // users that have seen the previous rules
	for n := range readers {
		load.Go(func() error { return s.readUntilChange(ctx, reader(n), started) })
	}
	for range readers {
		select {
		case <-started:
		case <-ctx.Done():
			t.Fatal(load.Wait())
		}
	}
	if state := s.reloadsTo(path, onlyFrom(schemas.FromInterest, "dance")); state.Error != "" || len(state.NeedsRestart) > 0 {
		t.Errorf("reload: %+v", state)
	}
	must.OK(t, load.Wait())
}

// readUntilChange visits the feed of a user until all new items are of the second source.
func (s *started) readUntilChange(ctx context.Context, user schemas.UserID, started chan<- schemas.UserID) error {
	from := &visits.HTTP{URL: s.url(""), Client: &http.Client{Timeout: 2 * patience}, Feed: rules.Home, Limit: 2}
	var seen []schemas.Source
	for changed := 0; changed < 3; {
		page, err := from.Visit(ctx, user)
		if err != nil {
			return err
		}
		var sources []schemas.Source
		for _, item := range page.Items {
			if item.New && !slices.Contains(sources, item.Source) {
				sources = append(sources, item.Source)
			}
		}
		switch {
		case len(sources) > 1:
			return fmt.Errorf("a visit of %s mixes the sources %v", user, sources)
		case len(sources) == 0:
			continue
		case len(seen) > 0 && seen[len(seen)-1] == schemas.FromInterest && sources[0] == schemas.Following:
			return errors.New("a visit follows the previous rules after the new ones")
		case sources[0] == schemas.FromInterest:
			changed++
		}
		if seen = append(seen, sources[0]); len(seen) == 1 {
			started <- user
		}
	}
	if seen[0] != schemas.Following {
		return fmt.Errorf("the first visit of %s has the source %s, want the one of the previous rules", user, seen[0])
	}
	return nil
}

// A new verb counts without a restart, in validation and in affinities. An invalid file changes nothing, and the status has
// the reason. Changes of other keys need a restart.
func TestReload_AppliesVerbsAndRejectsInvalidFiles(t *testing.T) {
	t.Parallel()
	const jumps = "actors: {embedding_verbs: [jump]}\n"
	s, path := startReloading(t, "verbs: {jump: 1}\n"+jumps)
	now := time.Now()
	s.publish(event(now, "p", "pins", "user:a", "create", "pin:1", map[string]any{"interests": []string{"interest:tea"}}))
	dance := func(id string) string {
		return lines(t, event(now, id, "actions", "user:b", "dance", "pin:1", nil))
	}
	s.api().answers(http.StatusBadRequest, "", "/v1/events", dance("d1")) // an unknown verb
	state := s.reloadsTo(path, jumps+"verbs: {dance: 2, jump: 1}\ngenerator: {feeds: {home: {shares: {following: -1}}}}\n")
	expect.Contains(t, state.Error, "shares.following: -1", "error of an invalid file")
	s.api().answers(http.StatusBadRequest, "", "/v1/events", dance("d2")) // a verb of an invalid file
	state = s.reloadsTo(path, "verbs: {dance: 2}\nactors: {embedding_verbs: [save]}\n")
	expect.Contains(t, state.Error, `embedding_verbs: "jump"`, "a file whose verbs are invalid together with a key that needs a restart")
	state = s.reloadsTo(path, jumps+"verbs: {dance: 2, jump: 1}\npools: {max_candidates: 77}\n")
	expect.Equal(t, state.Error, "", "error")
	expect.NoDiff(t, state.NeedsRestart, []string{"pools.max_candidates"}, "keys that need a restart")
	s.api().answers(http.StatusAccepted, "", "/v1/events", dance("d3")) // a reloaded verb
	if text := s.api().get("/v1/config?changed=true"); !strings.Contains(text, `"dance":2`) || strings.Contains(text, "max_candidates") {
		t.Errorf("the configuration in force: got %s, want the reloaded verb, and not the key that needs a restart", text)
	}
	s.wait()
	text := s.api().get("/v1/users/user:b/feed/state")
	expect.Contains(t, strings.ReplaceAll(text, ": ", ":"), `"facet":"interest:tea"`, "affinities after an action with a reloaded verb")
}
