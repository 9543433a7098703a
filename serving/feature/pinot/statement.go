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
	columns []column // of the answer, in order
}

// selected returns the beginning of a query for columns of a table.
func selected(table string, columns []column) *strings.Builder {
	names := make([]string, len(columns))
	for i, c := range columns {
		names[i] = c.name
	}
	b := &strings.Builder{}
	b.WriteString("SELECT " + strings.Join(names, ", ") + " FROM " + table + " WHERE ")
	return b
}

// ofUser returns the query for the actions of a user that the definitions read, newest first, at most most.
func ofUser(user schemas.UserID, defs []feature.Definition, after, upTo int64, most int) statement {
	columns := columnsOf(defs)
	b := selected(TableName, columns)
	in(b, actorColumn, []schemas.UserID{user})
	b.WriteString(" AND " + timeColumn + " > " + strconv.FormatInt(after, 10))
	b.WriteString(" AND " + timeColumn + " <= " + strconv.FormatInt(upTo, 10))
	if verbs := commonVerbs(defs); len(verbs) > 0 {
		b.WriteString(" AND ")
		in(b, "verb", verbs)
	}
	b.WriteString(" ORDER BY " + timeColumn + " DESC, " + idColumn + " DESC LIMIT " + strconv.Itoa(most))
	return statement{b.String(), columns}
}

// ofSequences returns the query for the actions of a user that sequences read, the highest numbers first, at most most. All
// verbs count for the numbers.
func ofSequences(user schemas.UserID, defs []feature.Definition, after int64, most int) statement {
	columns := append(columnsOf(defs), number())
	b := selected(SequencesTable, columns)
	in(b, actorColumn, []schemas.UserID{user})
	b.WriteString(" AND " + timeColumn + " > " + strconv.FormatInt(after, 10) + " AND " + numberColumn + " > 0")
	b.WriteString(" ORDER BY " + numberColumn + " DESC LIMIT " + strconv.Itoa(most))
	return statement{b.String(), columns}
}

// in adds a condition. It returns the number of literals.
func in[T ~string](b *strings.Builder, name string, values []T) int {
	var quoted []string
	for _, v := range values {
		quoted = append(quoted, literals(string(v))...)
	}
	b.WriteString(name + " IN (" + strings.Join(quoted, ", ") + ")")
	return len(quoted)
}

// pinQuery is a query for rows about pins.
type pinQuery struct {
	table   string
	columns []column
	where   string // a further condition; "": none
	most    int    // rows of a pin
}

// of returns the query for the rows of some pins.
func (q pinQuery) of(pins []schemas.PinID) statement {
	b := selected(q.table, q.columns)
	ids := in(b, pinColumn, pins)
	if q.where != "" {
		b.WriteString(" AND " + q.where)
	}
	b.WriteString(" LIMIT " + strconv.Itoa(ids*q.most))
	return statement{b.String(), q.columns}
}

// columnsOf returns the columns that the definitions read, those that order the rows, and the actor's.
func columnsOf(defs []feature.Definition) []column {
	wanted := []string{idColumn, timeColumn, actorColumn}
	for _, d := range defs {
		if len(d.Verbs) > 0 || d.Aggregate == feature.TakeLast {
			wanted = append(wanted, "verb")
		}
		if d.Aggregate == feature.TakeLast {
			wanted = append(wanted, "object")
		}
		for _, p := range d.Paths() {
			wanted = append(wanted, columnOf(p).name)
		}
	}
	return named(actionColumns(), wanted...)
}

// named returns the columns with the names, in the order of the table.
func named(all []column, names ...string) []column {
	return slices.DeleteFunc(all, func(c column) bool { return !slices.Contains(names, c.name) })
}

// commonVerbs returns the verbs that the definitions read, or none if one of them reads all.
func commonVerbs(defs []feature.Definition) []schemas.Verb {
	var verbs []schemas.Verb
	for _, d := range defs {
		if len(d.Verbs) == 0 {
			return nil
		}
		for _, v := range d.Verbs {
			if !slices.Contains(verbs, v) {
				verbs = append(verbs, v)
			}
		}
	}
	return verbs
}
