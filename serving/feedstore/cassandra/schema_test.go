package cassandra

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/golden"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
)

// The golden file has the statements that Apply runs on an empty cluster.
func TestCreate_Golden(t *testing.T) {
	cfg := DefaultConfig()
	cfg.TTL = 90 * time.Second
	statements := []string{createKeyspace(cfg.Keyspace, DefaultCluster())}
	for _, table := range tables(cfg.TTL) {
		statements = append(statements, table.create(cfg.Keyspace))
	}
	golden.Text(t, "testdata/schema.cql", strings.Join(statements, ";\n\n")+";\n")
}

// A number does not match because its digits contain those of the wanted one.
func TestDifferences_TTLOptions(t *testing.T) {
	const hour, month = time.Hour, 720 * time.Hour
	for _, c := range []struct{ made, want time.Duration }{{month, 0}, {10 * hour, hour}, {hour, 10 * hour}, {0, month}, {0, 0}, {month, month}} {
		cfg, at := DefaultConfig(), DefaultCluster()
		cfg.TTL = c.made
		found := has(cfg, at)
		cfg.TTL = c.want
		repairs, problems := found.differences(cfg, at)
		want := fmt.Sprintf("ALTER TABLE smartfeed.feeds WITH default_time_to_live = %d", c.want/time.Second)
		if c.made == c.want {
			want = ""
		}
		got := ""
		if len(repairs) > 0 {
			got = repairs[0].statement
		}
		if got != want || len(repairs) > 1 || len(problems) > 0 {
			t.Errorf("created with %s, configured %s: got %v and %v, want %q", c.made, c.want, repairs, problems, want)
		}
	}
}

// has returns the schema that Apply creates, as the server reports it.
func has(cfg Config, at Cluster) schema {
	s := schema{replication: map[string]string{"class": "x", at.Datacenter: "3"}, tables: map[string]tableFound{}}
	for _, t := range tables(cfg.TTL) {
		found := tableFound{columns: map[string]column{}, options: map[string]string{}}
		for _, c := range t.columns {
			found.columns[c.name] = c
		}
		for name, value := range t.options {
			found.options[name] = strings.Replace(value, "}", ", 'more': 'default'}", 1)
		}
		s.tables[t.name] = found
	}
	return s
}

func TestDifferences(t *testing.T) {
	cfg, at := DefaultConfig(), DefaultCluster()
	for _, c := range []struct {
		name            string
		damage          func(s schema)
		repair, problem string
	}{
		{"none", func(schema) {}, "", ""},
		{"no table", func(s schema) { delete(s.tables, "deleted_users") }, "CREATE TABLE IF NOT EXISTS smartfeed.deleted_users", ""},
		{"another option", func(s schema) { s.tables["feeds"].options["default_time_to_live"] = "7" },
			"ALTER TABLE smartfeed.feeds WITH default_time_to_live = 0", ""},
		{"another strategy", func(s schema) { s.tables["cards"].options["compaction"] = "{'class': 'LeveledCompactionStrategy'}" },
			"ALTER TABLE smartfeed.cards WITH compaction = {'class': 'UnifiedCompactionStrategy', 'scaling_parameters': 'L4'}", ""},
		{"another type", func(s schema) { s.tables["feeds"].columns["score"] = column{"score", "float", ""} },
			"", `table feeds: column score is "float" : want "double"`},
		{"another order", func(s schema) { s.tables["feeds"].columns["position"] = column{"position", "bigint", "up"} },
			"", `table feeds: column position is "bigint" up: want "bigint" down`},
		{"no column", func(s schema) { delete(s.tables["feeds"].columns, "pool") }, "ALTER TABLE smartfeed.feeds ADD pool text", ""},
		{"no key", func(s schema) { delete(s.tables["edges"].columns, "kind") }, "", "table edges: column kind"},
		{"other replicas", func(s schema) { s.replication[at.Datacenter] = "1" }, "", `keyspace smartfeed: "1" replicas in datacenter1: want 3`},
	} {
		s := has(cfg, at)
		c.damage(s)
		repairs, problems := s.differences(cfg, at)
		if (len(repairs) == 1) != (c.repair != "") || len(repairs) == 1 && !strings.HasPrefix(repairs[0].statement, c.repair) {
			t.Errorf("%s: got %v to repair, want %q", c.name, repairs, c.repair)
		}
		if (len(problems) == 1) != (c.problem != "") || len(problems) == 1 && !strings.HasPrefix(problems[0].Error(), c.problem) {
			t.Errorf("%s: got %v, want %q", c.name, problems, c.problem)
		}
	}
	if repairs, problems := (schema{}).differences(cfg, at); len(repairs) != 1+len(tables(0)) || len(problems) != 0 {
		t.Errorf("an empty cluster: got %v and %v, want a keyspace and all tables created", repairs, problems)
	}
}

func TestValidate_ReportsEveryProblem(t *testing.T) {
	must.OK(t, DefaultConfig().Validate())
	must.OK(t, DefaultCluster().Validate())
	err := Config{Keyspace: "drop table", TTL: time.Millisecond}.Validate()
	for _, field := range []string{"keyspace", "timeout", "max_concurrent_writes", "ttl"} {
		expect.Contains(t, err.Error(), field+": ", "error")
	}
	err = Cluster{Hosts: []string{"a b"}, Datacenter: "d'c"}.Validate()
	for _, field := range []string{"hosts", "datacenter", "replicas"} {
		expect.Contains(t, err.Error(), field+": ", "error")
	}
}
