package app

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/smartfeed/smartfeed/internal/command"
	"github.com/smartfeed/smartfeed/internal/tools/doctor"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/serving/client"
	"github.com/smartfeed/smartfeed/serving/feature/pinot"
	"github.com/smartfeed/smartfeed/serving/feedstore/cassandra"
	"github.com/smartfeed/smartfeed/topics"
)

func (p *program) doctorCommand() *cobra.Command {
	var asJSON bool
	timeout := 10 * time.Second
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "look at everything the product needs, and say what to do",
		Long: `Look at brokers, topics, transactions, groups, registry, stores, the directory of state, clocks and the process at --http,
as the configuration has them, all at once, and say of each what is wrong and what to do. A process that serves tells of
all others, too: of their versions, of what they lack, and which do not answer. Nothing is changed: the one transaction
that is tried is aborted.

The exit code is 1 when there is a problem; warnings and notes leave it 0. With a product of "smartfeed dev" it works
while that runs and while it does not. Without --dir it looks at the directory of the process at --http, if one runs on this machine.`,
		Example: "  smartfeed doctor\n  smartfeed doctor --config production.yaml --json",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if timeout <= 0 {
				return command.Usagef("--timeout %s: must be positive", timeout)
			}
			cfg, err := p.load(cmd)
			if err != nil {
				return err
			}
			if cfg.Dir == DefaultConfig().Dir {
				cfg.Dir = p.runningDir(cmd.Context(), cfg)
			}
			checks, err := p.checks(cfg)
			if err != nil {
				return err
			}
			report := doctor.NewReport(version, doctor.Run(cmd.Context(), timeout, checks...))
			if asJSON {
				return errors.Join(report.JSON(cmd.OutOrStdout()), report.Err())
			}
			return errors.Join(report.Text(cmd.OutOrStdout()), report.Err())
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.Flags().DurationVar(&timeout, "timeout", timeout, "of each check")
	return cmd
}

// runningDir returns the directory of the process at --http if it is on this machine, and the configured directory
// otherwise.
func (p *program) runningDir(ctx context.Context, cfg Config) string {
	host, _, err := net.SplitHostPort(reachable(cfg.HTTP))
	if err != nil || !isLoopback(host) {
		return cfg.Dir
	}
	at, err := p.asked(cfg)
	if err != nil {
		return cfg.Dir
	}
	s, err := askStatus(ctx, at)
	if err != nil || s.Dir == "" {
		return cfg.Dir // the check of the process reports the reason
	}
	if _, err := os.Stat(s.Dir); err != nil {
		return cfg.Dir // a path inside a container
	}
	return s.Dir
}

// checks returns the checks that apply to a configuration.
func (p *program) checks(cfg Config) ([]doctor.Check, error) {
	kafka, err := cfg.kafka()
	if err != nil {
		return nil, err
	}
	registry, err := schemas.NewRegistryAs(cfg.RegistryClient, strings.Split(cfg.registryURL(), ",")...)
	if err != nil {
		return nil, err
	}
	at, err := p.asked(cfg)
	if err != nil {
		return nil, err
	}
	asker := newAsker(at)
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	own := cfg.bringsBroker()
	dir := doctor.Directory{Path: cfg.Dir, MinBytes: cfg.Rows.MinDiskBytes, Files: doctor.OpenFiles()}
	setup := topics.Setup{Kafka: kafka, FeedStores: cfg.FeedStore.others()}
	checks := []doctor.Check{
		doctor.Program(version, orDefaults(p.configFile())),
		dir.Check(),
		doctor.Process(&http.Client{Transport: asker}, asker.url, version),
	}
	if own {
		checks = append(checks, doctor.Ports(map[string]string{"http": cfg.HTTP, "kafka": cfg.Kafka[0], "registry": cfg.Registry}))
	}
	checks = append(checks, doctor.Kafka{Kafka: kafka, Readers: setup.Readers(), Own: own, Member: host, Now: time.Now}.Checks()...)
	checks = append(checks, doctor.Registry(registry, own))
	checks = append(checks, feedStoreChecks(cfg, kafka)...)
	if !cfg.actionsInPinot() {
		return checks, nil
	}
	check, err := pinotCheck(cfg, kafka)
	return append(checks, check), err
}

// bringsBroker reports whether the brokers are those of dev: dev has run in this directory, or the address is dev's
// default.
func (c *Config) bringsBroker() bool {
	if _, err := os.Stat(filepath.Join(c.Dir, "broker")); err == nil {
		return true
	}
	return slices.Equal(c.Kafka, DefaultConfig().Kafka)
}

func orDefaults(file string) string {
	if file == "" {
		return "without a file"
	}
	return file
}

// asker sends requests to a process on this machine. It returns responses of any status.
type asker struct {
	url, token string
	transport  *http.Transport
}

func newAsker(at client.Config) asker {
	scheme := "http://"
	if at.TLS != nil {
		scheme = "https://"
	}
	transport := &http.Transport{TLSClientConfig: at.TLS, DisableKeepAlives: true} // two requests
	return asker{scheme + reachable(at.Address), at.Token, transport}
}

// RoundTrip adds the token.
func (a asker) RoundTrip(req *http.Request) (*http.Response, error) {
	if a.token != "" {
		req = req.Clone(req.Context())
		req.Header.Set("Authorization", "Bearer "+a.token)
	}
	return a.transport.RoundTrip(req)
}

// reachable returns the address for a client on this machine to reach a listen address.
func reachable(address string) string {
	for _, any := range []string{"", "0.0.0.0", "[::]"} {
		if port, ok := strings.CutPrefix(address, any+":"); ok {
			return "127.0.0.1:" + port
		}
	}
	return address
}

func feedStoreChecks(cfg Config, kafka topics.Kafka) []doctor.Check {
	at := cfg.FeedStore.Cassandra
	verify := func(cluster cassandra.Cluster) func(context.Context) error {
		return func(ctx context.Context) error { return cassandra.Verify(ctx, at.Config, cluster) }
	}
	if !cfg.FeedStore.remote() {
		return nil
	}
	checks := []doctor.Check{doctor.FeedStore(doctor.PrimaryCheck, verify(at.Primary))}
	if len(at.Standby.Hosts) == 0 {
		return checks
	}
	drift := doctor.Drift{Kafka: kafka, With: func(ctx context.Context, use func(primary, standby doctor.Heads)) error {
		return withClusters(ctx, cfg.FeedStore, func(primary, standby *cassandra.Store) { use(primary, standby) })
	}}
	return append(checks, doctor.FeedStore(doctor.StandbyCheck, verify(at.Standby)), drift.Check())
}

// withClusters calls use with both clusters connected.
func withClusters(ctx context.Context, cfg FeedStoreConfig, use func(primary, standby *cassandra.Store)) error {
	primary, err := cassandra.New("primary", cfg.Cassandra.Config, cfg.Cassandra.Primary, cfg.MaxFeed, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	standby, err := cassandra.New(standbyStore, cfg.Cassandra.Config, cfg.Cassandra.Standby, cfg.MaxFeed, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	connected, cancel := context.WithCancel(ctx)
	group, running := errgroup.WithContext(connected)
	group.Go(func() error { return primary.Run(running) })
	group.Go(func() error { return standby.Run(running) })
	err = awaitBoth(ctx, primary, standby)
	if err == nil {
		use(primary, standby)
	}
	cancel()
	return errors.Join(err, group.Wait())
}

func awaitBoth(ctx context.Context, stores ...*cassandra.Store) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for slices.ContainsFunc(stores, func(s *cassandra.Store) bool { return !s.Connected() }) {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return errors.New("one of them cannot be reached")
		}
	}
	return nil
}

func pinotCheck(cfg Config, kafka topics.Kafka) (doctor.Check, error) {
	setup := pinot.Setup{Config: cfg.Pinot, Kafka: cfg.Kafka, Registry: cfg.registryURL(), Partitions: cfg.partitions()}
	outsider, err := pinot.NewOutsider(cfg.Pinot)
	if err != nil {
		return doctor.Check{}, err
	}
	return doctor.Pinot{
		Verify: setup.Verify,
		Answers: func(ctx context.Context) (int, []error) {
			client, err := pinot.NewClient(cfg.Pinot)
			if err != nil {
				return 0, []error{err}
			}
			defer client.Close()
			return client.Try(ctx)
		},
		Oldest: func(ctx context.Context) (time.Time, error) {
			l, err := topics.NewLog(kafka)
			if err != nil {
				return time.Time{}, err
			}
			defer l.Close()
			return l.OldestLeft(ctx, outsider)
		},
	}.Check(), nil
}
