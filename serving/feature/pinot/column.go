package pinot

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"strings"

	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/serving/feature"
)

// row is a row of any table. A row about a pin has it as the object.
type row struct {
	schemas.EnrichedAction
	schemas.ItemCounts // counts and sketch of a step
}

// column is a column of a table.
type column struct {
	name string
	path string // features path of the column; the name of a map for all of its free attributes; "": none
	read func(*row, any) error
}

// Names of columns in several tables or queries.
const (
	idColumn        = "id"
	timeColumn      = "ts"
	numberColumn    = "number"
	actorColumn     = "actor"
	pinColumn       = "pin"
	embeddingColumn = "embedding"
)

// actionColumns returns the columns of the actions, in order. Only SequencesTable has their numbers. Parts of the record with a fixed name have a column each.
// The free attributes of each of the three maps are one JSON column, without the rest of the map.
func actionColumns() []column {
	const object, actor, verb = "objectAttributes", "actorAttributes", "verbAttributes"
	return []column{
		text(idColumn, "", func(r *row) *string { return &r.ID }),
		text(actorColumn, "actor", func(r *row) *schemas.UserID { return &r.Actor }),
		text("verb", "verb", func(r *row) *schemas.Verb { return &r.Verb }),
		text("object", "object", func(r *row) *schemas.ID { return &r.Object }),
		text("objectAuthor", object+".author", func(r *row) *schemas.UserID { return &r.ObjectAttributes.Author }),
		text("objectBoard", object+".board", func(r *row) *schemas.BoardID { return &r.ObjectAttributes.Board }),
		text("verbBoard", verb+".board", func(r *row) *schemas.BoardID { return &r.VerbAttributes.Board }),
		text("verbSurface", verb+".surface", func(r *row) *string { return &r.VerbAttributes.Surface }),
		interests("objectInterests", object+".interests", func(r *row) *[]schemas.InterestID { return &r.ObjectAttributes.Interests }),
		interests("actorInterests", actor+".interests", func(r *row) *[]schemas.InterestID { return &r.ActorAttributes.Interests }),
		embedding("objectEmbedding", object+".embedding", func(r *row) *[]float32 { return &r.ObjectAttributes.Embedding }),
		embedding("actorEmbedding", actor+".embedding", func(r *row) *[]float32 { return &r.ActorAttributes.Embedding }),
		attributes("objectAttributesMap", object, func(r *row) *map[string]string { return &r.ObjectAttributes.Attributes }),
		attributes("actorAttributesMap", actor, func(r *row) *map[string]string { return &r.ActorAttributes.Attributes }),
		attributes("verbAttributesMap", verb, func(r *row) *map[string]string { return &r.VerbAttributes.Attributes }),
		millis(),
		number(),
	}
}

// pinColumns returns the columns of the pins that queries select.
func pinColumns() []column {
	return []column{
		text(pinColumn, "", func(r *row) *schemas.ID { return &r.Object }),
		text("author", "", func(r *row) *schemas.UserID { return &r.ObjectAttributes.Author }),
		text("board", "", func(r *row) *schemas.BoardID { return &r.ObjectAttributes.Board }),
		interests("interests", "", func(r *row) *[]schemas.InterestID { return &r.ObjectAttributes.Interests }),
		text("language", "", func(r *row) *string { return &r.ObjectAttributes.Language }),
		attributes("attributesMap", "", func(r *row) *map[string]string { return &r.ObjectAttributes.Attributes }),
		embedding(embeddingColumn, "", func(r *row) *[]float32 { return &r.ObjectAttributes.Embedding }),
	}
}

// countColumns returns the columns of the counts of a pin in a step.
func countColumns() []column {
	return []column{
		text(pinColumn, "", func(r *row) *schemas.ID { return &r.Object }),
		counts(),
		{name: "actors", read: func(r *row, v any) (err error) {
			s, _ := v.(string)
			r.Actors, err = hex.DecodeString(s)
			return err
		}},
		millis(),
	}
}

// meanColumns returns the columns of the mean of a pin's recent actors.
func meanColumns() []column {
	return []column{
		text(pinColumn, "", func(r *row) *schemas.ID { return &r.Object }),
		embedding(embeddingColumn, "", func(r *row) *[]float32 { return &r.Embedding }),
	}
}

func text[T ~string](name, path string, field func(*row) *T) column {
	return column{name: name, path: path, read: func(r *row, v any) error {
		s, ok := v.(string)
		if !ok {
			return fmt.Errorf("%s: %T is not a text", name, v)
		}
		*field(r) = T(s)
		return nil
	}}
}

// millis returns the time column.
func millis() column {
	return whole(timeColumn, func(r *row, ms int64) { r.Timestamp = schemas.Micros(ms) * 1000 })
}

func number() column {
	return whole(numberColumn, func(r *row, n int64) { r.Number = n })
}

func whole(name string, set func(*row, int64)) column {
	return column{name: name, read: func(r *row, v any) error {
		text, ok := v.(json.Number)
		n, err := text.Int64()
		if !ok || err != nil {
			return fmt.Errorf("%s: %v is not a whole number", name, v)
		}
		set(r, n)
		return nil
	}}
}

func interests(name, path string, field func(*row) *[]schemas.InterestID) column {
	return column{name: name, path: path, read: func(r *row, v any) error {
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
		*field(r) = ids
		return err
	}}
}

// embedding returns a column for a list of floats. An empty list is stored as a single −∞, Pinot's default, which no
// record contains.
func embedding(name, path string, field func(*row) *[]float32) column {
	return column{name: name, path: path, read: func(r *row, v any) error {
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
		*field(r) = vector
		return nil
	}}
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

// attributes returns a column for a map, as the text of a JSON object.
func attributes(name, path string, field func(*row) *map[string]string) column {
	return column{name: name, path: path, read: func(r *row, v any) (err error) {
		*field(r), err = mapOf[string](name, v)
		return err
	}}
}

// counts returns the column of counts by verb. Most rows of a query have one of a few texts, which are parsed once.
func counts() column {
	seen := map[string]map[string]int64{}
	return column{name: "countsMap", read: func(r *row, v any) (err error) {
		text, _ := v.(string)
		if r.Counts = seen[text]; r.Counts == nil {
			r.Counts, err = mapOf[int64]("countsMap", v)
			seen[text] = r.Counts
		}
		return err
	}}
}

// mapOf reads the text of a JSON object.
func mapOf[T any](name string, v any) (map[string]T, error) {
	text, ok := v.(string)
	if !ok {
		return nil, fmt.Errorf("%s: %T is not a text", name, v)
	}
	m := map[string]T{}
	if text == "" || text == "null" {
		return m, nil
	}
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return m, nil
}

// columnOf returns the column of the actions that holds a path. A free attribute is in the column of its map.
func columnOf(p feature.Path) column {
	name := p.String()
	record, _, _ := strings.Cut(name, ".")
	var of column
	for _, c := range actionColumns() {
		if c.path == name || c.path == record && of.name == "" {
			of = c
		}
	}
	return of
}
