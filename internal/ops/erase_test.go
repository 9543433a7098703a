package ops

import (
	"reflect"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/internal/testkit/topicstest"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// recordTypes returns the types of records by name.
func recordTypes() map[string]reflect.Type {
	byName := map[string]reflect.Type{}
	for _, stream := range reflect.VisibleFields(reflect.TypeFor[topics.Streams]()) {
		if decode, ok := stream.Type.MethodByName("Decode"); ok {
			record := decode.Type.Out(0).Elem()
			byName[record.Name()] = record
		}
	}
	return byName
}

// canContainUser reports whether records of a type can contain a user id, also in the bytes of another record.
func canContainUser(t reflect.Type) bool {
	named := []reflect.Type{
		reflect.TypeFor[schemas.UserID](), reflect.TypeFor[schemas.Followee](), reflect.TypeFor[schemas.ID](), reflect.TypeFor[[]byte](),
	}
	if slices.Contains(named, t) {
		return true
	}
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array:
		return canContainUser(t.Elem())
	case reflect.Map:
		return canContainUser(t.Key()) || canContainUser(t.Elem())
	case reflect.Struct:
		return slices.ContainsFunc(reflect.VisibleFields(t), func(f reflect.StructField) bool { return canContainUser(f.Type) })
	}
	return false
}

// An erasure reports every topic that may contain data of the user.
func TestCatalogue_DeclaresPersonalDataOfEachTopic(t *testing.T) {
	types := recordTypes()
	for _, topic := range topics.Catalogue(topics.Profile{}) {
		if topic.Record == "" {
			continue
		}
		record := types[topic.Record]
		if record == nil {
			t.Errorf("topic %s: unknown record type %q", topic.Name, topic.Record)
			continue
		}
		expect.False(t, canContainUser(record) && topic.Personal == "", "topic %s: a %s can contain a user id", topic.Name, topic.Record)
	}
}

// Kafka retains forever only the inputs of rebuilds and the record of the deletion.
func TestRemains_KeepForeverOnlyInputs(t *testing.T) {
	forever := []string{topics.Pins, topics.Follows, topics.Users, topics.UsersDeleted}
	for _, topic := range topics.Catalogue(topics.Profile{}) {
		if topic.Personal == "" {
			continue
		}
		ms := strconv.FormatInt(topic.Retention.Milliseconds(), 10)
		if topic.Retention == 0 {
			ms = "-1"
		}
		r := remainOf(topic, []kadm.Config{{Key: "retention.ms", Value: &ms}}, time.Now())
		expect.Equal(t, r.Until == nil && r.Note == "", slices.Contains(forever, topic.Name), "%+v, forever", r)
	}
}

func TestEraser_RecordsOperator(t *testing.T) {
	c := topicstest.Start(t, 0)
	must.OK(t, (Eraser{Setup: c.Setup(), Streams: c.Streams, Operator: "ann@host"}).publish(t.Context(), "user:7"))
	got := c.Records(topics.Users)
	must.Equal(t, len(got), 1, "records of users")
	expect.NoDiff(t, got[0].Headers, []kgo.RecordHeader{{Key: topics.OperatorHeader, Value: []byte("ann@host")}}, "headers")
}

// If the registry is unavailable, a deletion may be missing, so a user does not count as not deleted.
func TestDeletedAt_FailsWhenRegistryIsUnavailable(t *testing.T) {
	c := topicstest.Start(t, 0)
	deleted := must.Get(c.Streams.UsersDeleted.Encode(&schemas.DeletedUser{User: "user:7", Time: 1}))(t)
	c.Send(&kgo.Record{Topic: topics.UsersDeleted, Key: []byte("user:7"), Value: topicstest.ByOtherWriter(deleted)})
	_, err := Eraser{Setup: c.Setup(), Streams: c.WithoutRegistry()}.deletedAt(t.Context(), c.Log(), "user:7")
	expect.Is(t, err, schemas.ErrRegistryUnavailable, "deletedAt")
}
