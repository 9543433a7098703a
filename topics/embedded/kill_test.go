package embedded_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/topics/embedded"
)

var errKilled = errors.New("killed")

// killAt stops a recovery before its n-th file change, or after half of it if the change appends a batch. It counts the
// changes.
type killAt struct{ n, steps int }

func (k *killAt) step(path string, data []byte) error {
	k.steps++
	if k.steps != k.n {
		return nil
	}
	if filepath.Ext(path) == ".dat" && len(data) > 0 {
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
		if err != nil {
			return err
		}
		_, err = f.Write(data[:len(data)/2])
		return errors.Join(errKilled, err, f.Close())
	}
	return errKilled
}

// imageOfTwo returns the directory of a killed broker. One producer had ended its third transaction, and another had one
// open, with a record of each in four partitions.
func imageOfTwo(t *testing.T, commit bool, opts ...kgo.Opt) string {
	t.Helper()
	dir := t.TempDir()
	c := startChild(t, dir)
	createTopic(t, c.Kafka, "t")
	var both [2]*kgo.Client
	for i := range both {
		tx := must.Get(c.Kafka.Transactional(fmt.Sprintf("tx%d", i), opts...))(t)
		defer tx.Close()
		both[i] = tx
	}
	inAllPartitions(t, both[0], "first", true)
	inAllPartitions(t, both[0], "second", false)
	produceInAll(t, both[1], "open")
	inAllPartitions(t, both[0], "third", commit)
	c.Kill()
	return dir
}

// outcome is what read-committed readers of a log see: how each transaction ends, in order.
type outcome struct {
	ended   map[string][]string // by producer and epoch
	aborted []string            // according to the snapshot
	segment int64               // bytes, according to the snapshot
	offset  int64               // end offset, according to the snapshot

	producers string // pids.log, under partition -1
}

// outcomes returns the outcomes of the logs and snapshots in a directory, and checks that no transaction is open.
func outcomes(t *testing.T, dir string) map[int]outcome {
	t.Helper()
	producers := must.Get(os.ReadFile(filepath.Join(dir, "broker", "pids.log")))(t)
	all := map[int]outcome{-1: {producers: string(producers)}}
	for p := range 4 {
		path := segmentOf(dir, p)
		data := must.Get(os.ReadFile(path))(t)
		o := outcome{ended: ends(t, data)}
		var snap struct {
			HighWatermark    int64            `json:"high_watermark"`
			LastStableOffset int64            `json:"last_stable_offset"`
			Aborted          []map[string]any `json:"aborted_txns"`
			Segments         []struct{ Size int64 }
		}
		raw, err := os.ReadFile(filepath.Join(filepath.Dir(path), "snapshot.json"))
		if err = errors.Join(err, json.Unmarshal(raw, &snap)); err != nil {
			t.Fatal(err)
		}
		for _, a := range snap.Aborted {
			o.aborted = append(o.aborted, fmt.Sprint(a["producer_id"], a["first_offset"], a["last_offset"]))
		}
		o.segment, o.offset = snap.Segments[0].Size, snap.HighWatermark
		expect.Equal(t, o.segment, int64(len(data)), "partition %d: bytes, according to the snapshot %s", p, raw)
		expect.Equal(t, snap.LastStableOffset, o.offset, "partition %d: last stable offset", p)
		all[p] = o
	}
	return all
}

// ends returns how the transactions of a log end.
func ends(t *testing.T, data []byte) map[string][]string {
	t.Helper()
	ended, open := map[string][]string{}, map[int64]bool{}
	for _, at := range batches(data) {
		var b kmsg.RecordBatch
		must.OK(t, b.ReadFrom(data[at:]))
		if b.Attributes&0x20 == 0 {
			open[b.ProducerID] = true
			continue
		}
		expect.True(t, open[b.ProducerID], "producer %d with a marker at %d has an open transaction", b.ProducerID, b.FirstOffset)
		delete(open, b.ProducerID)
		id := fmt.Sprintf("%d/%d", b.ProducerID, b.ProducerEpoch)
		ended[id] = append(ended[id], markerOf(t, &b))
	}
	expect.Equal(t, len(open), 0, "open transactions")
	return ended
}

func markerOf(t *testing.T, b *kmsg.RecordBatch) string {
	t.Helper()
	var r kmsg.Record
	var key kmsg.ControlRecordKey
	must.OK(t, errors.Join(r.ReadFrom(b.Records), key.ReadFrom(r.Key)))
	return strings.ToLower(key.Type.String())
}

// oldClient configures a client that keeps its epoch between transactions.
var oldClient = []kgo.Opt{kgo.MaxVersions(kversion.V3_9_0())}

// A recovery that is killed before any of its changes and run again ends each transaction as an uninterrupted one does.
func TestRecovery_SurvivesKills(t *testing.T) {
	tests := []struct {
		name    string
		commit  bool
		without []int    // partitions without the marker
		want    []string // ends of all transactions
		opts    []kgo.Opt
	}{
		{"the first has the commit", true, []int{1, 2, 3}, []string{"abort", "abort", "commit", "commit"}, nil},
		{"the last has the commit", true, []int{0, 1, 2}, []string{"abort", "abort", "commit", "commit"}, nil},
		{"the last has the abort", false, []int{0, 1, 2}, []string{"abort", "abort", "abort", "commit"}, nil},
		{"none has a marker", true, []int{0, 1, 2, 3}, []string{"abort", "abort", "abort", "commit"}, nil},
		{"old client", true, []int{0, 1, 2, 3}, []string{"abort", "commit abort abort"}, oldClient},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			image := imageOfTwo(t, tt.commit, tt.opts...)
			for _, p := range tt.without {
				cutLastBatch(t, image, p)
			}
			checkKilled(t, image, tt.want)
		})
	}
}

// checkKilled kills the recovery of copies of a directory at every step.
func checkKilled(t *testing.T, image string, ends []string) {
	t.Helper()
	recovered := func(k *killAt) map[int]outcome {
		dir := t.TempDir()
		must.OK(t, os.CopyFS(dir, os.DirFS(image)))
		broker := filepath.Join(dir, "broker")
		err := embedded.RecoverDir(broker, k.step)
		if k.n > 0 {
			expect.Is(t, err, errKilled, "step %d", k.n)
			err = embedded.RecoverDir(broker, nil)
		}
		must.OK(t, err)
		return outcomes(t, dir)
	}
	var whole killAt
	want := recovered(&whole)
	var got []string
	for _, ended := range want[0].ended {
		got = append(got, strings.Join(ended, " "))
	}
	slices.Sort(got)
	expect.NoDiff(t, got, ends, "transactions end with")
	expect.AtLeast(t, whole.steps, 1+4+4+4, "steps")
	for p := range 4 {
		expect.NoDiff(t, want[p].ended, want[0].ended, "partition %d, undisturbed (-partition 0 +it)", p)
	}
	for n := 1; n <= whole.steps; n++ {
		expect.NoDiffBut(t, gocmp.AllowUnexported(outcome{}), recovered(&killAt{n: n}), want, "killed at step %d of %d", n, whole.steps)
	}
}
