package featurelog

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// killedWriter holds the registry and the directory of the process that TestEachRecordIsFiledOnceUnderKills kills.
const killedWriter = "SMARTFEED_TEST_KILLED_FEATURE_FILES"

// numbered returns record n of a partition. Each date has a hundred records, and a few dates alternate.
func numbered(stream topics.Stream[schemas.LoggedFeatures], partition int32, n int64) (*kgo.Record, error) {
	at := schemas.MicrosOf(midnight.AddDate(0, 0, int(n/100%3)))
	rec := &schemas.LoggedFeatures{Entity: fmt.Sprintf("user:%d-%d", partition, n), Share: 1, Logged: at}
	value, err := stream.Encode(rec)
	return &kgo.Record{Topic: stream.Name, Partition: partition, Offset: n, Value: value}, err
}

// fileUntilKilled starts without committed offsets, at offset 0, and prints each offset up to which both partitions are
// durable.
func fileUntilKilled(registry, dir string) error {
	client, err := schemas.NewRegistry(registry)
	if err != nil {
		return err
	}
	streams, err := topics.Open(context.Background(), client)
	if err != nil {
		return err
	}
	metrics, err := NewMetrics(prometheus.NewRegistry())
	if err != nil {
		return err
	}
	cfg := DefaultConfig()
	cfg.Dir = dir
	f, err := NewFiles(cfg, FilesDeps{Stream: streams.FeatureLog, DeadLetters: &letters{}, Metrics: metrics, Now: time.Now})
	if err != nil {
		return err
	}
	f.cfg.MaxFileBytes = 4 << 10 // so that kills also hit the closing of files
	if err := f.recover(); err != nil {
		return err
	}
	for from := int64(0); ; from += 7 {
		var batch []*kgo.Record
		for n := from; n < from+7; n++ {
			for p := range int32(partitions) {
				r, err := numbered(streams.FeatureLog, p, n)
				if err != nil {
					return err
				}
				batch = append(batch, r)
			}
		}
		if err := f.handle(context.Background(), batch); err != nil {
			return err
		}
		fmt.Println("durable", from+6)
	}
}

// killFiler starts a writer, kills it once its durable offset has reached before + further, and returns the last offset
// that it printed.
func killFiler(t *testing.T, env string, before, further int64) int64 {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), killedWriter+"="+env)
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	durable := int64(-1)
	for lines := bufio.NewScanner(out); durable < before+further; {
		if !lines.Scan() {
			t.Fatalf("the writer ended by itself after %d: %v", durable, cmd.Wait())
		}
		if text, ok := strings.CutPrefix(lines.Text(), "durable "); ok {
			durable, err = strconv.ParseInt(text, 10, 64)
			must(t, err)
		}
	}
	must(t, cmd.Process.Kill())
	if cmd.Wait() == nil {
		t.Fatal("the writer was not killed")
	}
	return durable
}

// Whenever a writer is killed, and although all commits are lost, each durable record is in exactly one file.
func TestEachRecordIsFiledOnceUnderKills(t *testing.T) {
	if env := os.Getenv(killedWriter); env != "" {
		registry, dir, _ := strings.Cut(env, " ")
		t.Fatal(fileUntilKilled(registry, dir))
	}
	w := newWire(t)
	dir, durable := t.TempDir(), int64(-1)
	for round := range int64(8) {
		durable = killFiler(t, w.RegistryURL()+" "+dir, durable, 30+41*round)
	}
	f := w.files(t, dir, &letters{})
	must(t, f.recover())
	want := map[string]int{}
	for p := range int32(partitions) {
		if f.next[p] <= durable {
			t.Errorf("partition %d: files go on from %d, and up to %d was durable", p, f.next[p], durable)
		}
		for n := range f.next[p] {
			want[fmt.Sprintf("user:%d-%d", p, n)] = 1
		}
	}
	if diff := cmp.Diff(want, filed(t, dir)); diff != "" {
		t.Errorf("entities in files (-want +got):\n%s", diff)
	}
}
