package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/smartfeed/smartfeed/app"
	"github.com/smartfeed/smartfeed/internal/testkit/child"
	"github.com/smartfeed/smartfeed/internal/testkit/eventually"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/internal/testkit/topicstest"
	"github.com/smartfeed/smartfeed/serving/client"
	"github.com/smartfeed/smartfeed/topics"
)

// realVariable names the variable that runs the tests with PostgreSQL and Connect, which they start with .ci/services.
const realVariable = "SMARTFEED_TEST_CDC"

// system is PostgreSQL, Connect, the bridge, and smartfeed with its embedded broker.
type system struct {
	*testing.T
	app    *app.App
	api    *client.Client
	broker string
}

// start starts PostgreSQL with the tables, and smartfeed.
func start(t *testing.T) *system {
	t.Helper()
	if os.Getenv(realVariable) == "" {
		t.Skipf("set %s to 1 to start PostgreSQL and Connect", realVariable)
	}
	s := &system{T: t, broker: child.FreeAddress(t)}
	cfg := app.DefaultConfig()
	cfg.Dir, cfg.HTTP, cfg.Kafka, cfg.Registry = t.TempDir(), "127.0.0.1:0", []string{s.broker}, "127.0.0.1:0"
	cfg.Feed.GeneratorTimeout, cfg.Feed.AckTimeout = 10*time.Second, 10*time.Second // for busy machines
	s.app = must.Get(app.Open(t.Context(), app.Options{Config: cfg}))(t)
	t.Cleanup(func() { must.OK(t, s.app.Close()) })
	s.background("smartfeed", s.app.Run)
	must.OK(t, s.app.Ready(t.Context()))
	s.api = must.Get(s.app.Client())(t)
	t.Cleanup(s.api.Close)
	t.Cleanup(s.clean)
	s.services("start", "postgres")
	s.sql(string(must.Get(os.ReadFile("schema.sql"))(t)))
	return s
}

// background runs a function until the test ends, or until the returned function is called.
func (s *system) background(what string, run func(context.Context) error) (stop func()) {
	end := topicstest.Run(s.T, run)
	stop = sync.OnceFunc(func() { expect.Error(s.T, end(), "", "%s", what) })
	s.Cleanup(stop)
	return stop
}

// bridge runs a bridge in a consumer group.
func (s *system) bridge(group string) (stop func()) {
	b := &bridge{kafka: topics.Kafka{Brokers: s.app.Brokers()}, registry: s.app.RegistryURL(), group: group, prefix: "shop.public"}
	return s.background("bridge", b.run)
}

// services runs a command of .ci/services for servers.
func (s *system) services(command string, names ...string) {
	s.Helper()
	cmd := exec.Command("../../.ci/services", append([]string{command}, names...)...)
	cmd.Env = append(os.Environ(), "CONNECT_KAFKA="+s.broker)
	if out, err := cmd.CombinedOutput(); err != nil {
		s.Fatalf("services %s %q: %v\n%s", command, names, err, out)
	}
}

// clean stops PostgreSQL and Connect. If the test has failed, it shows the log of Connect.
func (s *system) clean() {
	if s.Failed() {
		log, err := exec.Command("tail", "-n", "40", filepath.Join(state(), "connect.log")).CombinedOutput()
		s.Logf("Connect: %s%v", log, err)
	}
	s.services("clean", "connect", "postgres")
}

// sql executes statements in one transaction.
func (s *system) sql(statements string) {
	s.Helper()
	port := cmp.Or(os.Getenv("POSTGRES_PORT"), "19432")
	cmd := exec.CommandContext(s.Context(), "psql", "-q1", "-v", "ON_ERROR_STOP=1", "-h", "127.0.0.1", "-p", port, "-U", "smartfeed", "-d", "postgres")
	cmd.Stdin = strings.NewReader(statements)
	if out, err := cmd.CombinedOutput(); err != nil {
		s.Fatalf("%s: %v\n%s", statements, err, out)
	}
}

// feed visits ada's feed, and returns the pins with their titles. It fails the test if a pin is in the feed twice.
func (s *system) feed() map[string]string {
	s.Helper()
	shown := map[string]string{}
	page, err := s.api.Visit(s.Context(), "user:ada", client.VisitOptions{Limit: 100})
	for {
		must.OK(s.T, err)
		for _, item := range page.Items {
			if _, twice := shown[item.ID]; twice {
				s.Errorf("%s is in the feed twice", item.ID)
			}
			shown[item.ID] = item.Title
		}
		if page.Next == nil {
			return shown
		}
		page, err = s.api.Older(s.Context(), "user:ada", *page.Next, 100)
	}
}

// shows waits until the feed has exactly these pins and titles.
func (s *system) shows(want map[string]string) {
	s.Helper()
	var got map[string]string
	defer func() {
		if s.Failed() {
			s.Logf("the feed has %v", got)
		}
	}()
	eventually.True(s.T, fmt.Sprintf("the feed has %v", want), func() bool {
		got = s.feed()
		return maps.Equal(got, want)
	})
}

func TestRealConnect_FeedFollowsTables(t *testing.T) {
	s := start(t)
	s.sql(`insert into follows (follower, followee) values ('ada', 'bob'), ('ada', 'eve');
		insert into pins (id, author, title, created_at, updated_at) values
		('old', 'bob', 'changed before the snapshot', now() - interval '3 days', now() - interval '1 day'), ('spam', 'eve', 'spam', now(), now())`)
	s.bridge("first")
	s.services("start", "connect")
	want := map[string]string{"pin:old": "changed before the snapshot", "pin:spam": "spam"}
	s.shows(want)

	s.sql(`insert into pins (id, author, title) values ('tea', 'bob', 'Tea')`)
	want["pin:tea"] = "Tea"
	s.shows(want)
	s.sql(`update pins set title = 'Gong fu tea' where id = 'tea'`)
	want["pin:tea"] = "Gong fu tea"
	s.shows(want)
	// One transaction changes rows twice: the last change wins.
	s.sql(`update pins set title = 'x' where id = 'old'; update pins set title = 'Old' where id = 'old';
		delete from follows where followee = 'bob'; insert into follows (follower, followee) values ('ada', 'bob')`)
	want["pin:old"] = "Old"
	s.shows(want)
	s.sql(`delete from pins where id = 'tea'`)
	delete(want, "pin:tea")
	s.shows(want)
	s.sql(`delete from follows where followee = 'eve'; insert into pins (id, author, title) values ('more-spam', 'eve', 'spam'), ('last', 'bob', '')`)
	want["pin:last"] = ""
	delete(want, "pin:spam")
	s.shows(want)
}

func TestRealConnect_KillLosesAndDoublesNothing(t *testing.T) {
	s := start(t)
	stop := s.bridge("killed")
	s.sql(`insert into follows (follower, followee) values ('ada', 'bob')`)
	s.services("start", "connect")
	want := map[string]string{}
	for round := range 3 {
		for i := range 20 {
			id := fmt.Sprintf("%d-%d", round, i)
			s.sql(fmt.Sprintf(`insert into pins (id, author, title) values ('%s', 'bob', 'a'); update pins set title = 'b' where id = '%[1]s'`, id))
			want["pin:"+id] = "b"
			if i == 10 {
				s.hasOffset()
				s.services("kill", "connect")
			}
		}
		stop()
		s.services("start", "connect")
		stop = s.bridge("killed")
	}
	s.shows(want)

	// A bridge in a new group publishes all changes again.
	s.bridge("again")
	s.caughtUp("again")
	must.OK(t, s.app.Wait(t.Context()))
	expect.Equal(t, must.Get(s.api.Waiting(t.Context(), "user:ada"))(t), 0, "new pins")
	s.shows(want)
}

// hasOffset waits until Connect has stored an offset in the log of the database, at which it resumes.
func (s *system) hasOffset() {
	s.Helper()
	file := filepath.Join(state(), "data", "connect", "offsets")
	eventually.True(s.T, "Connect has stored the offset of a change", func() bool {
		offsets, err := os.ReadFile(file)
		return err == nil && bytes.Contains(offsets, []byte(`"messageType":`))
	})
}

// state returns the directory of .ci/services.
func state() string { return cmp.Or(os.Getenv("SERVICES_DIR"), "../../.ci/state") }

// caughtUp waits until a group has committed the ends of all topics with changes.
func (s *system) caughtUp(group string) {
	s.Helper()
	admin := must.Get(topics.Kafka{Brokers: s.app.Brokers()}.Admin())(s.T)
	defer admin.Close()
	eventually.True(s.T, "the bridge has published all changes", func() bool {
		lags := must.Get(admin.Lag(s.Context(), group))(s.T)
		lag := lags[group].Lag
		return !lag.IsEmpty() && lag.Total() == 0
	})
}

func TestRealConnect_PublishesInvalidRowAfterCorrection(t *testing.T) {
	s := start(t)
	s.bridge("strict")
	s.services("start", "connect")
	s.sql(`insert into follows (follower, followee) values ('ada', 'bob');
		insert into pins (id, author, title) values ('bad', 'bob', repeat('x', 600)), ('good', 'bob', '')`)
	s.shows(map[string]string{"pin:good": ""})
	eventually.True(t, "the row is a dead letter", func() bool {
		list := string(must.Get(s.api.Get(t.Context(), url.Values{"limit": {"10"}}, "v1", "dead-letters"))(t))
		return strings.Contains(list, `"topic":"shop.public.pins"`) && strings.Contains(list, "title: 600 bytes")
	})
	s.sql(`update pins set title = 'Short' where id = 'bad'`)
	s.shows(map[string]string{"pin:good": "", "pin:bad": "Short"})
}
