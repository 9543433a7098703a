package pinot

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/smartfeed/smartfeed/topics"
)

// Name is what Pinot is called among those that read actions.
const Name = "pinot"

// NewOutsider returns Pinot's servers as an outsider of the enriched actions. It fails as NewAdmin does.
func NewOutsider(cfg Config) (topics.Outsider, error) {
	a, err := NewAdmin(cfg)
	if err != nil {
		return topics.Outsider{}, err
	}
	return topics.Outsider{Name: Name, Topic: topics.ActionsEnriched, Reached: a.Reached}, nil
}

// reachedTimeout bounds one question how far Pinot is: the controller asks all servers for it.
const reachedTimeout = 5 * time.Second

// Reached asks the controller how far the servers are: of each partition of the topic the offset of the record that they
// take next. A server moves it on when a record is indexed, or skipped as bad or as taken before, and a query sees what is
// indexed: below it every record is in the answers of that server. Of several replicas, and of a segment that ends beside
// the one that begins, the least counts; a replica whose server does not answer the controller is left out while another
// one does. It is not promised that brokers ask the servers yet: of a table that was just made, and of a segment that was
// just begun, they hear from ZooKeeper, mostly within the second.
//
// It fails when the controller does not answer within five seconds, has no such table, or no server says how far it is
// with a segment.
func (a *Admin) Reached(ctx context.Context) (map[int32]int64, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, reachedTimeout, fmt.Errorf("the controller does not answer within %s", reachedTimeout))
	defer cancel()
	text, err := a.call(ctx, http.MethodGet, "/tables/"+TableName+"/consumingSegmentsInfo", nil)
	if errors.Is(err, errAbsent) {
		err = fmt.Errorf(`table %s %w: "smartfeed pinot apply" makes it`, TableName, err)
	}
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("ask how far pinot is: %w", err)
	}
	reached, err := offsetsOf(text)
	if err != nil {
		return nil, fmt.Errorf("read how far pinot is: %w", err)
	}
	return reached, nil
}

// consuming is the controller's answer about the segments that are being filled, as far as it matters.
type consuming struct {
	Segments map[string][]replica `json:"_segmentToConsumingInfoMap"` // with the underscore, in all releases
	Silent   int                  `json:"serversFailingToRespond"`    // 1.0 and later
}

// replica is how far one server is with a segment, by partition.
type replica struct {
	Offsets map[string]string `json:"partitionToOffsetMap"`
	Info    struct {
		Offsets map[string]string `json:"currentOffsetsMap"`
	} `json:"partitionOffsetInfo"` // 1.0 and later, which call the other one out of date
}

func (r replica) offsets() map[string]string {
	if len(r.Info.Offsets) > 0 {
		return r.Info.Offsets
	}
	return r.Offsets
}

// offsetsOf reads the least offset of each partition.
func offsetsOf(text []byte) (map[int32]int64, error) {
	var found consuming
	if err := json.Unmarshal(text, &found); err != nil {
		return nil, err
	}
	if len(found.Segments) == 0 {
		return nil, errors.New("no segment is being filled: has consumption been paused?")
	}
	least := map[int32]int64{}
	for segment, replicas := range found.Segments {
		if len(replicas) == 0 {
			return nil, fmt.Errorf("no server says how far it is with segment %s, %d do not answer the controller", segment, found.Silent)
		}
		for _, r := range replicas {
			if err := r.lower(least); err != nil {
				return nil, fmt.Errorf("segment %s: %w", segment, err)
			}
		}
	}
	return least, nil
}

// lower takes over what is less than the least so far.
func (r replica) lower(least map[int32]int64) error {
	for partition, offset := range r.offsets() {
		p, err := strconv.ParseInt(partition, 10, 32)
		at, errAt := strconv.ParseInt(offset, 10, 64)
		if err := errors.Join(err, errAt); err != nil {
			return err
		}
		if so, ok := least[int32(p)]; !ok || at < so {
			least[int32(p)] = at
		}
	}
	return nil
}
