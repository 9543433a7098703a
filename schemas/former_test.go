package schemas

import (
	"regexp"
	"testing"
)

// formerImpression is the schema of impressions when each had its own record.
const formerImpression = `{"type": "record", "name": "Impression", "namespace": "smartfeed", "fields": [
  {"name": "pin", "type": "string"}, {"name": "user", "type": "string"}, {"name": "source", "type": "string"},
  {"name": "time", "type": {"type": "long", "logicalType": "timestamp-micros"}}]}`

// formerFeedEntry is the schema of feed entries when each had its own record.
const formerFeedEntry = `{"type": "record", "name": "FeedEntry", "namespace": "smartfeed", "fields": [
  {"name": "user", "type": "string"}, {"name": "position", "type": "long"},
  {"name": "time", "type": {"type": "long", "logicalType": "timestamp-micros"}},
  {"name": "pin", "type": "string"}, {"name": "source", "type": "string"}, {"name": "author", "type": "string", "default": ""},
  {"name": "board", "type": "string", "default": ""}, {"name": "interests", "type": {"type": "array", "items": "string"}, "default": []},
  {"name": "score", "type": "double"}, {"name": "created", "type": {"type": "long", "logicalType": "timestamp-micros"}}]}`

// A record of an older version is read as a list of one.
func TestFormerRecords(t *testing.T) {
	t.Run("Impression", func(t *testing.T) {
		want := Impressions{User: "user:1", Time: 7, ShownPin: ShownPin{Pin: "pin:1", Source: Related}}
		checkFormer(t, formerImpression, framed(9, "pin:1", "user:1", "related", 7), want)
	})
	t.Run("FeedEntry", func(t *testing.T) {
		item := ServedItem{Pin: "pin:1", Source: Related, Facets: Facets{Author: "user:a", Interests: []InterestID{"interest:x"}}, Created: 5}
		value := framed(9, "user:1", 3, 7, "pin:1", "related", "user:a", "", 1, "interest:x", 0, make([]byte, 8), 5)
		checkFormer(t, formerFeedEntry, value, *FeedEntriesOf("user:1", 7, 3, []ServedItem{item}))
	})
}

// An older version cannot read current records as one entry: it rejects them, and they become dead letters.
func TestFormerReadersRefuseFeedEntries(t *testing.T) {
	present, err := Schema[FeedEntries]()
	if err != nil {
		t.Fatal(err)
	}
	if CheckBackward(formerFeedEntry, present) == nil {
		t.Error("the former schema reads the present one")
	}
}

// Versions with and without the pool of an explored item can read each other's records.
func TestRecordsWithoutPools(t *testing.T) {
	for name, schema := range map[string]func() (string, error){"Served": Schema[Served], "FeedEntries": Schema[FeedEntries]} {
		present, err := schema()
		if err != nil {
			t.Fatal(err)
		}
		former := regexp.MustCompile(`,\s*\{"name": "pool", [^}]*\}`).ReplaceAllString(present, "")
		if former == present {
			t.Fatalf("%s has no pool", name)
		}
		if err := CheckBackward(present, former); err != nil {
			t.Errorf("%s, the present reads the former: %v", name, err)
		}
		if err := CheckBackward(former, present); err != nil {
			t.Errorf("%s, the former reads the present: %v", name, err)
		}
	}
}

// checkFormer decodes a value of an older schema. The current schema must be able to read any value of it.
func checkFormer[T any](t *testing.T, former string, value []byte, want T) {
	t.Helper()
	present, err := Schema[T]()
	if err != nil {
		t.Fatal(err)
	}
	if err := CheckBackward(present, former); err != nil {
		t.Errorf("check: %v", err)
	}
	got, err := serdeOf[T](t, texts{9: former}).Decode(value)
	if err != nil {
		t.Fatal(err)
	}
	if diff := sameRecord(&want, got); diff != "" {
		t.Errorf("decoded (-want +got):\n%s", diff)
	}
}
