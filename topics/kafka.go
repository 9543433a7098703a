package topics

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/IBM/sarama"
	"github.com/lovoo/goka"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/smartfeed/smartfeed/internal/tracing"
	"github.com/smartfeed/smartfeed/schemas"
)

// Kafka configures connections to the brokers. Clients of franz-go and of sarama are configured only here.
type Kafka struct {
	Brokers    []string      // host:port, at least one
	Partitions int32         // of every co-partitioned topic; fixed once the topics exist
	Assumed    bool          // Partitions is the embedded broker's default, because none was configured; see ErrPartitions
	Actions    time.Duration // retention of the topic actions, 0: 7 days; see Profile
	VisitLog   time.Duration // retention of the topic visit-log, 0: 30 days; see Profile
	ClientID   string        // shown in the brokers' logs and quotas, default "smartfeed"
	Embedded   bool          // the brokers are the embedded one

	TLS  *tls.Config // for every connection; nil: no encryption
	SASL SASL        // authentication
	Rack string      // rack of the reader, see ClientConfig
	// Member is this process's name as a static member of the groups that keep rows. Characters that brokers do not allow
	// are replaced. Empty: the process is a dynamic member.
	Member string

	// Tracer starts the traces of records read from the brokers; nil: no traces.
	Tracer *tracing.Tracer

	// Dial opens every connection; nil: plain TCP. Tests use it to cut and hold connections.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// DefaultClientID is the client id if Kafka.ClientID is empty.
const DefaultClientID = "smartfeed"

// DeliveryTimeout bounds how long a producer tries to deliver a record. After this time, a record that was never sent has
// definitely failed. If a record was sent but not acknowledged, its outcome stays unknown until the brokers answer.
const DeliveryTimeout = 30 * time.Second

// transactionTimeout is how long the brokers keep a transaction open before they abort it. A transaction is open for one
// commit, which takes milliseconds. The timeout bounds how long a crashed owner can block read-committed readers.
const transactionTimeout = 10 * time.Second

// Client returns a client that reads only committed records and produces idempotently, to the partition of each record's
// owner (ByOwner). opts override these settings. The client does not connect until it is used.
func (k Kafka) Client(opts ...kgo.Opt) (*kgo.Client, error) {
	if len(k.Brokers) == 0 {
		return nil, errors.New("create kafka client: no broker address")
	}
	unpack, err := decompressor()
	if err != nil {
		return nil, err
	}
	settings := append(k.settings(), k.access()...)
	settings = append(settings, kgo.WithDecompressor(unpack)) // a decompression bomb on a topic must not crash the process
	client, err := kgo.NewClient(append(settings, opts...)...)
	if err != nil {
		return nil, fmt.Errorf("create kafka client: %w", err)
	}
	return client, nil
}

// Transactional returns a client that produces records in transactions under id, each to its Record.Partition. Its
// ProducerID call fences the previous user of the id and aborts its open transaction.
func (k Kafka) Transactional(id string, opts ...kgo.Opt) (*kgo.Client, error) {
	return k.Client(append([]kgo.Opt{
		kgo.TransactionalID(id),
		kgo.TransactionTimeout(transactionTimeout),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),          // package rows chooses the partition
		kgo.MaxBufferedRecords(1 << 20),                         // a batch is bounded before it is produced: never block inside a transaction
		kgo.ConcurrentTransactionsBackoff(2 * time.Millisecond), // the previous transaction's markers are being written, which takes about a millisecond
	}, opts...)...)
}

// Admin returns an administration client with its own connection. The caller must close it.
func (k Kafka) Admin() (*kadm.Client, error) {
	client, err := k.Client()
	if err != nil {
		return nil, err
	}
	return kadm.NewClient(client), nil
}

// dialTimeout bounds a connection attempt to a broker: an unreachable host must not delay a request for longer.
const dialTimeout = 5 * time.Second

// access returns the connection options of franz-go clients.
func (k Kafka) access() []kgo.Opt {
	opts := []kgo.Opt{kgo.Dialer(k.dial)}
	if m := k.SASL.mechanism(); m != nil {
		opts = append(opts, kgo.SASL(m))
	}
	if k.Rack != "" {
		opts = append(opts, kgo.Rack(k.Rack))
	}
	return opts
}

// dial opens a connection of any client, with TLS if it is set.
func (k Kafka) dial(ctx context.Context, network, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	if k.Dial == nil {
		k.Dial = new(net.Dialer).DialContext
	}
	conn, err := k.Dial(ctx, network, address)
	if err != nil || k.TLS == nil {
		return conn, err
	}
	settings := k.TLS.Clone()
	if settings.ServerName == "" {
		settings.ServerName, _, _ = net.SplitHostPort(address) // Dial has succeeded, so the address has a port
	}
	secured := tls.Client(conn, settings)
	if err := secured.HandshakeContext(ctx); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return secured, nil
}

// settings returns the options of every franz-go client.
func (k Kafka) settings() []kgo.Opt {
	return []kgo.Opt{
		kgo.SeedBrokers(k.Brokers...),
		kgo.ClientID(cmp.Or(k.ClientID, DefaultClientID)),
		kgo.DisableClientMetrics(), // the KIP-714 metrics are not used

		kgo.RequestTimeoutOverhead(5 * time.Second), // in addition to the request's own timeout: detects a hung broker
		kgo.RetryBackoffFn(retryBackoff),            // first retry soon: most failures are a moved leader
		kgo.MetadataMinAge(100 * time.Millisecond),  // discover a new topic quickly
		kgo.MetadataMaxAge(time.Minute),             // notice a moved leader without traffic

		kgo.FetchIsolationLevel(kgo.ReadCommitted()),           // never read aborted records
		kgo.ConsumeStartOffset(kgo.NewOffset().AtStart()),      // a new reader starts at the oldest record
		kgo.ConsumeResetOffset(kgo.NoResetOffset()),            // records that retention removed unread are an error, never skipped
		kgo.FetchMaxWait(time.Second),                          // an empty fetch must not delay a rebalance
		kgo.FetchMaxBytes(16 << 20),                            // memory of a fetch in flight, per broker
		kgo.FetchMaxPartitionBytes(4 << 20),                    // read a backlog in large pieces without starving a partition
		kgo.RequiredAcks(kgo.AllISRAcks()),                     // acknowledged means on every in-sync replica
		kgo.RecordPartitioner(ByOwner()),                       // the same hash for all clients
		kgo.ProducerLinger(0),                                  // low latency: batches fill by themselves under load
		kgo.MaxBufferedRecords(50_000),                         // then producing blocks: back-pressure instead of memory
		kgo.MaxBufferedBytes(64 << 20),                         // the same in bytes
		kgo.RecordDeliveryTimeout(DeliveryTimeout),             // see DeliveryTimeout
		kgo.ProduceRequestTimeout(10 * time.Second),            // how long the brokers wait for replicas
		kgo.ProducerBatchMaxBytesFn(maxBatchBytes),             // the topics' max.message.bytes
		kgo.BrokerMaxWriteBytes(MaxRequestBytes),               // the limit of the embedded broker; Kafka accepts 100 MiB
		kgo.UnknownTopicRetries(10),                            // brokers learn of a new topic at different times
		kgo.ProducerBatchCompression(kgo.SnappyCompression()),  // ids repeat: half the bytes for little CPU
		kgo.ConsiderMissingTopicDeletedAfter(30 * time.Second), // a starting broker may not know its topics yet
	}
}

// MaxRequestBytes bounds a request to a broker. Clients split larger ones, and the embedded broker closes connections that
// send one.
const MaxRequestBytes = 16 << 20

// decompressor is the decompressor that all clients of the process share.
var decompressor = sync.OnceValues(func() (kgo.Decompressor, error) {
	client, err := kgo.NewClient(kgo.MaxDecompressBatchBytes(MaxDecompressedBytes)) // franz-go bounds only a client's own decompressor
	if err != nil {
		return nil, fmt.Errorf("create decompressor: %w", err)
	}
	defer client.Close()
	bounded, ok := client.OptValue(kgo.WithDecompressor).(kgo.Decompressor)
	if !ok {
		return nil, errors.New("create decompressor: the kafka client has none")
	}
	return boundedDecompressor{bounded}, nil
})

// maxBatchBytes bounds a batch of a topic. A dead letter contains another record in full.
func maxBatchBytes(topic string) int32 {
	if topic == DeadLetters {
		return schemas.MaxDeadLetterBytes + batchOverhead
	}
	return schemas.MaxRecordBytes + batchOverhead
}

// batchOverhead is the space for the key, the headers and the framing of a single record of maximum size.
const batchOverhead = 64 << 10

// Sarama returns the configuration of sarama clients. Goka reads inputs with them; Goka's own producer is never used. It
// returns an error if a secret cannot be read.
func (k Kafka) Sarama() (*sarama.Config, error) {
	unpack, err := decompressor()
	if err != nil {
		return nil, err
	}
	c := sarama.NewConfig()
	c.ClientID = cmp.Or(k.ClientID, DefaultClientID)
	c.Version = sarama.V3_6_0_0 // read committed and transactions need 0.11; both embedded and real brokers support this
	c.ChannelBufferSize = 256   // per partition: records waiting for a callback
	c.Net.Proxy.Enable = true   // sarama bounds neither records nor headers of a batch, so the connection does
	c.Net.Proxy.Dialer = dialer(func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := k.dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &fetchConn{Conn: conn, unpack: unpack, fetches: map[int32]int16{}}, nil
	})
	if err := k.SASL.sarama(c); err != nil {
		return nil, fmt.Errorf("configure sarama: %w", err)
	}
	c.RackID = k.Rack
	c.Consumer.Group.InstanceId = memberID(k.Member)
	c.Net.DialTimeout = dialTimeout       // as for franz-go
	c.Net.ReadTimeout = 15 * time.Second  // above the rebalance timeout, for which a join blocks
	c.Net.WriteTimeout = 10 * time.Second // detects a hung broker
	c.Metadata.Timeout = 10 * time.Second // if the brokers are unavailable: fail, and let the supervisor restart
	c.Metadata.RefreshFrequency = time.Minute
	c.Metadata.AllowAutoTopicCreation = false // only the catalogue creates topics

	c.Consumer.IsolationLevel = sarama.ReadCommitted                // never read aborted records
	c.Consumer.Offsets.Initial = sarama.OffsetOldest                // a new group starts at the oldest record
	c.Consumer.Group.ResetInvalidOffsets = false                    // as for franz-go: rows checks offsets when it is assigned a partition
	c.Consumer.Offsets.AutoCommit.Interval = 100 * time.Millisecond // Wait reads the committed offsets
	c.Consumer.Offsets.Retry.Max = 5                                // a moved coordinator takes a few retries
	c.Consumer.Fetch.Default = 1 << 20                              // per partition
	c.Consumer.Return.Errors = true                                 // Goka drains them
	c.Consumer.Group.Session.Timeout = 6 * time.Second              // detects a dead owner in this time; the brokers' default minimum
	c.Consumer.Group.Heartbeat.Interval = time.Second               // a sixth of the session timeout
	c.Consumer.Group.Rebalance.Timeout = k.rebalanceTimeout()       // for all members to hand over
	c.Consumer.Group.Rebalance.Retry.Max = 20                       // a group rebalances repeatedly while its members start
	c.Consumer.Group.Rebalance.Retry.Backoff = 2500 * time.Millisecond
	c.Consumer.Group.Rebalance.GroupStrategies = []sarama.BalanceStrategy{goka.CopartitioningStrategy} // inputs and table together

	c.Producer.Partitioner = sarama.NewCustomHashPartitioner(NewHasher) // the same hash for all clients
	c.Producer.RequiredAcks = sarama.WaitForAll                         // as for franz-go
	c.Producer.Return.Successes = true                                  // required by Goka
	c.Producer.Return.Errors = true
	return c, nil
}

// dialer opens the connections of sarama clients.
type dialer func(ctx context.Context, network, address string) (net.Conn, error)

// Dial implements sarama's proxy dialer.
func (d dialer) Dial(network, address string) (net.Conn, error) {
	return d(context.Background(), network, address)
}

// rebalanceTimeout returns a shorter time for the embedded broker. That broker notices a member that dies while it joins
// only after the whole timeout, and every join restarts the timeout.
func (k Kafka) rebalanceTimeout() time.Duration {
	if k.Embedded {
		return 2500 * time.Millisecond
	}
	return 10 * time.Second
}

// retryBackoff returns a delay that doubles from 25 ms up to 2 s.
func retryBackoff(fails int) time.Duration {
	const first, last = 25 * time.Millisecond, 2 * time.Second
	if fails > 7 { // 25 ms * 2^7 > 2 s
		return last
	}
	return min(first<<max(fails-1, 0), last)
}
