package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/schemas"
)

// Rows as Debezium writes them.
const (
	ada  = `{"id":"ada","interests":["tea"],"country":"GB","updated_at":"2026-11-20T10:00:00.5Z"}`
	edge = `{"follower":"ada","kind":"board","followee":"9","created_at":"2026-11-20T10:00:00Z"}`
	tea  = `{"id":"42","author":"bob","board":"9","interests":["tea","cups"],"title":"Gong fu","link":"https://tea.example","created_at":"2026-11-20T10:00:00Z","updated_at":"2026-11-20T10:00:00Z"}`
)

// record returns the record of a change that was committed on 20 November 2026 at 11:00.
func record(table, op, before, after string) *kgo.Record {
	value := fmt.Sprintf(`{"before":%s,"after":%s,"op":%q,"source":{"lsn":26,"ts_us":1795172400000000,"table":%q}}`, before, after, op, table)
	return &kgo.Record{Topic: "shop.public." + table, Value: []byte(value)}
}

var arrival = schemas.MicrosOf(time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC))

func TestEventsOf_MapsChanges(t *testing.T) {
	const card = `"board":"board:9","interests":["interest:tea","interest:cups"],"title":"Gong fu","link":"https://tea.example"`
	changed := strings.Replace(tea, `"updated_at":"2026-11-20T10`, `"updated_at":"2026-11-20T11`, 1)
	for _, c := range []struct {
		name   string
		record *kgo.Record
		want   []string
	}{
		{"inserted user", record("users", "c", "null", ada), []string{
			`{"stream":"users","id":"user:ada@000000000000001a","time":1795172400000000,"actor":"user:ada","verb":"update","object":"user:ada","interests":["interest:tea"],"attributes":{"country":"GB"}}`}},
		{"user in a snapshot", record("users", "r", "null", ada), []string{
			`{"stream":"users","id":"user:ada@1795168800500000","time":1795168800500000,"actor":"user:ada","verb":"update","object":"user:ada","interests":["interest:tea"],"attributes":{"country":"GB"}}`}},
		{"deleted user", record("users", "d", `{"id":"ada"}`, "null"), []string{
			`{"stream":"users","id":"user:ada@000000000000001a","time":1795172400000000,"actor":"user:ada","verb":"delete","object":"user:ada","attributes":{"country":""}}`}},
		{"inserted follow", record("follows", "c", "null", edge), []string{
			`{"stream":"follows","id":"ada>board:9@000000000000001a","time":1795172400000001,"actor":"user:ada","verb":"follow","object":"board:9"}`}},
		{"follow in a snapshot", record("follows", "r", "null", edge), []string{
			`{"stream":"follows","id":"ada>board:9@1795168800000000","time":1795168800000001,"actor":"user:ada","verb":"follow","object":"board:9"}`}},
		{"deleted follow", record("follows", "d", edge, "null"), []string{
			`{"stream":"follows","id":"ada>board:9@000000000000001a","time":1795172400000000,"actor":"user:ada","verb":"unfollow","object":"board:9"}`}},
		{"inserted pin", record("pins", "c", "null", tea), []string{
			`{"stream":"pins","id":"pin:42@create","time":1795168800000000,"actor":"user:bob","verb":"create","object":"pin:42",` + card + `}`}},
		{"updated pin", record("pins", "u", tea, changed), []string{
			`{"stream":"pins","id":"pin:42@create","time":1795168800000000,"actor":"user:bob","verb":"create","object":"pin:42",` + card + `}`,
			`{"stream":"pins","id":"pin:42@000000000000001a","time":1795172400000000,"actor":"user:bob","verb":"update","object":"pin:42",` + card + `}`}},
		{"deleted pin", record("pins", "d", tea, "null"), []string{
			`{"stream":"pins","id":"pin:42@000000000000001a","time":1795172400000000,"actor":"user:bob","verb":"delete","object":"pin:42",` + card + `}`}},
		{"unchanged pin in a snapshot", record("pins", "r", "null", tea), []string{
			`{"stream":"pins","id":"pin:42@create","time":1795168800000000,"actor":"user:bob","verb":"create","object":"pin:42",` + card + `}`}},
		{"changed pin in a snapshot", record("pins", "r", "null", changed), []string{
			`{"stream":"pins","id":"pin:42@create","time":1795168800000000,"actor":"user:bob","verb":"create","object":"pin:42",` + card + `}`,
			`{"stream":"pins","id":"pin:42@1795172400000000","time":1795172400000000,"actor":"user:bob","verb":"update","object":"pin:42",` + card + `}`}},
		{"tombstone", &kgo.Record{Topic: "shop.public.pins"}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			lines := must.Get(eventsOf(c.record, arrival))(t)
			var got []string
			for _, l := range lines {
				got = append(got, string(must.Get(schemas.AppendLine(nil, l))(t)))
			}
			expect.Equal(t, strings.Join(got, "\n"), strings.Join(c.want, "\n"), "events")
		})
	}
}

func TestEventsOf_RejectsRows(t *testing.T) {
	for _, c := range []struct {
		name   string
		record *kgo.Record
		want   string
	}{
		{"not JSON", &kgo.Record{Topic: "shop.public.pins", Value: []byte("?")}, "read change: invalid character"},
		{"truncate", record("pins", "t", "null", "null"), `read row: op "t": want c, u, d or r`},
		{"another type", record("pins", "c", "null", `{"id":7}`), "read row: json: cannot unmarshal number"},
		{"partial row", record("pins", "u", "null", strings.Replace(tea, "Gong fu", "__debezium_unavailable_value", 1)), "set REPLICA IDENTITY FULL"},
		{"delete without author", record("pins", "d", `{"id":"42"}`, "null"), `actor: id "user:": no name`},
		{"time ahead", record("pins", "c", "null", strings.ReplaceAll(tea, "2026", "2027")), "time"},
		{"long title", record("pins", "c", "null", strings.Replace(tea, "Gong fu", strings.Repeat("x", 513), 1)), "title"},
	} {
		t.Run(c.name, func(t *testing.T) {
			expect.Error(t, expect.ErrorOf(eventsOf(c.record, arrival)), c.want, "eventsOf")
		})
	}
}

// The bridge has a mapping for each table of the connector, and the connector reads each mapped table.
func TestTables_MatchConnector(t *testing.T) {
	var file struct{ Config map[string]string }
	must.OK(t, json.Unmarshal(must.Get(os.ReadFile("connector.json"))(t), &file))
	list := strings.Split(file.Config["table.include.list"], ",")
	expect.Equal(t, len(list), len(tables), "tables of connector.json in %q", list)
	for _, table := range list {
		if tables[strings.TrimPrefix(table, "public.")] == nil {
			t.Errorf("table %s of connector.json has no mapping", table)
		}
	}
}
