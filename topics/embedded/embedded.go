// Package embedded runs a broker and a schema registry inside this process, for one trusted machine: franz-go's kfake and
// srfake on loopback ports, with their state in one directory.
//
//	DIR/lock           held while a process uses DIR
//	DIR/broker/        the broker's logs, offsets, transactions
//	DIR/registry.json  every schema in the order of its id
//
// Acknowledged records survive kill -9 of the process at any moment, because the operating system has them. With
// Config.SyncWrites they are on disk and survive a power failure, too, at a third of the throughput and with some
// milliseconds per write.
//
// Nothing is ever deleted or compacted: kfake's compaction is not safe against a crash, and its retention would also apply
// to compacted topics. So the directory grows until Config.MaxBytes stops the server with a FullError.
//
// After a kill while it ends a transaction, kfake would keep only a part of the transaction. recover.go describes how Start
// repairs this.
package embedded

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/gofrs/flock"
	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/smartfeed/smartfeed/internal/secure"
	"github.com/smartfeed/smartfeed/internal/settings"
	"github.com/smartfeed/smartfeed/topics"
)

// Config configures where the server keeps its state and where it listens. See DefaultConfig.
type Config struct {
	Dir        string `yaml:"dir"`         // created if missing; used by one process at a time
	Kafka      string `yaml:"kafka"`       // loopback host:port of the broker, port 0 for any
	Registry   string `yaml:"registry"`    // loopback host:port of the registry, port 0 for any
	MaxBytes   int64  `yaml:"max_bytes"`   // limit for the size of Dir; the server stops when Dir exceeds it. At least 1 MiB
	SyncWrites bool   `yaml:"sync_writes"` // fsync every batch of records
}

// DefaultConfig returns a limit of 20 GiB in ./data, the usual ports, and no fsync.
func DefaultConfig() Config {
	return Config{Dir: "data", Kafka: "127.0.0.1:9092", Registry: "127.0.0.1:8081", MaxBytes: 20 << 30}
}

// Validate reports every field that is out of its bounds.
func (c Config) Validate() error {
	var problems settings.Problems
	problems.Want(c.Dir != "", `dir "": a directory is needed`)
	for name, addr := range map[string]string{"kafka": c.Kafka, "registry": c.Registry} {
		err := checkLoopback(addr)
		problems.Want(err == nil, "%s %q: %w", name, addr, err)
	}
	problems.Want(c.MaxBytes >= 1<<20, "max_bytes %d: at least %d (1 MiB)", c.MaxBytes, 1<<20)
	return problems.Err()
}

func checkLoopback(addr string) error {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return errors.New("not host:port")
	}
	if !secure.OnLoopback(host) {
		return errors.New("not a loopback address: the embedded broker has no authentication")
	}
	return nil
}

// LockedError is returned when another process uses the directory.
type LockedError struct{ Dir string }

// Error names the directory and the remedy.
func (e *LockedError) Error() string {
	return fmt.Sprintf("directory %s is in use by another process: stop it, or choose another directory", e.Dir)
}

// FullError is returned when the directory exceeds Config.MaxBytes. A restart does not help until the cause is fixed.
type FullError struct {
	Dir        string
	Bytes, Max int64
}

// Error names the directory, its size and the remedy.
func (e *FullError) Error() string {
	return fmt.Sprintf("directory %s has %d bytes, more than max_bytes %d: raise the limit, or start with an empty directory",
		e.Dir, e.Bytes, e.Max)
}

// Fatal returns true: the supervisor stops the program instead of restarting the broker.
func (e *FullError) Fatal() bool { return true }

// Server is a running broker and registry. The caller must close it.
type Server struct {
	cfg      Config
	log      *slog.Logger
	lock     *flock.Flock
	broker   *kfake.Cluster
	listener *listener
	registry *registry

	stop context.CancelFunc
	wg   sync.WaitGroup
	done chan struct{}
	once sync.Once
	err  error // the error that stopped the server; written before done is closed
}

// Start opens the directory and listens. It returns a *LockedError if another process uses the directory, and a *FullError
// if the directory exceeds its limit. It returns the system's error if a port is in use or the directory is not writable.
// The broker's warnings go to log; nil discards them.
func Start(ctx context.Context, cfg Config, log *slog.Logger) (_ *Server, err error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("embedded: %w", err)
	}
	s := &Server{cfg: cfg, log: cmp.Or(log, slog.New(slog.DiscardHandler)), done: make(chan struct{})}
	defer func() {
		if err != nil {
			s.release()
			err = fmt.Errorf("start embedded broker: %w", err)
		}
	}()
	if err := s.openDir(); err != nil {
		return nil, err
	}
	if err := s.listen(ctx); err != nil {
		return nil, err
	}
	run, stop := context.WithCancel(context.Background())
	s.stop = stop
	s.wg.Go(func() { s.watch(run) })
	return s, nil
}

// Kafka returns the configuration of a client, with the given number of partitions (0: topics.EmbeddedPartitions).
func (s *Server) Kafka(partitions int32) topics.Kafka {
	return topics.Kafka{
		Brokers: []string{s.listener.Addr().String()}, Partitions: cmp.Or(partitions, topics.EmbeddedPartitions), Embedded: true,
		Dial: s.listener.dial,
	}
}

// RegistryURL returns the address of the registry, http://host:port.
func (s *Server) RegistryURL() string { return s.registry.url() }

// Broker returns the broker, for tests that inject faults.
func (s *Server) Broker() *kfake.Cluster { return s.broker }

// Run returns nil when ctx is canceled, or the error that stopped the server, for example a *FullError.
func (s *Server) Run(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-s.done:
		return s.err
	}
}

// Close stops the server: it accepts no more requests, and saves an index of every partition for a fast start. It returns
// within closeTimeout. Acknowledged records are safe in any case.
func (s *Server) Close() error {
	s.stop()
	s.wg.Wait()
	return s.end(nil)
}

// end closes the server once, and records the cause.
func (s *Server) end(why error) error {
	var err error
	s.once.Do(func() {
		err = errors.Join(s.registry.close(), s.closeBroker())
		s.release()
		s.err = why
		close(s.done)
	})
	return err
}

// closeTimeout bounds the clean close of the broker, which saves an index of every partition.
const closeTimeout = 20 * time.Second

func (s *Server) closeBroker() error {
	closed := make(chan struct{})
	go func() { // the broker's Close has no deadline; after ours, abandon it, which is like a kill
		defer close(closed)
		s.broker.Close()
	}()
	select {
	case <-closed:
		return nil
	case <-time.After(closeTimeout):
		return fmt.Errorf("close embedded broker: not closed after %s", closeTimeout)
	}
}

func (s *Server) release() {
	if s.lock != nil {
		_ = s.lock.Unlock() // the lock is also released when the process exits
	}
}

// LockDir locks a state directory, with or without a broker in it, until the lock is released or the process exits. It
// returns a *LockedError if another process holds the lock. The directory must exist.
func LockDir(dir string) (*flock.Flock, error) {
	lock := flock.New(filepath.Join(dir, "lock"))
	held, err := lock.TryLock()
	if err != nil {
		return nil, fmt.Errorf("lock directory %s: %w", dir, err)
	}
	if !held {
		return nil, &LockedError{Dir: dir}
	}
	return lock, nil
}

// openDir creates and locks the directory, and checks that it is writable and below its limit.
func (s *Server) openDir() error {
	if err := os.MkdirAll(s.brokerDir(), 0o700); err != nil {
		return err
	}
	lock, err := LockDir(s.cfg.Dir)
	if err != nil {
		return err
	}
	s.lock = lock
	probe, err := os.CreateTemp(s.brokerDir(), "probe-*.tmp")
	if err != nil {
		return fmt.Errorf("write to directory %s: %w", s.cfg.Dir, err)
	}
	if err := errors.Join(probe.Close(), os.Remove(probe.Name())); err != nil {
		return err
	}
	_, err = s.checkSize()
	return err
}

func (s *Server) brokerDir() string { return filepath.Join(s.cfg.Dir, "broker") }

// listen opens both ports before the broker reads its state, so a port in use is reported immediately.
func (s *Server) listen(ctx context.Context) error {
	kafka, err := listen(ctx, "kafka", s.cfg.Kafka)
	if err != nil {
		return err
	}
	web, err := listen(ctx, "registry", s.cfg.Registry)
	if err != nil {
		return errors.Join(err, kafka.Close())
	}
	d := disk{sync: s.cfg.SyncWrites}
	if s.registry, err = openRegistry(filepath.Join(s.cfg.Dir, "registry.json"), d, web, s.log); err != nil {
		return errors.Join(err, kafka.Close(), web.Close())
	}
	s.listener = newListener(kafka)
	if err = recoverDir(s.brokerDir(), d); err == nil {
		s.broker, err = kfake.NewCluster(s.brokerOptions(s.listener)...)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("open %s: %w", s.brokerDir(), err), s.listener.Close(), s.registry.close())
	}
	debug.FreeOSMemory() // the start has read all logs
	return nil
}

func listen(ctx context.Context, name, addr string) (net.Listener, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", addr)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("%s address %s is in use by another process: %w", name, addr, err)
	}
	return l, err
}

// brokerOptions returns all settings of kfake.
func (s *Server) brokerOptions(l net.Listener) []kfake.Opt {
	const never = "9223372036854" // milliseconds, 292 years: the broker multiplies by a million
	opts := []kfake.Opt{
		kfake.NumBrokers(1),
		kfake.ClusterID(topics.EmbeddedCluster + rand.Text()), // for a new directory; an existing one keeps its id
		kfake.ListenFn(func(string, string) (net.Listener, error) { return guardedListener{l}, nil }),
		kfake.DataDir(s.brokerDir()),              // also saves memory: without it, all records stay in memory
		kfake.GroupMinSessionTimeout(time.Second), // members choose; tests choose short timeouts
		kfake.SleepOutOfOrder(),                   // a blocked join must not block later requests
		kfake.DefaultNumPartitions(topics.EmbeddedPartitions),
		kfake.WithLogger(&brokerLog{s.log}),
		kfake.BrokerConfigs(map[string]string{
			"log.retention.ms":               "-1",       // its clean-up would also apply to compacted topics
			"log.retention.bytes":            "-1",       // the same
			"log.cleaner.backoff.ms":         never,      // compaction is not safe against a crash
			"offsets.retention.minutes":      "5256000",  // ten years: a group keeps its offsets through any pause
			"transactional.id.expiration.ms": never,      // an owner that was stopped for long is still fenced
			"log.segment.bytes":              "16777216", // 16 MiB: a start reads a segment of every partition at once
			"message.max.bytes":              "4194304",  // topics have no separate limits here: the largest record, a dead letter, fits
			"default.replication.factor":     "1",
		}),
	}
	if s.cfg.SyncWrites {
		opts = append(opts, kfake.SyncWrites())
	}
	return opts
}

// brokerLog logs the broker's errors, and its warnings about files. Warnings about the timing of clients are logged at
// level debug. A transaction of more than some milliseconds, or a member that leaves, is normal on a busy machine, and the
// groups report both themselves. Other messages are dropped: there would be one per request.
type brokerLog struct{ log *slog.Logger }

// Logf implements kfake.Logger.
func (l *brokerLog) Logf(level kfake.LogLevel, format string, args ...any) {
	to := slog.LevelError
	switch {
	case level == kfake.LogLevelWarn && isTiming(format):
		to = slog.LevelDebug
	case level == kfake.LogLevelWarn:
		to = slog.LevelWarn
	case level != kfake.LogLevelError:
		return
	}
	l.log.Log(context.Background(), to, fmt.Sprintf("embedded broker: "+format, args...))
}

// isTiming reports whether a warning of the broker is about the timing of a client.
func isTiming(format string) bool {
	subject, _, _ := strings.Cut(format, ":")
	return slices.Contains([]string{
		"txn", "txn timeout abort", "consumerHeartbeatLate", "consumerRebalanceTimeout", "consumerSessionTimeout", "OffsetCommit STALE",
	}, subject)
}
