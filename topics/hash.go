package topics

import (
	"bytes"
	"encoding/binary"
	"hash"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Partition returns the partition of a record key among n partitions: (murmur2(key) & 0x7fffffff) % n, as in the Java
// client. n must be positive.
func Partition(key string, n int32) int32 { return PartitionBytes([]byte(key), n) }

// PartitionBytes is Partition for a key in bytes.
func PartitionBytes(key []byte, n int32) int32 { return int32(masked(key) % uint32(n)) }

// ownerOf returns the owner part of a row key: the bytes before the first 0x00, or all bytes if there is none. Keys of
// input records contain no 0x00, so their owner part is the whole key.
func ownerOf(key []byte) []byte {
	if i := bytes.IndexByte(key, 0); i >= 0 {
		return key[:i]
	}
	return key
}

// NewHasher returns the hash for Goka's processors, views and emitters: the masked murmur2 of the owner part of the written
// bytes. Goka converts the sum to an int32 and negates a negative value, whereas Kafka masks it. The sign is masked here
// already, so both compute the same partition.
func NewHasher() hash.Hash32 { return &hasher{} }

// ByOwner returns the partitioner of every producer that does not choose partitions explicitly. It ignores
// Record.Partition.
func ByOwner() kgo.Partitioner {
	return kgo.BasicConsistentPartitioner(func(string) func(*kgo.Record, int) int {
		return func(r *kgo.Record, n int) int { return int(PartitionBytes(ownerOf(r.Key), int32(n))) }
	})
}

type hasher struct{ key []byte }

func (h *hasher) Write(p []byte) (int, error) {
	h.key = append(h.key, p...)
	return len(p), nil
}

func (h *hasher) Sum32() uint32 { return masked(ownerOf(h.key)) }

func (h *hasher) Sum(b []byte) []byte { return binary.BigEndian.AppendUint32(b, h.Sum32()) }

func (h *hasher) Reset() { h.key = h.key[:0] }

func (h *hasher) Size() int { return 4 }

func (h *hasher) BlockSize() int { return 4 }

func masked(key []byte) uint32 { return murmur2(key) & 0x7fffffff }

// murmur2 is org.apache.kafka.common.utils.Utils.murmur2: Austin Appleby's MurmurHash2, 32 bits, with Kafka's seed.
func murmur2(b []byte) uint32 {
	const (
		seed = 0x9747b28c
		m    = 0x5bd1e995
		r    = 24
	)
	h := seed ^ uint32(len(b))
	for ; len(b) >= 4; b = b[4:] {
		k := binary.LittleEndian.Uint32(b) * m
		k ^= k >> r
		h = h*m ^ k*m
	}
	switch len(b) {
	case 3:
		h ^= uint32(b[2]) << 16
		fallthrough
	case 2:
		h ^= uint32(b[1]) << 8
		fallthrough
	case 1:
		h = (h ^ uint32(b[0])) * m
	}
	h ^= h >> 13
	h *= m
	return h ^ h>>15
}
