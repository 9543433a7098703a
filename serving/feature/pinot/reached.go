package pinot

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strconv"
	"time"

	"github.com/smartfeed/smartfeed/topics"
)

// Name is the name of Pinot as an external consumer.
const Name = "pinot"

// NewExternalConsumers returns Pinot's servers as an external consumer of each topic of the tables. It returns the errors
// of NewAdmin.
func NewExternalConsumers(cfg Config) (all []topics.ExternalConsumer, err error) {
	a, err := NewAdmin(cfg)
	if err != nil {
		return nil, err
	}
	add := func(topic string, tables ...string) {
		reached := func(ctx context.Context) (map[int32]int64, error) { return a.Reached(ctx, tables...) }
		all = append(all, topics.ExternalConsumer{Name: Name, Topic: topic, Reached: reached})
	}
	add(topics.ActionsEnriched, TableName, SequencesTable)
	add(topics.ItemFeatures, CountsTable, MeansTable)
	add(topics.PinAttributes, PinsTable)
	return all, nil
}

// reachedTimeout limits a request for the offsets. The controller queries all servers.
const reachedTimeout = 5 * time.Second

// Reached requests from the controller the offset of the next record, for each partition of a topic that the tables read. A server advances the
// offset when a record has been indexed, or skipped as invalid or duplicate. Queries see indexed records, so the
// answers of that server contain every record below the offset. Of several tables and replicas, and of a segment that ends
// while the next one starts, the lowest offset counts. A replica whose server does not respond to the controller is ignored
// if another one responds.
//
// Brokers may not query the servers yet. They receive a new table or a new segment from ZooKeeper, usually within a
// second.
//
// Reached returns an error if the controller does not respond within five seconds or has no table of the topic, or if no server
// reports an offset for a segment.
func (a *Admin) Reached(ctx context.Context, tables ...string) (least map[int32]int64, err error) {
	for _, table := range tables {
		reached, err := a.reached(ctx, table)
		if err != nil {
			return nil, err
		}
		if least == nil {
			least = reached
		}
		maps.DeleteFunc(least, func(p int32, _ int64) bool { _, begun := reached[p]; return !begun })
		for p, at := range least {
			least[p] = min(at, reached[p])
		}
	}
	return least, nil
}

// reached returns the offsets of one table.
func (a *Admin) reached(ctx context.Context, table string) (map[int32]int64, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, reachedTimeout, fmt.Errorf("the controller does not answer within %s", reachedTimeout))
	defer cancel()
	text, err := a.call(ctx, http.MethodGet, "/tables/"+table+"/consumingSegmentsInfo", nil)
	if errors.Is(err, errAbsent) {
		err = fmt.Errorf(`table %s %w: "smartfeed pinot apply" creates it`, table, err)
	}
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("request the offsets of pinot: %w", err)
	}
	reached, err := offsetsOf(text)
	if err != nil {
		return nil, fmt.Errorf("read the offsets of pinot: %w", err)
	}
	return reached, nil
}

// consuming is the relevant part of the controller's response about consuming segments.
type consuming struct {
	Segments map[string][]replica `json:"_segmentToConsumingInfoMap"` // with the underscore, in all releases
	Silent   int                  `json:"serversFailingToRespond"`    // 1.0 and later
}

// replica has the offsets of one server in a segment, by partition.
type replica struct {
	Offsets map[string]string `json:"partitionToOffsetMap"`
	Info    struct {
		Offsets map[string]string `json:"currentOffsetsMap"`
	} `json:"partitionOffsetInfo"` // 1.0 and later, where the older field may be outdated
}

func (r replica) offsets() map[string]string {
	if len(r.Info.Offsets) > 0 {
		return r.Info.Offsets
	}
	return r.Offsets
}

// offsetsOf reads the lowest offset of each partition.
func offsetsOf(text []byte) (map[int32]int64, error) {
	var found consuming
	if err := json.Unmarshal(text, &found); err != nil {
		return nil, err
	}
	if len(found.Segments) == 0 {
		return nil, errors.New("no segment is consuming: consumption may be paused")
	}
	least := map[int32]int64{}
	for segment, replicas := range found.Segments {
		if len(replicas) == 0 {
			return nil, fmt.Errorf("no server reports an offset of segment %s; %d servers do not answer the controller", segment, found.Silent)
		}
		for _, r := range replicas {
			if err := r.lower(least); err != nil {
				return nil, fmt.Errorf("segment %s: %w", segment, err)
			}
		}
	}
	return least, nil
}

// lower sets the entries of least to the replica's offsets where these are lower.
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
