package topics

import (
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

// Kafka is how to reach the brokers: the one place where clients of franz-go and of sarama are configured.
type Kafka struct {
	Brokers    []string      // host:port, at least one
	Partitions int32         // of every co-partitioned topic, frozen when the topics are created
	Assumed    bool          // Partitions is the embedded broker's default, since none was configured; see ErrPartitions
	Actions    time.Duration // how long the topic actions is kept, 0: 7 days; see Profile
	ClientID   string        // shown in the brokers' logs and quotas, default "smartfeed"
	Embedded   bool          // the brokers are the embedded one

	TLS  *tls.Config // of every connection, nil: it is not encrypted
	SASL SASL        // as whom the brokers are asked
	Rack string      // where the reader stands, see ClientConfig
	// Member is this process's name as a static member of the groups that keep rows, made into one that brokers allow.
	// Empty: it is none.
	Member string

	// Tracer begins the traces of what is read from the brokers; nil: none.
	Tracer *tracing.Tracer

	// Dial opens every connection, nil: plain TCP. For tests that cut and hold connections.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// DefaultClientID is the client id of a Kafka that names none.
const DefaultClientID = "smartfeed"

// DeliveryTimeout bounds how long a producer tries to deliver a record. A record that was never sent has failed for
// certain when it has passed; of one that was sent and not answered the outcome stays unknown until the brokers answer.
const DeliveryTimeout = 30 * time.Second

// transactionTimeout is how long the brokers let a transaction stay open before they abort it. A transaction here is
// open for one commit, milliseconds; this is the time for which a dead owner can hold back readers.
const transactionTimeout = 10 * time.Second

// Client makes a client that reads committed records only and produces idempotently, to the partition of each record's
// owner (ByOwner). opts come after and win. It dials nothing yet.
func (k Kafka) Client(opts ...kgo.Opt) (*kgo.Client, error) {
	if len(k.Brokers) == 0 {
		return nil, errors.New("make kafka client: no broker address")
	}
	unpack, err := decompressor()
	if err != nil {
		return nil, err
	}
	settings := append(k.settings(), k.access()...)
	settings = append(settings, kgo.WithDecompressor(unpack)) // a bomb on a topic must not take the process with it
	client, err := kgo.NewClient(append(settings, opts...)...)
	if err != nil {
		return nil, fmt.Errorf("make kafka client: %w", err)
	}
	return client, nil
}

// Transactional makes a client whose records are produced in transactions under id, each to its Record.Partition.
// Its ProducerID call fences whoever used the id before, and ends what they left open.
func (k Kafka) Transactional(id string, opts ...kgo.Opt) (*kgo.Client, error) {
	return k.Client(append([]kgo.Opt{
		kgo.TransactionalID(id),
		kgo.TransactionTimeout(transactionTimeout),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),          // rows knows the partition, its own among them
		kgo.MaxBufferedRecords(1 << 20),                         // a batch is bounded before it is produced: never block inside a transaction
		kgo.ConcurrentTransactionsBackoff(2 * time.Millisecond), // the last one's markers are being written: they take about a millisecond
	}, opts...)...)
}

// Admin makes an administration client with a connection of its own. Close it.
func (k Kafka) Admin() (*kadm.Client, error) {
	client, err := k.Client()
	if err != nil {
		return nil, err
	}
	return kadm.NewClient(client), nil
}

// dialTimeout bounds how long a client tries to connect to a broker.
const dialTimeout = 5 * time.Second

// access is how franz-go clients connect.
func (k Kafka) access() (opts []kgo.Opt) {
	switch {
	case k.Dial != nil && k.TLS != nil:
		opts = append(opts, kgo.Dialer(k.dialTLS))
	case k.Dial != nil:
		opts = append(opts, kgo.Dialer(k.Dial))
	case k.TLS != nil:
		opts = append(opts, kgo.DialTLSConfig(k.TLS))
	}
	if m := k.SASL.mechanism(); m != nil {
		opts = append(opts, kgo.SASL(m))
	}
	if k.Rack != "" {
		opts = append(opts, kgo.Rack(k.Rack))
	}
	return opts
}

// dial connects as sarama's clients do.
func (k Kafka) dial(ctx context.Context, network, address string) (net.Conn, error) {
	if k.Dial == nil {
		k.Dial = new(net.Dialer).DialContext
	}
	if k.TLS != nil {
		return k.dialTLS(ctx, network, address)
	}
	return k.Dial(ctx, network, address)
}

// dialTLS is TLS over Dial.
func (k Kafka) dialTLS(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := k.Dial(ctx, network, address)
	if err != nil {
		return nil, err
	}
	settings := k.TLS.Clone()
	if settings.ServerName == "" {
		settings.ServerName, _, _ = net.SplitHostPort(address) // an address without a port was not dialled
	}
	secured := tls.Client(conn, settings)
	if err := secured.HandshakeContext(ctx); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return secured, nil
}

// settings are those of every franz-go client.
func (k Kafka) settings() []kgo.Opt {
	return []kgo.Opt{
		kgo.SeedBrokers(k.Brokers...),
		kgo.ClientID(k.clientID()),
		kgo.DisableClientMetrics(), // nobody reads what KIP-714 would push

		kgo.DialTimeout(dialTimeout),                // a host that is gone must not hold a request for longer
		kgo.RequestTimeoutOverhead(5 * time.Second), // over the request's own time-out: a hung broker shows within it
		kgo.RetryBackoffFn(backoff),                 // the first retry soon: most failures are a leader that moved
		kgo.MetadataMinAge(100 * time.Millisecond),  // a topic made a moment ago is seen at once
		kgo.MetadataMaxAge(time.Minute),             // a moved leader is noticed without traffic

		kgo.FetchIsolationLevel(kgo.ReadCommitted()),           // what was aborted never happened
		kgo.ConsumeStartOffset(kgo.NewOffset().AtStart()),      // a new reader wants all there is
		kgo.ConsumeResetOffset(kgo.NoResetOffset()),            // records that were removed unread are an error, never skipped
		kgo.FetchMaxWait(time.Second),                          // an empty fetch comes back in time for a rebalance
		kgo.FetchMaxBytes(16 << 20),                            // memory of a fetch in flight, a broker
		kgo.FetchMaxPartitionBytes(4 << 20),                    // a backlog is read in large pieces, no partition starves
		kgo.RequiredAcks(kgo.AllISRAcks()),                     // acknowledged = on every in-sync replica
		kgo.RecordPartitioner(ByOwner()),                       // one hash for all
		kgo.ProducerLinger(0),                                  // latency first: under load batches fill by themselves
		kgo.MaxBufferedRecords(50_000),                         // then producing blocks: back-pressure instead of memory
		kgo.MaxBufferedBytes(64 << 20),                         // the same in bytes
		kgo.RecordDeliveryTimeout(DeliveryTimeout),             // see DeliveryTimeout
		kgo.ProduceRequestTimeout(10 * time.Second),            // the brokers' own patience with replicas
		kgo.ProducerBatchMaxBytesFn(maxBatchBytes),             // what the topics take
		kgo.BrokerMaxWriteBytes(MaxRequestBytes),               // what the embedded broker takes; Kafka takes 100 MiB
		kgo.UnknownTopicRetries(10),                            // a topic made a moment ago is not yet known everywhere
		kgo.ProducerBatchCompression(kgo.SnappyCompression()),  // ids repeat: half the bytes for little time
		kgo.ConsiderMissingTopicDeletedAfter(30 * time.Second), // a broker that is starting may not know its topics yet
	}
}

// MaxRequestBytes is how long a request to a broker may be. Clients split longer ones, and the embedded broker closes
// connections that send one.
const MaxRequestBytes = 16 << 20

// decompressor is what all clients of the process decompress batches with.
var decompressor = sync.OnceValues(func() (kgo.Decompressor, error) {
	client, err := kgo.NewClient(kgo.MaxDecompressBatchBytes(MaxDecompressedBytes)) // franz-go bounds a client's decompressor only
	if err != nil {
		return nil, fmt.Errorf("make decompressor: %w", err)
	}
	defer client.Close()
	bounded, ok := client.OptValue(kgo.WithDecompressor).(kgo.Decompressor)
	if !ok {
		return nil, errors.New("make decompressor: the kafka client has none")
	}
	return boundedDecompressor{bounded}, nil
})

// maxBatchBytes is how long a batch of records of a topic may be. A dead letter holds another record whole.
func maxBatchBytes(topic string) int32 {
	if topic == DeadLetters {
		return schemas.MaxDeadLetterBytes + batchOverhead
	}
	return schemas.MaxRecordBytes + batchOverhead
}

// batchOverhead is room for what is around a single record of the greatest length: its key, headers and the frame.
const batchOverhead = 64 << 10

// Sarama returns the configuration of sarama clients: Goka's, which reads inputs with it. Goka's own producer is
// never used. It fails when a secret cannot be read.
func (k Kafka) Sarama() (*sarama.Config, error) {
	unpack, err := decompressor()
	if err != nil {
		return nil, err
	}
	c := sarama.NewConfig()
	c.ClientID = k.clientID()
	c.Version = sarama.V3_6_0_0 // read committed and transactions need 0.11; both embedded and real brokers speak this
	c.ChannelBufferSize = 256   // of every partition: records waiting for a callback
	c.Net.Proxy.Enable = true   // sarama bounds neither records nor headers of a batch: the connection does
	c.Net.Proxy.Dialer = dialer(func(ctx context.Context, network, address string) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(ctx, dialTimeout)
		defer cancel()
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
	c.Net.ReadTimeout = 15 * time.Second  // above the rebalance time-out, for which a join is held
	c.Net.WriteTimeout = 10 * time.Second // a hung broker shows
	c.Metadata.Timeout = 10 * time.Second // brokers away: fail, and let the supervisor start again
	c.Metadata.RefreshFrequency = time.Minute
	c.Metadata.AllowAutoTopicCreation = false // topics come from the catalogue alone

	c.Consumer.IsolationLevel = sarama.ReadCommitted                // what was aborted never happened
	c.Consumer.Offsets.Initial = sarama.OffsetOldest                // a new group wants all there is
	c.Consumer.Group.ResetInvalidOffsets = false                    // as for franz-go: rows checks offsets when it gets a partition
	c.Consumer.Offsets.AutoCommit.Interval = 100 * time.Millisecond // Wait reads the committed offsets
	c.Consumer.Offsets.Retry.Max = 5                                // a moved coordinator costs a few
	// Brokers answer one connection in order, and sarama commits on the one it fetches from: a commit waits behind an
	// empty fetch.
	c.Consumer.MaxWaitTime = 50 * time.Millisecond
	c.Consumer.Fetch.Default = 1 << 20                        // a partition
	c.Consumer.Return.Errors = true                           // Goka drains them
	c.Consumer.Group.Session.Timeout = 6 * time.Second        // a dead owner is noticed in this time; the brokers' default minimum
	c.Consumer.Group.Heartbeat.Interval = time.Second         // a sixth
	c.Consumer.Group.Rebalance.Timeout = k.rebalanceTimeout() // for everybody to hand over
	c.Consumer.Group.Rebalance.Retry.Max = 20                 // a group moves while its members come up
	c.Consumer.Group.Rebalance.Retry.Backoff = 2500 * time.Millisecond
	c.Consumer.Group.Rebalance.GroupStrategies = []sarama.BalanceStrategy{goka.CopartitioningStrategy} // inputs and table together

	c.Producer.Partitioner = sarama.NewCustomHashPartitioner(NewHasher) // one hash for all
	c.Producer.RequiredAcks = sarama.WaitForAll                         // as for franz-go
	c.Producer.Return.Successes = true                                  // Goka insists
	c.Producer.Return.Errors = true
	return c, nil
}

// dialer opens sarama's connections.
type dialer func(ctx context.Context, network, address string) (net.Conn, error)

// Dial is what sarama calls.
func (d dialer) Dial(network, address string) (net.Conn, error) {
	return d(context.Background(), network, address)
}

// rebalanceTimeout is shorter on the embedded broker: a member that dies while it joins is noticed there only when the
// whole time has passed, and every join starts it again.
func (k Kafka) rebalanceTimeout() time.Duration {
	if k.Embedded {
		return 2500 * time.Millisecond
	}
	return 10 * time.Second
}

func (k Kafka) clientID() string {
	if k.ClientID == "" {
		return DefaultClientID
	}
	return k.ClientID
}

// backoff doubles from 25 ms to 2 s.
func backoff(fails int) time.Duration {
	const least, most = 25 * time.Millisecond, 2 * time.Second
	if fails > 7 { // 25 ms * 2^7 > 2 s
		return most
	}
	return min(least<<max(fails-1, 0), most)
}
