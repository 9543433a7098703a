package pinot

import (
	"fmt"
	"slices"
	"strings"

	"github.com/smartfeed/smartfeed/internal/convert"
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

// newStatement returns a query for columns of the rows of a table that meet all conditions.
func newStatement(table string, columns []column, end string, conditions ...string) statement {
	names := convert.All(columns, func(c column) string { return c.name })
	return statement{"SELECT " + strings.Join(names, ", ") + " FROM " + table + " WHERE " + strings.Join(conditions, " AND ") + " " + end, columns}
}

// ofUser returns the query for the actions of a user that the definitions read, newest first, at most most.
func ofUser(user schemas.UserID, defs []feature.Definition, after, upTo int64, most int) statement {
	conditions := []string{
		in(actorColumn, allLiterals([]schemas.UserID{user})), fmt.Sprint(timeColumn, " > ", after), fmt.Sprint(timeColumn, " <= ", upTo),
	}
	if verbs := commonVerbs(defs); len(verbs) > 0 {
		conditions = append(conditions, in("verb", allLiterals(verbs)))
	}
	return newStatement(TableName, columnsOf(defs), fmt.Sprintf("ORDER BY %s DESC, %s DESC LIMIT %d", timeColumn, idColumn, most), conditions...)
}

// ofSequences returns the query for the actions of a user that sequences read, the highest numbers first, at most most. All
// verbs count for the numbers.
func ofSequences(user schemas.UserID, defs []feature.Definition, after int64, most int) statement {
	return newStatement(SequencesTable, append(columnsOf(defs), number()), fmt.Sprintf("ORDER BY %s DESC LIMIT %d", numberColumn, most),
		in(actorColumn, allLiterals([]schemas.UserID{user})), fmt.Sprint(timeColumn, " > ", after), numberColumn+" > 0")
}

// allLiterals returns the literals of all values.
func allLiterals[T ~string](values []T) (all []string) {
	for _, v := range values {
		all = append(all, literals(string(v))...)
	}
	return all
}

func in(name string, literals []string) string {
	return name + " IN (" + strings.Join(literals, ", ") + ")"
}

// pinQuery is a query for rows about pins.
type pinQuery struct {
	table      string
	columns    []column
	conditions []string // further ones
	most       int      // rows of a pin
}

// of returns the query for the rows of some pins.
func (q pinQuery) of(pins []schemas.PinID) statement {
	ids := allLiterals(pins)
	return newStatement(q.table, q.columns, fmt.Sprint("LIMIT ", len(ids)*q.most), slices.Concat([]string{in(pinColumn, ids)}, q.conditions)...)
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
