package pools_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/smartfeed/smartfeed/processors/pools"
	"github.com/smartfeed/smartfeed/processors/proctest"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

const reader schemas.UserID = "user:reader"

// modes returns what followees were told, in order.
func (r *rig) modes(followee string) []schemas.EdgeMode {
	r.t.Helper()
	var list []schemas.EdgeMode
	for _, rec := range proctest.Drain(r.Wire, r.Streams.EdgeModes) {
		if rec.Key == followee {
			list = append(list, *rec.Value)
		}
	}
	return list
}

// ask asks for a chunk, once the partition is here.
func (r *rig) ask(id string, returned bool) *schemas.Chunk {
	r.t.Helper()
	r.Eventually("the partition", func() bool { return r.member.Owns(topics.Pools, string(reader)) })
	ctx, cancel := context.WithTimeout(r.t.Context(), proctest.Patience)
	defer cancel()
	chunk, err := r.generator.Chunk(ctx, schemas.ChunkRequest{
		Served: id, User: reader, Feed: "plain", Limit: 10, Time: schemas.MicrosOf(time.Now()), Returned: returned,
	})
	if err != nil {
		r.t.Fatal(err)
	}
	r.generator.Settle(reader, id, schemas.Failed) // nothing of it is shown
	return chunk
}

// answer delivers what a followee brings to one who came back.
func (r *rig) answer(asked schemas.Micros, pins ...schemas.DeliveredPin) {
	d := &schemas.Delivery{Source: schemas.Following, Pins: pins, Users: []schemas.UserID{reader}, Asked: asked}
	proctest.PublishTo(r.Wire, r.Streams.Deliveries, topics.Partition(string(reader), r.Kafka.Partitions), "user:x", time.Time{}, d)
}

// A reader who does not visit is away: the followees are told. A visit finds that out, the return is announced, every
// followee is asked, and the chunk waits for the last answer, or says that it could not.
func TestReaderGoesAwayAndComesBack(t *testing.T) {
	t.Parallel()
	const away = 5 * time.Second // so long may a busy machine take for what follows the return
	r := newRig(t, pools.Config{Cap: 100, Sources: 3, SeenCap: 1000, Frozen: 100, AwayAfter: away})
	began := time.Now()
	r.edge(reader, schemas.FollowEdge, "user:a", true)
	r.edge(reader, schemas.FollowEdge, "board:b", true)
	r.edge(reader, schemas.FollowEdge, "user:former", true)
	r.edge(reader, schemas.FollowEdge, "user:former", false)
	r.WaitIdle()
	if r.ask("present", false).Away && time.Since(began) < away { // a busy machine takes longer for all this
		t.Error("one who has just begun is away")
	}
	r.Eventually("both followees are told", func() bool { return len(r.modes("user:a")) > 0 && len(r.modes("board:b")) > 0 })
	r.edge(reader, schemas.FollowEdge, "user:late", true) // followed while away
	r.WaitIdle()
	for _, followee := range []string{"user:a", "board:b", "user:late"} {
		want := []schemas.EdgeMode{{Followee: schemas.Followee(followee), User: reader, Away: true}}
		got := r.modes(followee)
		for i := range got {
			got[i].Asked = 0
		}
		if diff := gocmp.Diff(want, got); diff != "" {
			t.Errorf("told to %s (-want +got):\n%s", followee, diff)
		}
	}
	if got := r.modes("user:former"); len(got) > 0 {
		t.Errorf("told to one who is not followed: %v", got)
	}

	r.deliver(schemas.Following, reader, 1, pin(1, 10, "user:a"))
	r.WaitIdle()
	if chunk := r.ask("away", false); !chunk.Away || len(chunk.Served.Items) > 0 {
		t.Errorf("away %v, items %v, want nothing before the return is announced", chunk.Away, chunk.Served.Items)
	}
	proctest.Publish(r.Wire, r.Streams.Returns, string(reader), &schemas.Return{User: reader, Time: 5})
	r.WaitIdle()
	asked := r.modes("user:a")[1].Asked
	for _, followee := range []string{"user:a", "board:b", "user:late"} {
		if got := r.modes(followee); len(got) != 2 || got[1].Away || got[1].Asked != asked || asked == 0 {
			t.Fatalf("asked of %s: %+v", followee, got)
		}
	}
	r.answer(asked-1, pin(2, 20, "user:a")) // to an earlier return
	r.answer(asked, pin(3, 30, "user:a"))
	r.answer(asked)
	r.WaitIdle()
	if chunk := r.ask("early", true); !slices.Equal(chunk.Degraded, []string{"returning"}) || len(chunk.Served.Items) != 3 {
		t.Errorf("degraded %v with %d items, want what is there, and that it is not all", chunk.Degraded, len(chunk.Served.Items))
	}

	r.patient()
	chunk := make(chan *schemas.Chunk)
	go func() { chunk <- r.ask("patient", true) }()
	p := pin(4, 40, "user:z")
	p.Board = "board:b"
	r.answer(asked, p)
	if c := <-chunk; len(c.Degraded) > 0 || len(c.Served.Items) != 4 {
		t.Errorf("degraded %v with %d items, want all four", c.Degraded, len(c.Served.Items))
	}
}

// patient makes a generator that waits as long as it takes for what followees bring.
func (r *rig) patient() {
	cfg := pools.DefaultGeneratorConfig()
	cfg.Welcome = time.Minute
	r.attachWith(cfg)
}

// keepVisiting says that the user is here, by a Served and by returns that show nothing in turn, for longer than one who does not
// come is held present.
func (r *rig) keepVisiting(user schemas.UserID, lasting time.Duration) {
	r.t.Helper()
	start := time.Now()
	for n := 0; time.Since(start) < lasting; n++ {
		if n%2 == 0 {
			r.serve(user, fmt.Sprint("s", n))
		} else {
			proctest.Publish(r.Wire, r.Streams.Returns, string(user), &schemas.Return{User: user})
		}
		next := start.Add(time.Duration(n+1) * 300 * time.Millisecond)
		r.Eventually("the next visit", func() bool { return time.Now().After(next) })
	}
	r.WaitIdle()
}

func (r *rig) serve(user schemas.UserID, id string) {
	r.t.Helper()
	proctest.Publish(r.Wire, r.Streams.Served, string(user), &schemas.Served{
		ID: id, User: user, Items: []schemas.ServedItem{{Pin: schemas.PinID("pin:" + id), Source: schemas.Following}},
	})
}

// Whoever visits stays: a Served counts, and so does a return that shows nothing. A Served of one who is away is a
// return, too.
func TestVisitsKeepAReaderPresent(t *testing.T) {
	t.Parallel()
	const away = 2 * time.Second
	r := newRig(t, pools.Config{Cap: 100, Sources: 3, SeenCap: 1000, Frozen: 100, AwayAfter: away})
	var user schemas.UserID
	var followee string
	for attempt := range 6 { // a machine so busy that a visit takes two seconds to arrive makes people away
		if attempt == 5 {
			t.Fatalf("told of one who visits, five times: %v", r.modes(followee))
		}
		user, followee = schemas.UserID(fmt.Sprint("user:reader-", attempt)), fmt.Sprint("user:a-", attempt)
		r.edge(user, schemas.FollowEdge, schemas.ID(followee), true)
		r.keepVisiting(user, away*3/2)
		if len(r.modes(followee)) == 0 {
			break
		}
	}
	r.Eventually("the reader is away", func() bool { return len(r.modes(followee)) == 1 })
	r.serve(user, "back")
	r.WaitIdle()
	if got := r.modes(followee); len(got) < 2 || got[1].Away || got[1].Asked == 0 {
		t.Errorf("told of one who came back with a Served: %+v", got)
	}
}
