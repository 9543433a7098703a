// Package zeros produces batches that are small on the wire and huge when decompressed, for tests of readers.
package zeros

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Produce writes a batch of one record to a partition, and returns the record's offset. The record has no key, and its
// value has the given number of zeros, which gzip compresses a thousandfold. Produce bypasses the client's producer, which
// rejects such a batch.
func Produce(ctx context.Context, client *kgo.Client, topic string, partition int32, bytes int) (int64, error) {
	value := binary.AppendVarint([]byte{1}, int64(bytes)) // no key
	return record{value, []byte{0}, bytes}.produce(ctx, client, topic, partition)
}

// ProduceHeaders is Produce for a record with neither key nor value and the given number of empty headers, of two bytes
// each.
func ProduceHeaders(ctx context.Context, client *kgo.Client, topic string, partition int32, headers int) (int64, error) {
	return record{binary.AppendVarint([]byte{1, 1}, int64(headers)), nil, 2 * headers}.produce(ctx, client, topic, partition)
}

// record is an encoded record without its first three fields: head, a number of zeros, and tail.
type record struct {
	head, tail []byte
	zeros      int
}

// produce writes a batch of r to a partition, and returns the offset.
func (r record) produce(ctx context.Context, client *kgo.Client, topic string, partition int32) (int64, error) {
	meta, err := kadm.NewClient(client).Metadata(ctx, topic)
	if err != nil {
		return 0, fmt.Errorf("produce zeros: %w", err)
	}
	batch, err := r.batch()
	if err != nil {
		return 0, fmt.Errorf("produce zeros: %w", err)
	}
	rp := kmsg.NewProduceRequestTopicPartition()
	rp.Partition, rp.Records = partition, batch
	rt := kmsg.NewProduceRequestTopic()
	rt.Topic, rt.TopicID, rt.Partitions = topic, meta.Topics[topic].ID, append(rt.Partitions, rp)
	req := kmsg.NewPtrProduceRequest()
	req.Acks, req.TimeoutMillis, req.Topics = -1, 10_000, append(req.Topics, rt)
	answer, err := client.Broker(int(meta.Topics[topic].Partitions[partition].Leader)).Request(ctx, req)
	if err != nil {
		return 0, fmt.Errorf("produce zeros: %w", err)
	}
	for _, t := range answer.(*kmsg.ProduceResponse).Topics {
		for _, p := range t.Partitions {
			return p.BaseOffset, kerr.ErrorForCode(p.ErrorCode)
		}
	}
	return 0, errors.New("produce zeros: the response has no partition")
}

// batch returns the encoded batch.
func (r record) batch() ([]byte, error) {
	records, err := r.compressed()
	now := time.Now().UnixMilli()
	b := kmsg.RecordBatch{
		Magic: 2, Attributes: 1, FirstTimestamp: now, MaxTimestamp: now, ProducerID: -1, ProducerEpoch: -1, FirstSequence: -1,
		NumRecords: 1, Records: records,
	}
	b.Length = int32(len(b.AppendTo(nil)) - 12) // of the fields after it
	b.CRC = int32(crc32.Checksum(b.AppendTo(nil)[21:], crc32.MakeTable(crc32.Castagnoli)))
	return b.AppendTo(nil), err
}

// compressed returns the record, compressed with gzip.
func (r record) compressed() ([]byte, error) {
	head := append([]byte{0, 0, 0}, r.head...) // attributes, timestamp delta, offset delta
	length := binary.AppendVarint(nil, int64(len(head)+r.zeros+len(r.tail)))
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	_, err := z.Write(append(length, head...))
	piece := make([]byte, 1<<20)
	for left := r.zeros; left > 0 && err == nil; left -= len(piece) {
		_, err = z.Write(piece[:min(left, len(piece))])
	}
	if err == nil {
		_, err = z.Write(r.tail)
	}
	err = errors.Join(err, z.Close())
	return out.Bytes(), err
}
