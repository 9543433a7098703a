package pinot

import (
	"slices"
	"strconv"
	"strings"

	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/serving/feature"
)

// quote returns a text as a literal. Nothing else needs escaping: Calcite, Pinot's parser, has no other escape inside
// single quotes, and comments, options and parameters do not start there.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

// ambiguous reports whether releases of Pinot read different texts from the literal that quote returns. Some undo the
// doubling of quotes a second time. The result is another text, for example another user's id.
func ambiguous(s string) bool { return strings.Contains(s, "''") }

// literals returns literals such that every release reads s from one of them. If some are read as other texts, the
// caller must check the rows.
func literals(s string) []string {
	if !ambiguous(s) {
		return []string{quote(s)}
	}
	return []string{quote(s), quote(strings.ReplaceAll(s, "''", "''''"))}
}

// statement is a query and the columns of its rows.
type statement struct {
	sql     string
	columns []column // columns of the answer, in order; for a count, those of the grouping
}

// rows returns the query for the actions of a user that the definitions read, newest first, at most most.
func rows(user schemas.UserID, defs []feature.Definition, after, upTo int64, most int) statement {
	s := statement{columns: columnsOf(defs)}
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

// columnsOf returns the columns that the definitions read, those that order the rows, and the actor's.
func columnsOf(defs []feature.Definition) []column {
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

// commonVerbs returns the verbs that the definitions read, or none if one of them reads all.
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

// count returns the query with which Pinot counts a definition's actions. It returns false if Pinot cannot count them:
//
//   - if the definition has a half-life;
//   - if it reads attributes without a column, because Pinot's functions do not distinguish an absent attribute from a
//     value;
//   - if it has texts that releases read differently.
func count(user schemas.UserID, d feature.Definition, after, upTo int64, most int) (statement, bool) {
	counts := d.Aggregate == feature.Count || d.Aggregate == feature.Rate
	if !counts || d.HalfLife != 0 || ambiguous(string(user)) || slices.ContainsFunc(texts(d.Verbs), ambiguous) {
		return statement{}, false
	}
	var s statement
	var b strings.Builder
	groups, counted := "", "COUNT(*)"
	for _, p := range d.GroupBy {
		c, own := columnOf(p)
		if !own {
			return statement{}, false
		}
		if c.list { // a row is in a group once per member of its list; an action counts once
			counted = "COUNT(DISTINCT " + idColumn + ")"
		}
		s.columns, groups = append(s.columns, c), groups+c.name+", "
	}
	b.WriteString("SELECT " + groups + counted + " FROM " + TableName)
	where(&b, user, after, upTo, texts(d.Verbs))
	for _, c := range d.Where {
		if !condition(&b, c) {
			return statement{}, false
		}
	}
	if groups != "" {
		b.WriteString(" GROUP BY " + strings.TrimSuffix(groups, ", "))
	}
	b.WriteString(" LIMIT " + strconv.Itoa(most))
	s.sql = b.String()
	return s, true
}

// condition adds a condition of Where. It returns false if there is no column for it. For a list column, one matching
// member is enough.
func condition(b *strings.Builder, c feature.Condition) bool {
	col, own := columnOf(c.Path)
	values := slices.DeleteFunc(slices.Clone(c.In), func(v string) bool { return v == "" }) // an absent value matches nothing
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
