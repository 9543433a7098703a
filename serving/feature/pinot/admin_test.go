package pinot

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/spf13/cobra"
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
		_, _ = io.WriteString(w, `{"other":"9","pinot-kafka-2.0":"0.11.0-1b4d6b6b0a"}`)
	case r.Method == http.MethodGet && r.URL.Path == "/schemas/"+TableName:
		if c.kept["schemas"] == nil {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write(c.kept["schemas"])
	case r.Method == http.MethodGet:
		c.table(w)
	default:
		c.calls = append(c.calls, r.Method+" "+r.URL.Path)
		c.kept[strings.Split(r.URL.Path, "/")[1]] = body
	}
}

func (c *controller) table(w http.ResponseWriter) {
	if c.kept["tables"] == nil {
		_, _ = io.WriteString(w, "{}")
		return
	}
	var table object
	_ = json.Unmarshal(c.kept["tables"], &table)
	table["tableName"], table["isDimTable"] = TableName+"_REALTIME", false
	_ = json.NewEncoder(w).Encode(object{"REALTIME": table})
}

// run runs a command against the controller and returns its output.
func (c *controller) run(t *testing.T, args ...string) (string, error) {
	t.Helper()
	server := httptest.NewServer(c)
	defer server.Close()
	cmd := Command(func(*cobra.Command) (Setup, error) {
		cfg := DefaultConfig()
		cfg.Controller = server.URL
		return Setup{Config: cfg, Kafka: []string{"kafka:1"}, Registry: "http://registry", Partitions: 4}, nil
	})
	var out bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetArgs(args)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	err := cmd.Execute()
	return out.String(), err
}

func TestApplyThenVerify(t *testing.T) {
	c := &controller{kept: map[string][]byte{}}
	if _, err := c.run(t, "verify"); err == nil || !strings.Contains(err.Error(), "schema: is not there\ntable: is not there") {
		t.Errorf("before: got %v", err)
	}
	for range 2 {
		if _, err := c.run(t, "apply"); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{"POST /schemas", "POST /tables", "PUT /schemas/" + TableName, "PUT /tables/" + TableName}
	if !slices.Equal(c.calls, want) {
		t.Errorf("calls: got %q, want %q", c.calls, want)
	}
	if out, err := c.run(t, "verify"); err != nil || !strings.Contains(out, "as it should be") {
		t.Errorf("after: got %q, %v", out, err)
	}
	c.kept["tables"] = bytes.Replace(c.kept["tables"], []byte(`"96"`), []byte(`"24"`), 1)
	c.kept["schemas"] = bytes.Replace(c.kept["schemas"], []byte(`"objectAuthor"`), []byte(`"author"`), 1)
	_, err := c.run(t, "verify")
	for _, want := range []string{"table.segmentsConfig.retentionTimeValue: 24, want 96", "schema.dimensionFieldSpecs: objectAuthor is not there"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("changed: got %v, want %q in it", err, want)
		}
	}
	c.broken = true
	if _, err := c.run(t, "apply"); err == nil || !strings.Contains(err.Error(), "no quorum") {
		t.Errorf("broken: got %v", err)
	}
}

func TestShowPrintsWhatApplySends(t *testing.T) {
	out, err := (&controller{}).run(t, "show", "--release", "0.11")
	if err != nil || !strings.Contains(out, `"schemaName": "actions_enriched"`) || !strings.Contains(out, `"stream.kafka.broker.list": "kafka:1"`) {
		t.Errorf("got %s, %v", out, err)
	}
	if _, err := (&controller{}).run(t, "show", "--release", "9"); err == nil {
		t.Error("a table was shown for a release that is not known")
	}
}

func TestReleases(t *testing.T) {
	for version, want := range map[string]Release{"0.11.0-1b4": V0, "0.12.1": V0, "1.0.0": V1, "1.5.1-abc": V1} {
		if got := releaseOf(version); got != want {
			t.Errorf("%s: got %s, want %s", version, got, want)
		}
	}
}
