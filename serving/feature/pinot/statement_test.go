package pinot

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/serving/feature"
)

var update = flag.Bool("update", false, "write the golden files")

// golden compares a text with a golden file.
func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		must.OK(t, os.MkdirAll(filepath.Dir(path), 0o755))
		must.OK(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	must.OK(t, err)
	if got != string(want) {
		t.Errorf("%s: got\n%s\nwant\n%s", path, got, want)
	}
}

func define(t testing.TB, text string) []feature.Definition {
	t.Helper()
	defs, err := feature.Parse("test", []byte("features:\n"+text))
	must.OK(t, err)
	return defs
}

func TestStatements(t *testing.T) {
	defs := define(t, `
- {name: by_interest, entity: user, verbs: [click, save], window: 24h, group_by: objectAttributes.interests, aggregate: count}
- {name: rate, entity: user, window: 1h, aggregate: rate}
- {name: on_home, entity: user, verbs: save, where: {verbAttributes.surface: [home, "o'clock"], objectAttributes.interests: interest:a}, aggregate: count}
- {name: decayed, entity: user, aggregate: count, half_life: 1h}
- {name: by_color, entity: user, group_by: objectAttributes.color, aggregate: count}
- {name: of_ios, entity: user, where: {verbAttributes.device: ios}, aggregate: count}
- {name: nothing, entity: user, where: {verb: ""}, aggregate: count}
- {name: last, entity: user, aggregate: last, verbs: [click]}
- {name: taste, entity: user, aggregate: mean_embedding, of: objectAttributes.embedding, verbs: [save]}
- {name: by_actor, entity: user, aggregate: count, group_by: actor}
- {name: by_verb_and_interest, entity: user, aggregate: count, group_by: [verb, objectAttributes.interests, actorAttributes.interests]}
- {name: by_verb_and_color, entity: user, aggregate: rate, group_by: [verb, objectAttributes.color]}
`)
	var b strings.Builder
	const user = schemas.UserID("user:o'neil")
	for _, d := range defs {
		fmt.Fprintf(&b, "-- %s\n", d.Name)
		if q, ok := count(user, d, 1000, 2000, 11); ok {
			fmt.Fprintf(&b, "count: %s\n", q.sql)
		}
		fmt.Fprintf(&b, "rows: %s\n", rows(user, []feature.Definition{d}, 1000, 2000, 101).sql)
	}
	fmt.Fprintf(&b, "-- all\nrows: %s\n", rows(user, defs, 1000, 2000, 101).sql)
	fmt.Fprintf(&b, "-- last, taste\nrows: %s\n", rows(user, defs[7:9], 1000, 2000, 101).sql)
	const odd = schemas.UserID("user:''")
	fmt.Fprintf(&b, "-- two quotes in a row: no count, and both readings of the text\nrows: %s\n", rows(odd, defs[:1], 1000, 2000, 101).sql)
	if q, ok := count(odd, defs[0], 1000, 2000, 11); ok {
		t.Errorf("a user whose id releases read differently is counted: %s", q.sql)
	}
	golden(t, "testdata/statements.golden", b.String())
}

func TestTables_Golden(t *testing.T) {
	stream := Stream{Brokers: []string{"kafka:9092"}, Registry: "http://registry:8080/apis/ccompat/v7", Partitions: 8, Replicas: 1}
	for _, r := range []Release{V0, V1} {
		schema, err := Schema()
		must.OK(t, err)
		table, err := Table(r, stream)
		must.OK(t, err)
		golden(t, filepath.Join("tables", string(r), "schema.json"), string(schema))
		golden(t, filepath.Join("tables", string(r), "table.json"), string(table))
	}
	if _, err := Table("2", stream); err == nil {
		t.Error("created a table for an unknown release")
	}
}

// FuzzQuote checks that a literal, parsed like SQL, ends at the right place and has the original text.
func FuzzQuote(f *testing.F) {
	for _, s := range []string{"", "'", "''", `\`, `\'`, "?", "--", "/*", ";SET x='y'", "OPTION(timeoutMs=1)", "‘’", "\x00", "a'b''c"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got, rest, ok := unquote(quote(s) + " AND x = 'y'")
		if !ok || got != s || rest != " AND x = 'y'" {
			t.Errorf("%q is read as %q, then %q", s, got, rest)
		}
	})
}

// unquote parses a literal as defined by the SQL standard.
func unquote(sql string) (text, rest string, ok bool) {
	if !strings.HasPrefix(sql, "'") {
		return "", "", false
	}
	var b strings.Builder
	for i := 1; i < len(sql); i++ {
		switch {
		case sql[i] != '\'':
			b.WriteByte(sql[i])
		case i+1 < len(sql) && sql[i+1] == '\'':
			b.WriteByte('\'')
			i++
		default:
			return b.String(), sql[i+1:], true
		}
	}
	return "", "", false
}

func TestConfig_ReportsEveryProblem(t *testing.T) {
	if err := DefaultConfig().Validate(); err != nil {
		t.Errorf("defaults: %v", err)
	}
	bad := Config{Brokers: []string{"http://b/path", "x:1"}, Controller: ""}
	err := bad.Validate()
	for _, want := range []string{"max_response_bytes: 0", "max_connections: 0", "replicas: 0", `brokers: "http://b/path"`, `controller: ""`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q in it", err, want)
		}
	}
}

var now = schemas.MicrosOf(time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC))
