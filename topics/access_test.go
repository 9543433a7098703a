package topics_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/smartfeed/smartfeed/internal/secure"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/internal/testkit/securetest"
	"github.com/smartfeed/smartfeed/topics"
)

// realSecured names the variable with the address of a Kafka broker that requires TLS and a login. .ci/services starts it
// as kafka-secured. Its certificates are in the directory that realCertificates names.
const (
	realSecured      = "SMARTFEED_TEST_KAFKA_SECURED"
	realCertificates = "SMARTFEED_TEST_CERTIFICATES"
)

// secured is a broker that requires TLS and a login.
type secured struct {
	broker, mutual string // addresses; mutual requires a certificate instead of a login
	dir            string // directory of the certificates
	refuses        string // error for a wrong password; the embedded broker closes the connection
}

func (s secured) file(name string) string { return filepath.Join(s.dir, name) }

// as returns the configuration with which the test user connects.
func (s secured) as(mechanism string) topics.ClientConfig {
	return topics.ClientConfig{
		TLS: secure.TLS{Enabled: true, Certificates: secure.Certificates{CAFile: s.file(securetest.CA)}},
		SASL: topics.SASL{Mechanism: mechanism, Login: secure.Login{
			User: securetest.User, PasswordFile: s.file(securetest.Secret),
		}},
	}
}

// fakeSecured starts an embedded broker that requires a login, and another that requires a certificate.
func fakeSecured(t *testing.T) secured {
	t.Helper()
	s := secured{dir: filepath.Join(t.TempDir(), "certificates")}
	must.OK(t, securetest.Write(s.dir))
	pair := must.Get(tls.LoadX509KeyPair(s.file(securetest.Server), s.file(securetest.Server)))(t)
	text := must.Get(os.ReadFile(s.file(securetest.CA)))(t)
	ca := x509.NewCertPool()
	ca.AppendCertsFromPEM(text)
	start := func(opts ...kfake.Opt) string {
		c := must.Get(kfake.NewCluster(append(opts, kfake.NumBrokers(1))...))(t)
		t.Cleanup(c.Close)
		return c.ListenAddrs()[0]
	}
	opts := []kfake.Opt{kfake.EnableSASL(), kfake.TLS(&tls.Config{Certificates: []tls.Certificate{pair}})}
	for _, mechanism := range []string{topics.Plain, topics.ScramSHA256, topics.ScramSHA512} {
		opts = append(opts, kfake.Superuser(mechanism, securetest.User, securetest.Literal))
	}
	s.broker = start(opts...)
	s.mutual = start(kfake.TLS(&tls.Config{
		Certificates: []tls.Certificate{pair}, ClientCAs: ca, ClientAuth: tls.RequireAndVerifyClientCert,
	}))
	return s
}

// realSecuredKafka returns Apache Kafka with a listener of each kind.
func realSecuredKafka(t *testing.T) secured {
	t.Helper()
	at := os.Getenv(realSecured)
	if at == "" {
		t.Skipf("set %s to the address of a Kafka broker that requires TLS and a login", realSecured)
	}
	host, port, err := net.SplitHostPort(at)
	must.OK(t, err)
	var n int
	must.Get(fmt.Sscan(port, &n))(t)
	return secured{broker: at, mutual: net.JoinHostPort(host, fmt.Sprint(n+2)), dir: os.Getenv(realCertificates), refuses: "SASL_AUTHENTICATION_FAILED"}
}

func TestClients_AuthenticateWithTLSAndSASL(t *testing.T) { everyClient(t, fakeSecured(t)) }
func TestRealSecuredKafkaAcceptsEveryClient(t *testing.T) { everyClient(t, realSecuredKafka(t)) }

// everyClient tests each kind of client with each kind of login, and over a connection that the test dials.
func everyClient(t *testing.T, s secured) {
	certificate := topics.ClientConfig{TLS: secure.TLS{Enabled: true, Certificates: secure.Certificates{
		CAFile: s.file(securetest.CA), CertFile: s.file(securetest.Client), KeyFile: s.file(securetest.Key),
	}}}
	for _, c := range []struct {
		name string
		at   string
		as   topics.ClientConfig
	}{
		{"plain", s.broker, s.as(topics.Plain)},
		{"scram-256", s.broker, s.as(topics.ScramSHA256)},
		{"scram-512", s.broker, s.as(topics.ScramSHA512)},
		{"certificate", s.mutual, certificate},
	} {
		t.Run(c.name, func(t *testing.T) {
			k := must.Get(c.as.Kafka([]string{c.at}, 1))(t)
			checkClients(t, k, fmt.Sprintf("secured-%s-%d", c.name, time.Now().UnixNano()))
			k.Dial = new(net.Dialer).DialContext
			checkClients(t, k, fmt.Sprintf("dialled-%s-%d", c.name, time.Now().UnixNano()))
		})
	}
}

// checkClients creates a topic, produces to it in a transaction, and reads it with a franz-go group and a sarama group.
func checkClients(t *testing.T, k topics.Kafka, topic string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	must.Get(topics.Apply(ctx, k, []topics.Topic{{Name: topic, Partitions: 1, Replicas: 1, InSync: 1}}))(t)
	tx := must.Get(k.Transactional(topic))(t)
	defer tx.Close()
	must.OK(t, tx.BeginTransaction())
	must.OK(t, tx.ProduceSync(ctx, &kgo.Record{Topic: topic, Value: []byte("v")}).FirstErr())
	must.OK(t, topics.EndTransaction(ctx, tx, kgo.TryCommit, topic))
	got := 0
	until, end := context.WithCancel(ctx)
	defer end()
	err := topics.Consume(until, topics.ConsumerConfig{Kafka: k, Group: topic + "-franz", Topics: []string{topic}}, func(_ context.Context, records []*kgo.Record) error {
		got += len(records)
		end()
		return nil
	})
	must.OK(t, err)
	expect.Equal(t, got, 1, "records read by franz-go")
	must.OK(t, readWithSarama(ctx, k, topic, 1)) // sarama
}

// readWithSarama returns nil when a group has read n records of a topic.
func readWithSarama(ctx context.Context, k topics.Kafka, topic string, n int) error {
	cfg, err := k.Sarama()
	if err != nil {
		return err
	}
	group, err := sarama.NewConsumerGroup(k.Brokers, topic+"-sarama", cfg)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		for range group.Errors() {
		}
	}()
	some := someRead{n: n, read: make(chan struct{}), end: cancel}
	err = group.Consume(ctx, []string{topic}, some)
	if err := errors.Join(err, group.Close()); err != nil {
		return err
	}
	select {
	case <-some.read:
		return nil
	default:
		return errors.New("nothing read")
	}
}

// someRead stops at the n-th record.
type someRead struct {
	n    int
	read chan struct{}
	end  func()
}

func (someRead) Setup(sarama.ConsumerGroupSession) error   { return nil }
func (someRead) Cleanup(sarama.ConsumerGroupSession) error { return nil }
func (s someRead) ConsumeClaim(_ sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for range s.n {
		if _, ok := <-claim.Messages(); !ok {
			return nil
		}
	}
	close(s.read)
	s.end()
	return nil
}

func TestClients_ReportRefusedLogin(t *testing.T) { refused(t, fakeSecured(t)) }
func TestRealSecuredKafkaRefuses(t *testing.T)    { refused(t, realSecuredKafka(t)) }

// refused checks that rejected clients return an error that names the reason and does not contain the
// password.
func refused(t *testing.T, s secured) {
	wrong := func(mechanism string) topics.ClientConfig {
		c := s.as(mechanism)
		c.SASL.PasswordFile, c.SASL.Password = "", "battery-staple"
		return c
	}
	stranger, anonymous, open := s.as(topics.ScramSHA256), s.as(""), s.as(topics.ScramSHA512)
	stranger.TLS.CAFile = s.file(securetest.Other)
	anonymous.SASL = topics.SASL{}
	open.TLS = secure.TLS{}
	const trust, noReason = "certificate", ""
	login := s.refuses
	for _, c := range []struct {
		name string
		as   topics.ClientConfig
		want string // the error of franz-go
	}{
		{"wrong password, plain", wrong(topics.Plain), login},
		{"wrong password, scram-256", wrong(topics.ScramSHA256), login},
		{"wrong password, scram-512", wrong(topics.ScramSHA512), login},
		{"another authority", stranger, trust},
		{"no login", anonymous, noReason},
		{"no TLS", open, noReason},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			k := must.Get(c.as.Kafka([]string{s.broker}, 1))(t)
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
			defer cancel()
			for what, try := range map[string]func() error{
				"ask": func() error { _, err := topics.ProfileOf(ctx, k); return err },
				"consume": func() error {
					return topics.Consume(ctx, topics.ConsumerConfig{Kafka: k, Group: "refused", Topics: []string{"t"}}, nil)
				},
				"join": func() error { return readWithSarama(ctx, k, "t", 1) },
			} {
				began := time.Now()
				err := try()
				if err == nil || ctx.Err() != nil || what != "join" && !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "battery-staple") {
					t.Errorf("%s: got %v, want an error with %q", what, err, c.want)
				}
				t.Logf("%s: %v (%s)", what, err, time.Since(began).Round(time.Millisecond))
			}
		})
	}
}

func TestClientConfig_Validate(t *testing.T) {
	login := secure.Login{User: "ada", Password: "p"}
	for _, c := range []struct {
		name string
		cfg  topics.ClientConfig
		want string
	}{
		{"nothing", topics.ClientConfig{}, ""},
		{"scram", topics.ClientConfig{SASL: topics.SASL{Mechanism: "SCRAM-SHA-512", Login: login}, Rack: "a", StaticMembership: true}, ""},
		{"plain without TLS", topics.ClientConfig{SASL: topics.SASL{Mechanism: "PLAIN", Login: login}}, "sasl.mechanism: PLAIN sends the password itself"},
		{"plain over TLS", topics.ClientConfig{TLS: secure.TLS{Enabled: true}, SASL: topics.SASL{Mechanism: "PLAIN", Login: login}}, ""},
		{"another mechanism", topics.ClientConfig{SASL: topics.SASL{Mechanism: "scram", Login: login}}, `sasl.mechanism: "scram": want one of PLAIN`},
		{"no mechanism", topics.ClientConfig{SASL: topics.SASL{Login: login}}, "sasl.mechanism, user: both or neither are required"},
		{"no user", topics.ClientConfig{SASL: topics.SASL{Mechanism: "PLAIN"}}, "sasl.mechanism, user: both or neither are required"},
		{"files without TLS", topics.ClientConfig{TLS: secure.TLS{Certificates: secure.Certificates{CAFile: "ca"}}}, "tls.enabled: is false"},
		{"rack with space", topics.ClientConfig{Rack: " a"}, `rack: " a"`},
	} {
		err := c.cfg.Validate()
		if (err == nil) != (c.want == "") || err != nil && !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", c.name, err, c.want)
		}
	}
	if _, err := (topics.ClientConfig{SASL: topics.SASL{Mechanism: topics.Plain, Login: secure.Login{User: "ada", PasswordFile: "none"}}}).Kafka(nil, 1); err == nil {
		t.Error("missing password file: got no error")
	}
}
