package topicstest

import (
	"sync/atomic"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// FailProduce makes produce requests for only the given partition fail with an error code of Kafka. It returns the
// number of failed requests.
func FailProduce(b *kfake.Cluster, partition int32, code int16) *atomic.Int64 {
	var hits atomic.Int64
	b.ControlKey(int16(kmsg.Produce), func(kreq kmsg.Request) (kmsg.Response, error, bool) {
		b.KeepControl()
		req := kreq.(*kmsg.ProduceRequest)
		for _, rt := range req.Topics {
			for _, rp := range rt.Partitions {
				if rp.Partition != partition || len(rt.Partitions) != 1 || len(req.Topics) != 1 {
					continue
				}
				hits.Add(1)
				sp := kmsg.NewProduceResponseTopicPartition()
				sp.Partition, sp.ErrorCode = partition, code
				st := kmsg.NewProduceResponseTopic()
				st.Topic, st.TopicID, st.Partitions = rt.Topic, rt.TopicID, append(st.Partitions, sp)
				resp := req.ResponseKind().(*kmsg.ProduceResponse)
				resp.Topics = append(resp.Topics, st)
				return resp, nil, true
			}
		}
		return nil, nil, false
	})
	return &hits
}
