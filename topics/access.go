package topics

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/IBM/sarama"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"github.com/smartfeed/smartfeed/internal/secure"
	"github.com/smartfeed/smartfeed/internal/settings"
)

// ClientConfig configures how this process connects to the brokers, apart from their addresses. The zero value means no
// encryption, no authentication, no rack, and dynamic group membership.
type ClientConfig struct {
	TLS  secure.TLS `yaml:"tls"`
	SASL SASL       `yaml:"sasl"`
	// The name is that in the brokers' broker.rack. It has an effect only if the brokers have
	// replica.selector.class=org.apache.kafka.common.replica.RackAwareReplicaSelector.
	Rack string `yaml:"rack" help:"rack of this process, whose replicas it reads; empty: it reads from the leaders"`
	// Members are named after the address of the process.
	StaticMembership bool `yaml:"static_membership" help:"join the groups that keep rows as a static member: the partitions of a stopped process are reassigned only after rows.session_timeout"`
}

// SASL configures the authentication to the brokers. The zero value means no authentication.
type SASL struct {
	Mechanism    string `yaml:"mechanism" help:"PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512; empty: no login"`
	secure.Login `yaml:",inline"`
}

// The mechanisms that SASL supports, as brokers name them. PLAIN sends the password itself, so it requires TLS.
const (
	Plain       = "PLAIN"
	ScramSHA256 = "SCRAM-SHA-256"
	ScramSHA512 = "SCRAM-SHA-512"
)

// Validate reports every value that is out of its bounds or conflicts with another.
func (c ClientConfig) Validate() error {
	problems := settings.Problems{settings.Under("tls", c.TLS.Validate()), settings.Under("sasl", c.SASL.Validate())}
	problems.Want(c.SASL.Mechanism != Plain || c.TLS.Enabled,
		"sasl.mechanism: PLAIN sends the password itself: set tls.enabled, or use SCRAM-SHA-512")
	problems.Want(strings.TrimSpace(c.Rack) == c.Rack && len(c.Rack) <= 255,
		"rack: %q: want at most 255 bytes without surrounding space", c.Rack)
	return problems.Err()
}

// Validate reports every value that conflicts with another.
func (s SASL) Validate() error {
	problems := settings.Problems{s.Login.Validate()}
	known := []string{Plain, ScramSHA256, ScramSHA512}
	problems.Want(s.Mechanism == "" || slices.Contains(known, s.Mechanism), "mechanism: %q: want one of %s", s.Mechanism, strings.Join(known, ", "))
	problems.Want((s.Mechanism != "") == s.Given(), "mechanism, user: both or neither are required")
	return problems.Err()
}

// Kafka returns the connection settings for brokers. It returns an error if a certificate file or a secret file cannot be
// read.
func (c ClientConfig) Kafka(brokers []string, partitions int32) (Kafka, error) {
	settings, err := c.TLS.Config()
	if err != nil {
		return Kafka{}, fmt.Errorf("kafka_client.tls: %w", err)
	}
	if _, err := c.SASL.Secret(); err != nil {
		return Kafka{}, fmt.Errorf("kafka_client.sasl: %w", err)
	}
	return Kafka{Brokers: brokers, Partitions: partitions, TLS: settings, SASL: c.SASL, Rack: c.Rack}, nil
}

// mechanism returns the mechanism for franz-go clients, which reads the password for each connection. It returns nil if
// authentication is off.
func (s SASL) mechanism() sasl.Mechanism {
	switch s.Mechanism {
	case Plain:
		return plain.Plain(func(context.Context) (plain.Auth, error) {
			password, err := s.Secret()
			return plain.Auth{User: s.User, Pass: password}, err
		})
	case ScramSHA256:
		return scram.Sha256(s.scram)
	case ScramSHA512:
		return scram.Sha512(s.scram)
	}
	return nil
}

func (s SASL) scram(context.Context) (scram.Auth, error) {
	password, err := s.Secret()
	return scram.Auth{User: s.User, Pass: password}, err
}

// sarama configures the same authentication for a sarama client.
func (s SASL) sarama(c *sarama.Config) error {
	if s.Mechanism == "" {
		return nil
	}
	password, err := s.Secret()
	if err != nil {
		return err
	}
	c.Net.SASL.Enable = true
	c.Net.SASL.Mechanism = sarama.SASLMechanism(s.Mechanism)
	c.Net.SASL.User, c.Net.SASL.Password = s.User, password
	if s.Mechanism != Plain {
		c.Net.SASL.SCRAMClientGeneratorFunc = func() sarama.SCRAMClient { return &scramExchange{mechanism: s.mechanism()} }
	}
	return nil
}

// scramExchange is one SCRAM authentication of a sarama client. It uses franz-go's SCRAM, because sarama has no implementation.
type scramExchange struct {
	mechanism sasl.Mechanism
	session   sasl.Session // nil before the first step
	done      bool
}

// Begin ignores its arguments: the mechanism has the credentials.
func (e *scramExchange) Begin(_, _, _ string) error { return nil }

// Step returns the answer to the broker's challenge. The first challenge is empty.
func (e *scramExchange) Step(challenge string) (string, error) {
	var answer []byte
	var err error
	if e.session == nil {
		e.session, answer, err = e.mechanism.Authenticate(context.Background(), "")
	} else {
		e.done, answer, err = e.session.Challenge([]byte(challenge))
	}
	return string(answer), err
}

// Done reports whether the exchange is complete, which includes the broker's proof that it has the password.
func (e *scramExchange) Done() bool { return e.done }

// memberID returns name with every character that brokers do not allow in a member id replaced by "-". Allowed are letters,
// digits, ".", "_" and "-".
func memberID(name string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._-", r) {
			return r
		}
		return '-'
	}, name)
}
