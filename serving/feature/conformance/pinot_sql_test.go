package conformance

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/serving/feature"
)

// documented is the page whose queries run on a real Pinot.
const documented = "../../../docs/how-to/query-pinot.md"

// example is a query of the page with its result.
var example = regexp.MustCompile("(?s)```sql\n(.*?)\n```\n\n```text\n(.*?)\n```")

// documentedData returns the data that the results on the page describe.
func documentedData(now time.Time) feature.Batch {
	vase := schemas.PinAttributes{Pin: "pin:vase", Version: 2, Attributes: map[string]string{"price": "20"}, Embedding: []float32{0.5, 2}}
	vase.Author, vase.Interests = "user:grace", []schemas.InterestID{"interest:ceramics", "interest:home"}
	lamp := schemas.PinAttributes{Pin: "pin:lamp", Version: 1, Attributes: map[string]string{"price": "60"}}
	lamp.Author, lamp.Interests = "user:alan", []schemas.InterestID{"interest:home"}
	old := vase
	old.Version, old.Attributes = 1, map[string]string{"price": "25"}
	ago := func(hours int) schemas.Micros { return schemas.MicrosOf(now.Add(-time.Duration(hours) * time.Hour)) }
	action := func(hours int, verb schemas.Verb, on schemas.PinAttributes) *schemas.EnrichedAction {
		return &schemas.EnrichedAction{
			ID: fmt.Sprint("documented-", hours), Actor: "user:ada", Verb: verb, Object: schemas.ID(on.Pin), Timestamp: ago(hours),
			ObjectAttributes: schemas.ObjectAttributes{Facets: on.Facets, Attributes: on.Attributes},
		}
	}
	counts := func(pin schemas.PinID, hours int, of map[string]int64) *schemas.ItemCounts {
		return &schemas.ItemCounts{Pin: pin, Start: ago(hours) / schemas.ItemStep * schemas.ItemStep, Counts: of}
	}
	return feature.Batch{
		Actions: []*schemas.EnrichedAction{
			action(1, schemas.Save, vase), action(2, schemas.Click, vase), action(3, schemas.View, lamp), action(4, schemas.Save, lamp),
		},
		Pins: []*schemas.PinAttributes{&vase, &old, &lamp, {Pin: "pin:rug", Version: 1, Deleted: true}},
		Counts: []*schemas.ItemCounts{
			counts("pin:vase", 1, map[string]int64{"save": 1}), counts("pin:vase", 1, map[string]int64{"save": 2, "impression": 10}),
			counts("pin:vase", 5, map[string]int64{"save": 1, "impression": 30}), counts("pin:vase", 30, map[string]int64{"save": 9}),
			counts("pin:lamp", 1, map[string]int64{"save": 1, "impression": 10}),
		},
	}
}

// documentedQueries runs the queries of the page on otherwise empty tables. It returns the ids of the actions.
func (c *cluster) documentedQueries(t *testing.T, now time.Time) map[string]bool {
	t.Helper()
	data, ids := documentedData(now), map[string]bool{}
	for _, a := range data.Actions {
		ids[a.ID] = true
	}
	c.produceBatch(t, data)
	c.await(t, len(ids))
	page := must.Get(os.ReadFile(documented))(t)
	examples := example.FindAllStringSubmatch(string(page), -1)
	if n := strings.Count(string(page), "```sql"); n < 10 || n != len(examples) {
		t.Errorf("%d queries, %d of them with a result, want at least ten, all with one", n, len(examples))
	}
	for _, e := range examples {
		expect.Equal(t, c.sql(t, e[1]), e[2], "%s", e[1])
	}
	return ids
}

// sql runs a query, and returns one line of text per row.
func (c *cluster) sql(t *testing.T, query string) string {
	t.Helper()
	request := must.Get(json.Marshal(map[string]string{"sql": query}))(t)
	body := must.Get(call(t.Context(), http.MethodPost, c.broker+"/query/sql", string(request)))(t)
	var found struct {
		Exceptions  []struct{ Message string }
		ResultTable struct{ Rows [][]any }
	}
	must.OK(t, json.Unmarshal(body, &found))
	if len(found.Exceptions) > 0 {
		return found.Exceptions[0].Message
	}
	var lines []string
	for _, row := range found.ResultTable.Rows {
		lines = append(lines, strings.TrimSuffix(fmt.Sprintln(row...), "\n"))
	}
	return strings.Join(lines, "\n")
}
