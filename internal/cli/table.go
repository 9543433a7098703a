package cli

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/smartfeed/smartfeed/internal/convert"
)

// orderedValue returns the JSON of a value as YAML, with its keys in the same order.
func orderedValue(v any) (*yaml.Node, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	return nextValue(decoder)
}

// nextValue reads a JSON value. The content of an object is its keys and values in turn, as in YAML.
func nextValue(decoder *json.Decoder) (*yaml.Node, error) {
	token, err := decoder.Token()
	if err != nil {
		return nil, err
	}
	node := &yaml.Node{Kind: yaml.ScalarNode}
	switch v := token.(type) {
	case json.Delim:
		node.Kind = yaml.SequenceNode
		if v == '{' {
			node.Kind = yaml.MappingNode
		}
		for decoder.More() {
			child, err := nextValue(decoder)
			if err != nil {
				return nil, err
			}
			node.Content = append(node.Content, child)
		}
		_, err = decoder.Token()
	case string:
		node.SetString(v)
	case nil:
		node.Value = "null"
	default:
		node.Value = fmt.Sprint(v)
	}
	return node, err
}

// printTables prints a value for people: a table for each list of objects, and a line for each other value. A list in the
// objects of a list is a table, too. The tables have the given columns, or all if there are none.
func printTables(out io.Writer, v any, columns []string) error {
	value, err := orderedValue(v)
	if err != nil {
		return err
	}
	shorten(value)
	d := document{columns: columns}
	d.add("", value)
	_, err = io.WriteString(out, strings.Join(convert.All(d.blocks, (*block).text), "\n"))
	return err
}

// shorten rounds all fractions: to three digits after the point or, below 0.1, to three significant digits.
func shorten(value *yaml.Node) {
	for _, child := range value.Content {
		shorten(child)
	}
	if number, err := strconv.ParseFloat(value.Value, 64); err == nil && value.ShortTag() == "!!float" {
		format := byte('f')
		if -0.1 < number && number < 0.1 {
			format = 'g'
		}
		value.Value = strconv.FormatFloat(number, format, 3, 64)
	}
}

// A document is a value as tables and lines.
type document struct {
	columns []string // of each table; none: all
	blocks  []*block
}

// A block is a table, or lines with a name and a value.
type block struct {
	title   string
	isLines bool
	columns []string
	rows    []map[string]string // by column
}

// A cell is a value in a row of a table.
type cell struct{ column, text string }

// add adds a value with a name.
func (d *document) add(name string, value *yaml.Node) {
	switch {
	case isTable(value):
		d.addRows(name, nil, value)
	case value.Kind == yaml.MappingNode && len(value.Content) > 0:
		for pair := range slices.Chunk(value.Content, 2) {
			d.add(below(name, pair[0].Value), pair[1])
		}
	case value.Kind == yaml.SequenceNode && len(value.Content) > 0 && value.Content[0].ShortTag() == "!!str":
		for _, text := range value.Content {
			d.addLine(name, text)
			name = ""
		}
	default:
		d.addLine(name, value)
	}
}

// below returns the name of a value in an object with a name.
func below(object, name string) string { return strings.TrimPrefix(object+"."+name, ".") }

// isTable reports whether a value is a list of objects.
func isTable(value *yaml.Node) bool {
	return value.Kind == yaml.SequenceNode && len(value.Content) > 0 && value.Content[0].Kind == yaml.MappingNode
}

func (d *document) addLine(name string, value *yaml.Node) {
	if len(d.blocks) == 0 || !d.blocks[len(d.blocks)-1].isLines {
		d.blocks = append(d.blocks, &block{isLines: true})
	}
	d.blocks[len(d.blocks)-1].add([]cell{{"name", name}, {"value", cmp.Or(cellText(value), "none")}})
}

// addRows adds a list of objects to the table with a title. Each row starts with the given cells.
func (d *document) addRows(title string, of []cell, list *yaml.Node) {
	table := d.table(title)
	for _, object := range list.Content {
		row, lists := slices.Clone(of), []*yaml.Node{}
		for pair := range slices.Chunk(object.Content, 2) {
			switch name, value := pair[0].Value, pair[1]; {
			case len(d.columns) > 0 && !slices.Contains(d.columns, name):
			case isTable(value):
				lists = append(lists, pair...)
			default:
				row = append(row, cell{name, cellText(value)})
			}
		}
		table.add(row)
		for pair := range slices.Chunk(lists, 2) {
			d.addRows(below(title, pair[0].Value), row[:min(len(of)+1, len(row))], pair[1])
		}
	}
}

// table returns the table with a title. The first call adds it.
func (d *document) table(title string) *block {
	for _, b := range d.blocks {
		if !b.isLines && b.title == title {
			return b
		}
	}
	table := &block{title: title, columns: slices.Clone(d.columns)}
	d.blocks = append(d.blocks, table)
	return table
}

// add adds a row, and a column for each new name.
func (b *block) add(cells []cell) {
	row := map[string]string{}
	for _, c := range cells {
		if !slices.Contains(b.columns, c.column) {
			b.columns = append(b.columns, c.column)
		}
		row[c.column] = c.text
	}
	b.rows = append(b.rows, row)
}

// cellText returns a value as one line, or "" if it is null or empty.
func cellText(value *yaml.Node) string {
	switch {
	case value.ShortTag() == "!!null" || value.Kind != yaml.ScalarNode && len(value.Content) == 0:
		return ""
	case value.Kind == yaml.ScalarNode:
		return value.Value
	case value.Kind == yaml.MappingNode:
		return shortened(flowText(value))
	}
	return shortened(strings.Join(convert.All(value.Content, cellText), ", "))
}

// maxNested is the maximum length of a list or an object in a cell.
const maxNested = 120

func shortened(text string) string {
	if all := []rune(text); len(all) > maxNested {
		return string(all[:maxNested-1]) + "…"
	}
	return text
}

// flowText returns an object as YAML on one line.
func flowText(object *yaml.Node) string {
	object.Style = yaml.FlowStyle
	text, err := yaml.Marshal(object)
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(string(text))
}

// text returns a title, the names of the columns and the rows. Columns without values are left out.
func (b *block) text() string {
	lines := make([]string, len(b.rows)+1)
	for _, name := range b.columns {
		texts := []string{strings.ToUpper(name)}
		for _, row := range b.rows {
			texts = append(texts, row[name])
		}
		if strings.Join(texts[1:], "") == "" {
			continue
		}
		if b.isLines {
			texts[0] = ""
		}
		for i, text := range padded(texts) {
			lines[i] += text
		}
	}
	if b.isLines {
		lines = lines[1:]
	} else if b.title != "" {
		lines = slices.Insert(lines, 0, printed(b.title))
	}
	for i, line := range lines {
		lines[i] = strings.TrimRight(line, " ") + "\n"
	}
	return strings.Join(lines, "")
}

// padded returns the head and the cells of a column with the same width. It aligns numbers right.
func padded(texts []string) []string {
	format, width := "%*s  ", 0
	for i, text := range texts {
		texts[i] = printed(strings.ReplaceAll(text, "\n", "; "))
		width = max(width, utf8.RuneCountInString(texts[i]))
		if _, err := strconv.ParseFloat(text, 64); i > 0 && text != "" && err != nil {
			format = "%-*s  "
		}
	}
	for i, text := range texts {
		texts[i] = fmt.Sprintf(format, width, text)
	}
	return texts
}
