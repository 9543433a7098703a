package pinot

import (
	"bytes"
	"cmp"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/serving/feature"
)

// controller is a fake that stores what it receives, and adds to a returned table what a real controller adds.
type controller struct {
	mu     sync.Mutex
	kept   map[string][]byte
	calls  []string
	broken bool
}

func (c *controller) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	body, _ := io.ReadAll(r.Body)
	switch {
	case c.broken:
		http.Error(w, "no quorum", http.StatusInternalServerError)
	case r.URL.Path == "/version":
		_, _ = io.WriteString(w, `{"pinot-kafka-2.0":"9","pinot-controller":"0.11.0-1b4d6b6b0a"}`)
	case r.Method == http.MethodGet && strings.HasPrefix(r.URL.Path, "/schemas/"):
		if c.kept[r.URL.Path] == nil {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write(c.kept[r.URL.Path])
	case r.Method == http.MethodGet:
		c.table(w, c.kept[r.URL.Path])
	default:
		c.calls = append(c.calls, r.Method+" "+r.URL.Path)
		var named struct{ SchemaName, TableName string }
		_ = json.Unmarshal(body, &named)
		c.kept["/"+strings.Split(r.URL.Path, "/")[1]+"/"+cmp.Or(named.SchemaName, named.TableName)] = body
	}
}

func (c *controller) table(w http.ResponseWriter, kept []byte) {
	if kept == nil {
		_, _ = io.WriteString(w, "{}")
		return
	}
	var table object
	_ = json.Unmarshal(kept, &table)
	table["tableName"], table["isDimTable"] = table["tableName"].(string)+"_REALTIME", false
	_ = json.NewEncoder(w).Encode(object{"REALTIME": table})
}

// setup returns a setup that reaches the controller.
func (c *controller) setup(t *testing.T) Setup {
	t.Helper()
	server := httptest.NewServer(c)
	t.Cleanup(server.Close)
	cfg := DefaultConfig()
	cfg.Controller = server.URL
	return Setup{Config: cfg, Kafka: []string{"kafka:1"}, Registry: "http://registry", Partitions: 4}
}

func TestSetup_ApplyThenVerify(t *testing.T) {
	c := &controller{kept: map[string][]byte{}}
	setup := c.setup(t)
	var missing, want []string
	for _, name := range Tables() {
		missing = append(missing, "schema "+name+": missing", "table "+name+": missing")
		want = append(want, "POST /schemas", "POST /tables")
	}
	for _, name := range Tables() {
		want = append(want, "PUT /schemas/"+name, "PUT /tables/"+name)
	}
	expect.NoDiff(t, must.Get(setup.Verify(t.Context()))(t), missing, "before")
	for range 2 {
		must.OK(t, setup.Apply(t.Context()))
	}
	expect.NoDiff(t, c.calls, want, "calls")
	expect.Equal(t, len(must.Get(setup.Verify(t.Context()))(t)), 0, "differences after")
	for path, change := range map[string][2]string{
		"/tables/" + CountsTable: {`"96"`, `"24"`}, "/schemas/" + TableName: {`"objectAuthor"`, `"author"`}, "/tables/" + PinsTable: {`"version"`, `"ts"`},
	} {
		c.kept[path] = bytes.Replace(c.kept[path], []byte(change[0]), []byte(change[1]), 1)
	}
	got, err := setup.Verify(t.Context())
	for _, want := range []string{
		"table pin_counts.segmentsConfig.retentionTimeValue: 24, want 96", "schema actions_enriched.dimensionFieldSpecs: objectAuthor is missing",
		"table pins.upsertConfig.comparisonColumn: ts, want version",
	} {
		if err != nil || !slices.Contains(got, want) {
			t.Errorf("changed: got %q, %v, want %q", got, err, want)
		}
	}
	c.broken = true
	expect.Error(t, setup.Apply(t.Context()), "no quorum", "broken")
}

// From 1.0 on, Pinot forgets the id of an action that is older than the newest one by the TTL, and keeps the action's next copy.
// The newest one can be ahead of the clock. An action that a window contains must be known.
func TestTables_KeepIDsOfActionsInWindows(t *testing.T) {
	applied := must.Get(Setup{}.table(TableName, V1))(t)
	var table struct {
		DedupConfig struct{ MetadataTTL int64 }
	}
	must.OK(t, json.Unmarshal(applied.config, &table))
	expect.AtLeast(t, table.DedupConfig.MetadataTTL, (feature.Kept + schemas.MaxAhead).Milliseconds(), "ms for which ids are kept")
}

func TestReleases(t *testing.T) {
	for version, want := range map[string]Release{"0.11.0-1b4": V0, "0.12.1": V0, "1.0.0": V1, "1.5.1-abc": V1} {
		expect.Equal(t, releaseOf(version), want, "%s", version)
	}
}
