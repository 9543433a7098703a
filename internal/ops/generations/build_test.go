package generations

import (
	"context"
	"errors"
	"testing"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/internal/testkit/topicstest"
	"github.com/smartfeed/smartfeed/topics"
	"github.com/smartfeed/smartfeed/topics/generation"
)

// Access without a progress display must not panic.
func TestBuilder_WaitsWithoutProgressDisplay(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	b := &builder{access: &access{Setup: topics.Setup{Kafka: topics.Kafka{Brokers: []string{"127.0.0.1:1"}, Partitions: 1}}}}
	expect.Is(t, b.waitFor(ctx, "catch up"), context.Canceled, "wait")
}

// Another run may abort the generation during the build.
func TestBuilder_DoesNotCutOverToAbortedGeneration(t *testing.T) {
	t.Parallel()
	setup := topicstest.Start(t, 0).Setup()
	a := must.Get(open(t.Context(), setup))(t)
	defer a.close()
	b := &builder{access: a}
	now := generation.Record{Group: topics.Pools, Active: 1, Building: 2}
	must.OK(t, errors.Join(topics.SetGeneration(t.Context(), b.client, now), b.abort(t.Context())))
	if now, err := b.take(t.Context(), 2, generation.Record.CutOver); !errors.Is(err, errEnded) || now.State() != generation.Stable {
		t.Errorf("cut over to an aborted generation: %+v, %v", now, err)
	}
}
