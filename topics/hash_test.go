package topics_test

import (
	"fmt"
	"testing"

	"github.com/IBM/sarama"
	"github.com/twmb/franz-go/pkg/kgo"
	"pgregory.net/rapid"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/topics"
)

// Values of org.apache.kafka.common.utils.UtilsTest.testMurmur2.
func TestPartition_EqualsJavas(t *testing.T) {
	for key, murmur2 := range map[string]int32{
		"21":                         -973932308,
		"foobar":                     -790332482,
		"a-little-bit-long-string":   -985981536,
		"a-little-bit-longer-string": -1486304829,
		"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
		"abc": 479470107,
	} {
		for _, n := range []int32{1, 3, 8, 64, 1 << 20} {
			expect.Equal(t, topics.Partition(key, n), (murmur2&0x7fffffff)%n, "Partition(%q, %d)", key, n)
		}
	}
}

// All partitioners choose the same partitions for 10,000 keys: franz-go's default for records with keys, ByOwner, Goka's
// producer (sarama with NewHasher), and Goka's processors and views.
func TestPartitioners_Agree(t *testing.T) {
	const n = 16
	franz := kgo.StickyKeyPartitioner(nil).ForTopic("t")
	ours := topics.ByOwner().ForTopic("t")
	goka := sarama.NewCustomHashPartitioner(topics.NewHasher)("t")
	for i := range 10_000 {
		key := fmt.Sprintf("user:%d-%x", i, i*i)
		want := topics.Partition(key, n)
		rec := &kgo.Record{Key: []byte(key)}
		expect.Equal(t, franz.Partition(rec, n), int(want), "franz-go's partition of %q", key)
		expect.Equal(t, ours.Partition(rec, n), int(want), "ByOwner's partition of %q", key)
		got := must.Get(goka.Partition(&sarama.ProducerMessage{Key: sarama.StringEncoder(key)}, n))(t)
		expect.Equal(t, got, want, "sarama's partition of %q", key)
		expect.Equal(t, gokaLocal(t, key, n), want, "Goka's partition of %q", key)
	}
}

// gokaLocal computes a partition as Goka's Processor.hash and View.hash do.
func gokaLocal(t *testing.T, key string, n int32) int32 {
	t.Helper()
	h := topics.NewHasher()
	must.Get(h.Write([]byte(key)))(t)
	sum := int32(h.Sum32())
	if sum < 0 {
		sum = -sum
	}
	return sum % n
}

func TestPartitioners_PutRowsWithTheirOwner(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		owner := rapid.StringMatching(`[a-z]+:[^\x00]{1,40}`).Draw(t, "owner")
		row := rapid.SliceOf(rapid.Byte()).Draw(t, "row")
		n := rapid.Int32Range(1, 512).Draw(t, "partitions")
		key := append([]byte(owner+"\x00"), row...)

		h := topics.NewHasher()
		for _, part := range [][]byte{key[:len(key)/2], key[len(key)/2:]} {
			_, _ = h.Write(part)
		}
		want := topics.Partition(owner, n)
		expect.Equal(t, int32(h.Sum32())%n, want, "partition of a row of %q", owner)
		inTopic := topics.ByOwner().ForTopic("t").Partition(&kgo.Record{Key: key}, int(n))
		expect.Equal(t, inTopic, int(want), "partition of a row of %q", owner)
	})
}

func TestHasher_Reset(t *testing.T) {
	h := topics.NewHasher()
	_, _ = h.Write([]byte("abc"))
	first := h.Sum32()
	h.Reset()
	_, _ = h.Write([]byte("abc"))
	expect.Equal(t, h.Sum32(), first, "after Reset the sum")
	expect.Equal(t, fmt.Sprintf("%x", h.Sum(nil)), fmt.Sprintf("%08x", first), "Sum")
}
