package pinot

import (
	"slices"
	"strconv"
	"strings"

	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/serving/feature"
)

// quote returns a text as a literal. There is nothing else to escape: Pinot's parser, Calcite's, knows no other escape
// inside single quotes, and comments, options and parameters do not begin there.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

// ambiguous says that releases of Pinot take different texts for what quote returns: some undo the doubling of quotes a
// second time, and what is left of two quotes is another text, another user's id for one.
func ambiguous(s string) bool { return strings.Contains(s, "''") }

// literals returns what a text is among, whatever the release. Where that is more than the text, whoever reads the rows
// has to look.
func literals(s string) []string {
	if !ambiguous(s) {
		return []string{quote(s)}
	}
	return []string{quote(s), quote(strings.ReplaceAll(s, "''", "''''"))}
}

// statement is a query with how its rows are read.
type statement struct {
	sql     string
	columns []column // of the answer, in its order; of a count the group's, if there is one
}

// rows returns the query for the actions of a user that the definitions look at, newest first. most bounds them.
func rows(user schemas.UserID, defs []feature.Definition, after, upTo int64, most int) statement {
	s := statement{columns: looked(defs)}
	names := make([]string, len(s.columns))
	for i, c := range s.columns {
		names[i] = c.name
	}
	var b strings.Builder
	b.WriteString("SELECT " + strings.Join(names, ", ") + " FROM " + TableName)
	where(&b, user, after, upTo, commonVerbs(defs))
	b.WriteString(" ORDER BY " + timeColumn + " DESC, " + idColumn + " DESC LIMIT " + strconv.Itoa(most))
	s.sql = b.String()
	return s
}

func where(b *strings.Builder, user schemas.UserID, after, upTo int64, verbs []string) {
	b.WriteString(" WHERE ")
	if id := literals(string(user)); len(id) == 1 {
		b.WriteString(actorColumn + " = " + id[0])
	} else {
		b.WriteString(actorColumn + " IN (" + strings.Join(id, ", ") + ")")
	}
	b.WriteString(" AND " + timeColumn + " > " + strconv.FormatInt(after, 10))
	b.WriteString(" AND " + timeColumn + " <= " + strconv.FormatInt(upTo, 10))
	if len(verbs) > 0 {
		in(b, "verb", verbs)
	}
}

func in(b *strings.Builder, name string, values []string) {
	var quoted []string
	for _, v := range values {
		quoted = append(quoted, literals(v)...)
	}
	b.WriteString(" AND " + name + " IN (" + strings.Join(quoted, ", ") + ")")
}

// looked returns the columns that the definitions look at, those that order rows, and the one that says whose they are.
func looked(defs []feature.Definition) []column {
	wanted := map[string]bool{idColumn: true, timeColumn: true, actorColumn: true}
	for _, d := range defs {
		if len(d.Verbs) > 0 || d.Aggregate == feature.TakeLast {
			wanted["verb"] = true
		}
		if d.Aggregate == feature.TakeLast {
			wanted["object"] = true
		}
		for _, p := range d.Paths() {
			c, _ := columnOf(p)
			wanted[c.name] = true
		}
	}
	return slices.DeleteFunc(columns(), func(c column) bool { return !wanted[c.name] })
}

// commonVerbs returns the verbs that any definition wants, none if one wants all.
func commonVerbs(defs []feature.Definition) []string {
	var verbs []string
	for _, d := range defs {
		if len(d.Verbs) == 0 {
			return nil
		}
		for _, v := range d.Verbs {
			if !slices.Contains(verbs, string(v)) {
				verbs = append(verbs, string(v))
			}
		}
	}
	return verbs
}

// count returns the query by which Pinot itself counts a definition's actions; false if it cannot: it would have to know
// of decay, of attributes without a column, whose absence its functions do not tell from a value, or of texts that its
// releases read differently.
func count(user schemas.UserID, d feature.Definition, after, upTo int64, most int) (statement, bool) {
	counts := d.Aggregate == feature.Count || d.Aggregate == feature.Rate
	if !counts || d.HalfLife != 0 || ambiguous(string(user)) || slices.ContainsFunc(texts(d.Verbs), ambiguous) {
		return statement{}, false
	}
	var s statement
	var b strings.Builder
	b.WriteString("SELECT ")
	group, counted := d.GroupBy != (feature.Path{}), "COUNT(*)"
	if group {
		c, own := columnOf(d.GroupBy)
		if !own {
			return statement{}, false
		}
		if c.list { // a row is in a group as often as its list names it; an action counts once
			counted = "COUNT(DISTINCT " + idColumn + ")"
		}
		s.columns = []column{c}
		b.WriteString(c.name + ", ")
	}
	b.WriteString(counted + " FROM " + TableName)
	where(&b, user, after, upTo, texts(d.Verbs))
	for _, c := range d.Where {
		if !condition(&b, c) {
			return statement{}, false
		}
	}
	if group {
		b.WriteString(" GROUP BY " + s.columns[0].name)
	}
	b.WriteString(" LIMIT " + strconv.Itoa(most))
	s.sql = b.String()
	return s, true
}

// condition adds one of Where, false where there is no column for it. Of a list column one member is enough.
func condition(b *strings.Builder, c feature.Condition) bool {
	col, own := columnOf(c.Path)
	values := slices.DeleteFunc(slices.Clone(c.In), func(v string) bool { return v == "" }) // what is absent matches nothing
	if !own || len(values) == 0 || slices.ContainsFunc(values, ambiguous) {
		return false
	}
	in(b, col.name, values)
	return true
}

func texts(verbs []schemas.Verb) []string {
	var all []string
	for _, v := range verbs {
		all = append(all, string(v))
	}
	return all
}
