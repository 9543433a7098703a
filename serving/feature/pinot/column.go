package pinot

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/serving/feature"
)

// TableName is the name of the table and of its schema.
const TableName = "actions_enriched"

// column is a column of the table.
type column struct {
	name string
	kind string // Pinot's data type
	list bool
	from string // ingestion transform from the record's fields; "": the field with the column's name
	path string // features path of the column; the name of a map for all of its free attributes; "": none
	read func(*schemas.EnrichedAction, any) error
}

// The columns of every query.
const (
	idColumn    = "id"
	timeColumn  = "ts"
	actorColumn = "actor"
)

// columns returns the columns of the table, in order. Parts of the record with a fixed name have a column each. The
// free attributes of each of the three maps are one JSON column, without the rest of the map.
func columns() []column {
	text := func(name, path string, set func(*schemas.EnrichedAction, string)) column {
		return column{name: name, kind: "STRING", path: path, read: func(a *schemas.EnrichedAction, v any) error {
			s, ok := v.(string)
			if !ok {
				return fmt.Errorf("%s: %T is not a text", name, v)
			}
			set(a, s)
			return nil
		}}
	}
	from := func(c column, transform string) column { c.from = transform; return c }
	return []column{
		text(idColumn, "", func(a *schemas.EnrichedAction, s string) { a.ID = s }),
		text(actorColumn, "actor", func(a *schemas.EnrichedAction, s string) { a.Actor = schemas.UserID(s) }),
		text("verb", "verb", func(a *schemas.EnrichedAction, s string) { a.Verb = schemas.Verb(s) }),
		text("object", "object", func(a *schemas.EnrichedAction, s string) { a.Object = schemas.ID(s) }),
		from(text("objectAuthor", "objectAttributes.author", func(a *schemas.EnrichedAction, s string) {
			a.ObjectAttributes.Author = schemas.UserID(s)
		}), part("objectAttributes", "author")),
		from(text("objectBoard", "objectAttributes.board", func(a *schemas.EnrichedAction, s string) {
			a.ObjectAttributes.Board = schemas.BoardID(s)
		}), part("objectAttributes", "board")),
		from(text("verbBoard", "verbAttributes.board", func(a *schemas.EnrichedAction, s string) {
			a.VerbAttributes.Board = schemas.BoardID(s)
		}), part("verbAttributes", "board")),
		from(text("verbSurface", "verbAttributes.surface", func(a *schemas.EnrichedAction, s string) {
			a.VerbAttributes.Surface = s
		}), part("verbAttributes", "surface")),
		interests("objectInterests", "objectAttributes", func(a *schemas.EnrichedAction, list []schemas.InterestID) {
			a.ObjectAttributes.Interests = list
		}),
		interests("actorInterests", "actorAttributes", func(a *schemas.EnrichedAction, list []schemas.InterestID) {
			a.ActorAttributes.Interests = list
		}),
		embedding("objectEmbedding", "objectAttributes", func(a *schemas.EnrichedAction, v []float32) {
			a.ObjectAttributes.Embedding = v
		}),
		embedding("actorEmbedding", "actorAttributes", func(a *schemas.EnrichedAction, v []float32) {
			a.ActorAttributes.Embedding = v
		}),
		attributes("objectAttributesMap", "objectAttributes", func(a *schemas.EnrichedAction, m map[string]string) {
			a.ObjectAttributes.Attributes = m
		}),
		attributes("actorAttributesMap", "actorAttributes", func(a *schemas.EnrichedAction, m map[string]string) {
			a.ActorAttributes.Attributes = m
		}),
		attributes("verbAttributesMap", "verbAttributes", func(a *schemas.EnrichedAction, m map[string]string) {
			a.VerbAttributes.Attributes = m
		}),
		{
			name: timeColumn, kind: "LONG", from: `floor(divide("timestamp", 1000))`,
			read: func(a *schemas.EnrichedAction, v any) error {
				n, ok := v.(json.Number)
				ms, err := n.Int64()
				if !ok || err != nil {
					return fmt.Errorf("%s: %v is not a time", timeColumn, v)
				}
				a.Timestamp = schemas.Micros(ms) * 1000
				return nil
			},
		},
	}
}

// part returns the transform that extracts a text from a nested record.
func part(record, field string) string {
	return fmt.Sprintf(`jsonPathString(%s, '$.%s', '')`, record, field)
}

func interests(name, record string, set func(*schemas.EnrichedAction, []schemas.InterestID)) column {
	return column{
		name: name, kind: "STRING", list: true, path: record + ".interests",
		from: fmt.Sprintf(`jsonPathArrayDefaultEmpty(%s, '$.interests')`, record),
		read: func(a *schemas.EnrichedAction, v any) error {
			list, err := members(name, v)
			var ids []schemas.InterestID
			for _, m := range list {
				id, ok := m.(string)
				if !ok {
					return fmt.Errorf("%s: %T is not a text", name, m)
				}
				if id != "" { // an empty list is stored as ""
					ids = append(ids, schemas.InterestID(id))
				}
			}
			set(a, ids)
			return err
		},
	}
}

// embedding returns a column for a list of floats. An empty list is stored as a single −∞, Pinot's default, which no
// record contains.
func embedding(name, record string, set func(*schemas.EnrichedAction, []float32)) column {
	return column{
		name: name, kind: "FLOAT", list: true, path: record + ".embedding",
		from: fmt.Sprintf(`jsonPathArrayDefaultEmpty(%s, '$.embedding')`, record),
		read: func(a *schemas.EnrichedAction, v any) error {
			list, err := members(name, v)
			if err != nil || len(list) == 1 && !isNumber(list[0]) {
				return err
			}
			vector := make([]float32, len(list))
			for i, m := range list {
				n, ok := m.(json.Number)
				x, err := n.Float64()
				if !ok || err != nil || math.Abs(x) > math.MaxFloat32 {
					return fmt.Errorf("%s: %v is not a number of 32 bits", name, m)
				}
				vector[i] = float32(x)
			}
			set(a, vector)
			return nil
		},
	}
}

// isNumber reports whether v is a JSON number, unlike "-Infinity".
func isNumber(v any) bool { _, ok := v.(json.Number); return ok }

func members(name string, v any) ([]any, error) {
	list, ok := v.([]any)
	if !ok {
		return nil, fmt.Errorf("%s: %T is not a list", name, v)
	}
	return list, nil
}

// attributes returns a column for one of the maps, as the text of a JSON object.
func attributes(name, record string, set func(*schemas.EnrichedAction, map[string]string)) column {
	return column{
		name: name, kind: "JSON", path: record,
		from: fmt.Sprintf(`jsonFormat(jsonPath(%s, '$.attributes'))`, record),
		read: func(a *schemas.EnrichedAction, v any) error {
			text, ok := v.(string)
			if !ok {
				return fmt.Errorf("%s: %T is not a text", name, v)
			}
			m := map[string]string{}
			if text != "" && text != "null" {
				if err := json.Unmarshal([]byte(text), &m); err != nil {
					return fmt.Errorf("%s: %w", name, err)
				}
			}
			set(a, m)
			return nil
		},
	}
}

// columnOf returns the column that holds a path. A free attribute is in the column of its map.
func columnOf(p feature.Path) (column, bool) {
	all, name := columns(), p.String()
	if i := slices.IndexFunc(all, func(c column) bool { return c.path == name }); i >= 0 {
		return all[i], true
	}
	record, _, _ := strings.Cut(name, ".")
	i := slices.IndexFunc(all, func(c column) bool { return c.kind == "JSON" && c.path == record })
	if i < 0 {
		return column{}, false
	}
	return all[i], false
}
