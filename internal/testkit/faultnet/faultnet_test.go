package faultnet_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/faultnet"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/topics"
)

func newAdmin(t *testing.T, n *faultnet.Net) (*kadm.Client, topics.Kafka) {
	t.Helper()
	c := must.Get(kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "t")))(t)
	t.Cleanup(c.Close)
	k := topics.Kafka{Brokers: c.ListenAddrs(), Dial: n.Dial}
	admin := must.Get(k.Admin())(t)
	t.Cleanup(admin.Close)
	return admin, k
}

func TestCut_LosesOnlyResponses(t *testing.T) {
	n := faultnet.New()
	admin, k := newAdmin(t, n)
	client := must.Get(k.Client(kgo.RecordPartitioner(kgo.ManualPartitioner())))(t)
	defer client.Close()
	n.Cut(kmsg.Produce, 2)
	const records = 6
	for range records { // the producer retries records without a response, and the broker deduplicates them
		must.OK(t, client.ProduceSync(t.Context(), &kgo.Record{Topic: "t"}).FirstErr())
	}
	ends := must.Get(admin.ListEndOffsets(t.Context(), "t"))(t)
	end, _ := ends.Lookup("t", 0)
	expect.Equal(t, end.Offset, records, "end of the log")
	expect.AtLeast(t, n.Hits(kmsg.Produce), records/2, "lost responses")
	expect.Equal(t, n.Hits(kmsg.ListOffsets), 0, "lost responses of another kind")
}

func TestAlter_ChangesOnlyResponses(t *testing.T) {
	n := faultnet.New()
	admin, _ := newAdmin(t, n)
	n.Alter(kmsg.CreateTopics, 1, func(resp kmsg.Response) {
		resp.(*kmsg.CreateTopicsResponse).Topics[0].ErrorCode = kerr.PolicyViolation.Code
	})
	made, err := admin.CreateTopics(t.Context(), 1, 1, nil, "made")
	if err != nil || !errors.Is(made["made"].Err, kerr.PolicyViolation) {
		t.Errorf("got response %+v, %v; want the altered one", made, err)
	}
	if list, err := admin.ListTopics(t.Context(), "made"); err != nil || list["made"].Err != nil {
		t.Errorf("got topics %v, %v; want the created topic", list, err)
	}
	expect.Equal(t, n.Hits(kmsg.CreateTopics), 1, "altered responses")
}

func TestHold_BlocksTrafficUntilRelease(t *testing.T) {
	n := faultnet.New()
	admin, _ := newAdmin(t, n)
	must.Get(admin.ListTopics(t.Context()))(t)
	n.Hold()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	expect.Fails(t, expect.ErrorOf(admin.ListEndOffsets(ctx, "t")), "request while traffic is held")
	done := make(chan error, 1)
	go func() {
		_, err := admin.ListEndOffsets(t.Context(), "t")
		done <- err
	}()
	select {
	case err := <-done:
		t.Errorf("got a response while traffic is held: %v", err)
	case <-time.After(20 * time.Millisecond):
	}
	n.Release()
	expect.Error(t, <-done, "", "after Release")
}
