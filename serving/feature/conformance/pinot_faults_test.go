package conformance

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/serving/feature"
)

// pinotRoles is the directory with the process ids of Pinot's roles, each in a process that is restarted when it exits, as
// .ci/services starts the server pinot-roles.
const pinotRoles = "SMARTFEED_TEST_PINOT_ROLES"

// A server or a broker of Pinot that is killed under load fails reads for a while, but no read returns a wrong result.
func TestRealPinotRoles_KilledUnderLoad(t *testing.T) {
	dir := os.Getenv(pinotRoles)
	if dir == "" {
		t.Skip(pinotRoles + " is not set")
	}
	c := startCluster(t)
	must.OK(t, c.setup.Apply(t.Context()))
	k := newKnown(t, c)
	load := time.NewTicker(10 * time.Millisecond) // a failed read takes no time
	defer load.Stop()
	for _, role := range []string{"broker", "server", "server"} {
		failed := k.failed.Load()
		kill(t, filepath.Join(dir, role+".pid"))
		deadline := time.Now().Add(2 * time.Minute)
		for ; k.failed.Load() == failed && time.Now().Before(deadline); <-load.C {
			k.readAll(t)
		}
		if k.failed.Load() == failed {
			t.Fatalf("%s: no read failed: the fault was not hit", role)
		}
		healthy := func() bool { before := k.failed.Load(); k.readAll(t); return k.failed.Load() == before }
		for ; !healthy(); <-load.C {
			if time.Now().After(deadline) {
				t.Fatalf("%s: reads still fail after two minutes", role)
			}
		}
		t.Logf("%s killed: %d reads failed, the others are correct", role, k.failed.Load()-failed)
	}
}

// kill kills the process with the id in a file.
func kill(t *testing.T, file string) {
	t.Helper()
	text := must.Get(os.ReadFile(file))(t)
	pid := must.Get(strconv.Atoi(strings.TrimSpace(string(text))))(t)
	process := must.Get(os.FindProcess(pid))(t)
	must.OK(t, process.Kill())
}

// known is a cluster with data whose features are known: user i has i+1 actions, and pin i has i+1 saves in each of two
// steps, a mean of actors, and an attribute.
type known struct {
	*cluster
	now    schemas.Micros
	pins   []schemas.PinID
	failed atomic.Int64 // reads
}

const knownEntities = 20

func newKnown(t *testing.T, c *cluster) *known {
	t.Helper()
	k := &known{cluster: c, now: schemas.MicrosOf(time.Now())}
	var b feature.Batch
	for i := range knownEntities {
		for n := range i + 1 {
			user := schemas.UserID(fmt.Sprint("user:", i))
			b.Actions = append(b.Actions, &schemas.EnrichedAction{ID: fmt.Sprint(user, "-", n), Actor: user, Verb: "save", Object: "pin:1", Timestamp: k.now})
		}
		pin := schemas.PinID(fmt.Sprint("pin:", i))
		k.pins = append(k.pins, pin)
		b.Pins = append(b.Pins, &schemas.PinAttributes{Pin: pin, Version: 1, Attributes: map[string]string{"n": "old"}},
			&schemas.PinAttributes{Pin: pin, Version: 2, Attributes: map[string]string{"n": strconv.Itoa(i)}})
		for step := range schemas.Micros(2) {
			for n := range int64(i + 1) { // a later record replaces the earlier one
				start := (k.now/schemas.ItemStep - step) * schemas.ItemStep
				b.Counts = append(b.Counts, &schemas.ItemCounts{Pin: pin, Start: start, Counts: map[string]int64{"save": n + 1}, Embedding: []float32{float32(n)}})
			}
		}
	}
	c.produceBatch(t, b)
	c.await(t, len(b.Actions))
	return k
}

// readAll reads all data with several readers. Each read fails or returns the known result.
func (k *known) readAll(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	var readers sync.WaitGroup
	for i := range knownEntities {
		readers.Go(func() { k.check(t, "user", feature.Number(i+1), func() (any, error) { return k.actions(ctx, i) }) })
	}
	var saves [][]feature.Result
	attributes := map[schemas.PinID]feature.PinAttributes{}
	for i, pin := range k.pins {
		saves = append(saves, []feature.Result{{Value: feature.Number(2 * (i + 1))}, {Value: feature.Vector{float64(i)}}})
		attributes[pin] = feature.PinAttributes{Attributes: map[string]string{"n": strconv.Itoa(i)}}
	}
	readers.Go(func() { k.check(t, "items", saves, func() (any, error) { return k.items(ctx) }) })
	readers.Go(func() {
		k.check(t, "pins", attributes, func() (any, error) {
			got, _, err := k.store.Pins(ctx, k.pins, false)
			return got, err
		})
	})
	readers.Wait()
}

func (k *known) check(t *testing.T, what string, want any, read func() (any, error)) {
	got, err := read()
	if err != nil {
		k.failed.Add(1)
	} else if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s: a wrong result (-want +got):\n%s", what, diff)
	}
}

func (k *known) actions(ctx context.Context, user int) (any, error) {
	count := []feature.Definition{{Entity: feature.User, Window: time.Hour, Aggregate: feature.Count}}
	got, _, err := k.store.Actions(ctx, schemas.UserID(fmt.Sprint("user:", user)), feature.Span{Now: k.now, AsOf: k.now}, count)
	if err != nil {
		return nil, err
	}
	return got[0].Value, nil
}

func (k *known) items(ctx context.Context) (any, error) {
	got, _, err := k.store.Items(ctx, k.pins, k.now, []feature.Definition{
		{Entity: feature.Pin, Window: time.Hour, Aggregate: feature.Count}, {Entity: feature.Pin, Aggregate: feature.MeanEmbedding},
	})
	return got, err
}
