package cassandra

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	gocql "github.com/apache/cassandra-gocql-driver/v2"

	"github.com/smartfeed/smartfeed/internal/convert"
)

// column is a column of a table. key is "partition", which one column is, "up" or "down" for a key (clustering, and its
// order), else "" or "static".
type column struct{ name, kind, key string }

// table is the required definition of a table.
type table struct {
	name    string
	columns []column // the keys first, in their order
	options map[string]string
}

// facets appends the columns of a pin's version.
func facets(own ...column) []column {
	return append(own, []column{
		{"author", "text", ""}, {"board", "text", ""}, {"interests", "frozen<list<text>>", ""}, {"created", "bigint", ""},
	}...)
}

// tables returns all tables of a keyspace.
func tables(ttl time.Duration) []table {
	feeds := []column{
		{"user", "text", "partition"}, {"position", "bigint", "down"}, {"trim_position", "bigint", "static"},
		{"pin", "text", ""}, {"source", "text", ""}, {"score", "double", ""}, {"swept", "bigint", ""},
		{"pool", "text", ""},
	}
	return []table{
		{"feeds", facets(feeds...), options(ttl)},
		{"edges", []column{{"user", "text", "partition"}, {"other", "text", "up"}, {"kind", "text", "up"}, {"wins_tie", "boolean", ""}}, options(0)},
		{"cards", facets(column{"pin", "text", "partition"}, column{"title", "text", ""}, column{"link", "text", ""},
			column{"quality", "double", ""}, column{"deleted", "boolean", ""}), options(0)},
		{"places", []column{{"followee", "text", "partition"}, {"created", "bigint", "down"}, {"pin", "text", "up"}}, options(0)},
		{"listings", facets(column{"followee", "text", "partition"}, column{"pin", "text", "up"},
			column{"quality", "double", ""}, column{"deleted", "boolean", ""}), options(0)},
		{"deleted_users", []column{{"user", "text", "partition"}, {"time", "bigint", ""}}, options(0)},
	}
}

// options returns the table options that differ from the defaults.
func options(ttl time.Duration) map[string]string {
	return map[string]string{
		// Rows of a partition arrive over months and are read together: with leveled compaction a read touches few files.
		// The write load is small compared with the read load.
		"compaction": "{'class': 'UnifiedCompactionStrategy', 'scaling_parameters': 'L4'}",
		// A read takes a page of some kilobytes or a card of some hundred bytes. The default would read a chunk of 16 KiB
		// for each.
		"compression": "{'class': 'LZ4Compressor', 'chunk_length_in_kb': '4'}",
		// Reads are hedged between clusters, within a budget. A speculative read within a cluster would exceed it.
		"speculative_retry":    "'NEVER'",
		"default_time_to_live": strconv.Itoa(int(ttl / time.Second)),
	}
}

// create returns the statement that creates the table.
func (t table) create(keyspace string) string {
	var key, order, columns []string
	for _, c := range t.columns {
		def := c.name + " " + c.kind
		switch c.key {
		case "partition":
			key = append(key, "("+c.name+")")
		case "up":
			key, order = append(key, c.name), append(order, c.name+" ASC")
		case "down":
			key, order = append(key, c.name), append(order, c.name+" DESC")
		case "static":
			def += " static"
		}
		columns = append(columns, def)
	}
	text := fmt.Sprintf("CREATE TABLE IF NOT EXISTS %s.%s (\n  %s,\n  PRIMARY KEY (%s)\n) WITH ",
		keyspace, t.name, strings.Join(columns, ",\n  "), strings.Join(key, ", "))
	if len(order) > 0 {
		text += "CLUSTERING ORDER BY (" + strings.Join(order, ", ") + ")\n  AND "
	}
	return text + t.with()
}

func (t table) with() string {
	options := convert.All(slices.Sorted(maps.Keys(t.options)), func(name string) string { return name + " = " + t.options[name] })
	return strings.Join(options, "\n  AND ")
}

func createKeyspace(keyspace string, at Cluster) string {
	return fmt.Sprintf("CREATE KEYSPACE IF NOT EXISTS %s WITH replication = {'class': 'NetworkTopologyStrategy', '%s': %d}",
		keyspace, at.Datacenter, at.Replicas)
}

// Apply creates the keyspace, tables and columns that are missing, and sets options that differ. If there is a difference
// that cannot be changed in place, such as the type of a column, Apply reports all such differences and changes nothing. It
// returns what it has changed.
func Apply(ctx context.Context, cfg Config, at Cluster) (done []string, err error) {
	err = withSchema(ctx, cfg, at, func(session *gocql.Session, repairs []difference, problems []error) error {
		if len(problems) > 0 {
			return errors.Join(problems...)
		}
		for _, d := range repairs {
			if err := session.Query(d.statement).ExecContext(ctx); err != nil {
				return fmt.Errorf("%s: %w", d.what, err)
			}
			done = append(done, d.what)
		}
		return nil
	})
	return done, err
}

// Verify returns an error for each difference between the cluster and the result of Apply.
func Verify(ctx context.Context, cfg Config, at Cluster) error {
	return withSchema(ctx, cfg, at, func(_ *gocql.Session, repairs []difference, problems []error) error {
		for _, d := range repairs {
			problems = append(problems, errors.New(d.what))
		}
		return errors.Join(problems...)
	})
}

// withSchema calls do with the differences between the cluster and the configuration.
func withSchema(ctx context.Context, cfg Config, at Cluster, do func(*gocql.Session, []difference, []error) error) error {
	session, err := admin(cfg, at)
	if err != nil {
		return err
	}
	defer session.Close()
	found, err := readSchema(ctx, session, cfg.Keyspace)
	if err != nil {
		return err
	}
	repairs, problems := found.differences(cfg, at)
	return do(session, repairs, problems)
}

// admin creates a session for schema changes: without a keyspace, and with a long timeout.
func admin(cfg Config, at Cluster) (*gocql.Session, error) {
	c, err := clusterConfig(cfg, at)
	if err == nil {
		c.Keyspace, c.Timeout = "", 30*time.Second
	}
	session, err := open(c, err)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", strings.Join(at.Hosts, ","), err)
	}
	return session, nil
}

// schema is the schema that a cluster has.
type schema struct {
	replication map[string]string // nil: no keyspace
	tables      map[string]tableFound
}

type tableFound struct {
	columns map[string]column
	options map[string]string
}

func readSchema(ctx context.Context, session *gocql.Session, keyspace string) (schema, error) {
	found := schema{tables: map[string]tableFound{}}
	err := session.Query("SELECT replication FROM system_schema.keyspaces WHERE keyspace_name = ?", keyspace).
		ScanContext(ctx, &found.replication)
	if err != nil && !errors.Is(err, gocql.ErrNotFound) {
		return schema{}, fmt.Errorf("read the schema: %w", err)
	}
	scan := session.Query("SELECT table_name, compaction, compression, speculative_retry, default_time_to_live FROM system_schema.tables WHERE keyspace_name = ?",
		keyspace).IterContext(ctx)
	var name, retry string
	var compaction, compression map[string]string
	var ttl int
	for scan.Scan(&name, &compaction, &compression, &retry, &ttl) {
		found.tables[name] = tableFound{columns: map[string]column{}, options: map[string]string{
			"compaction": literal(compaction), "compression": literal(compression),
			"speculative_retry": "'" + retry + "'", "default_time_to_live": strconv.Itoa(ttl),
		}}
	}
	if err := scan.Close(); err != nil {
		return schema{}, fmt.Errorf("read the schema: %w", err)
	}
	return found, found.readColumns(ctx, session, keyspace)
}

func (s schema) readColumns(ctx context.Context, session *gocql.Session, keyspace string) error {
	scan := session.Query("SELECT table_name, column_name, kind, clustering_order, type FROM system_schema.columns WHERE keyspace_name = ?",
		keyspace).IterContext(ctx)
	var name, kind, order string
	var c column
	for scan.Scan(&name, &c.name, &kind, &order, &c.kind) {
		switch {
		case kind == "partition_key":
			c.key = "partition"
		case kind == "clustering" && order == "desc":
			c.key = "down"
		case kind == "clustering":
			c.key = "up"
		case kind == "static":
			c.key = "static"
		default:
			c.key = ""
		}
		s.tables[name].columns[c.name] = c
	}
	if err := scan.Close(); err != nil {
		return fmt.Errorf("read the schema: %w", err)
	}
	return nil
}

// literal formats a map as CQL does. It omits the package of a class, which the server adds.
func literal(m map[string]string) string {
	all := convert.All(slices.Sorted(maps.Keys(m)), func(k string) string {
		return fmt.Sprintf("'%s': '%s'", k, m[k][strings.LastIndex(m[k], ".")+1:])
	})
	return "{" + strings.Join(all, ", ") + "}"
}

// difference is a difference that a statement can repair.
type difference struct{ what, statement string }

func (s schema) differences(cfg Config, at Cluster) (repairs []difference, problems []error) {
	if s.replication == nil {
		repairs = append(repairs, difference{"keyspace " + cfg.Keyspace + ": missing", createKeyspace(cfg.Keyspace, at)})
	} else if got, want := s.replication[at.Datacenter], strconv.Itoa(at.Replicas); got != want {
		problems = append(problems, fmt.Errorf("keyspace %s: %q replicas in %s: want %s: alter it, then run nodetool repair",
			cfg.Keyspace, got, at.Datacenter, want))
	}
	for _, t := range tables(cfg.TTL) {
		found, there := s.tables[t.name]
		if !there {
			repairs = append(repairs, difference{"table " + t.name + ": missing", t.create(cfg.Keyspace)})
			continue
		}
		columns, others := t.columnDifferences(cfg.Keyspace, found)
		repairs, problems = append(repairs, columns...), append(problems, others...)
		repairs = append(repairs, t.optionDifferences(cfg.Keyspace, found)...)
	}
	return repairs, problems
}

// columnDifferences separates the columns to be added from the differences that cannot be repaired. A key cannot be added.
func (t table) columnDifferences(keyspace string, found tableFound) (repairs []difference, problems []error) {
	for _, c := range t.columns {
		got, there := found.columns[c.name]
		switch {
		case !there && c.key == "":
			repairs = append(repairs, difference{fmt.Sprintf("table %s: column %s: missing", t.name, c.name),
				fmt.Sprintf("ALTER TABLE %s.%s ADD %s %s", keyspace, t.name, c.name, c.kind)})
		case got != c:
			problems = append(problems,
				fmt.Errorf("table %s: column %s is %q %s: want %q %s", t.name, c.name, got.kind, got.key, c.kind, c.key))
		}
	}
	return repairs, problems
}

func (t table) optionDifferences(keyspace string, found tableFound) (repairs []difference) {
	for _, name := range slices.Sorted(maps.Keys(t.options)) {
		if got, want := found.options[name], t.options[name]; !covers(got, want) {
			repairs = append(repairs, difference{fmt.Sprintf("table %s: %s is %s: want %s", t.name, name, got, want),
				fmt.Sprintf("ALTER TABLE %s.%s WITH %s = %s", keyspace, t.name, name, want)})
		}
	}
	return repairs
}

// covers reports whether the option found matches the wanted one. The server returns a map in its own order and with its own
// defaults, so every wanted setting must be contained in it. Any other option must be equal: a substring may be another
// value.
func covers(got, want string) bool {
	if !strings.HasPrefix(want, "{") {
		return got == want
	}
	for part := range strings.SplitSeq(strings.Trim(want, "{}"), ", ") {
		if !strings.Contains(got, part) {
			return false
		}
	}
	return true
}
