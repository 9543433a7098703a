package feature

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/smartfeed/smartfeed/internal/reload"
	"github.com/smartfeed/smartfeed/internal/settings"
	"github.com/smartfeed/smartfeed/schemas"
)

// Builtin is the text of the definitions that Load returns without a file: the counts, lists and means that most models
// start with. It is also the example to copy from.
//
//go:embed features.yaml
var Builtin string

// builtinName is the file name in errors about Builtin.
const builtinName = "built-in features.yaml"

// DefinitionError is a problem of a definitions file.
type DefinitionError struct {
	File    string
	Line    int    // from 1
	Feature string // name of the definition; "" if there is none
	Problem string
}

// Error returns the problem with the file, the line and the feature.
func (e *DefinitionError) Error() string {
	if e.Feature == "" {
		return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Problem)
	}
	return fmt.Sprintf("%s:%d: feature %s: %s", e.File, e.Line, e.Feature, e.Problem)
}

// Load reads the definitions from a file, or from Builtin if path is empty. It returns the errors of Parse. It also
// returns an error if the file cannot be read or is larger than MaxFileBytes.
func Load(path string) ([]Definition, error) {
	if path == "" {
		return Parse(builtinName, []byte(Builtin))
	}
	text, err := reload.Read(path, MaxFileBytes)
	if err != nil {
		return nil, fmt.Errorf("read feature definitions: %w", err)
	}
	return Parse(path, text)
}

// Parse reads definitions in the form of features.yaml, in the order of the file. It reports all mistakes at once, as a
// join of *DefinitionError, each with its line. name is the file name in the mistakes.
func Parse(name string, text []byte) ([]Definition, error) {
	p := &parser{file: name}
	var defs []Definition
	if root := p.root(text); root != nil {
		defs = p.top(root)
	}
	if err := errors.Join(p.mistakes...); err != nil {
		return nil, err
	}
	return defs, nil
}

// parser collects mistakes while it reads.
type parser struct {
	file     string
	feature  string // the definition that is being read
	mistakes []error
}

func (p *parser) at(line int, format string, args ...any) {
	p.mistakes = append(p.mistakes, &DefinitionError{File: p.file, Line: line, Feature: p.feature, Problem: fmt.Sprintf(format, args...)})
}

// root returns the single node of the text, or nil if there is none.
func (p *parser) root(text []byte) *yaml.Node {
	if len(text) > MaxFileBytes {
		p.at(1, "more than %d bytes", MaxFileBytes)
		return nil
	}
	var root yaml.Node
	dec := yaml.NewDecoder(bytes.NewReader(text))
	if err := dec.Decode(&root); err != nil && !errors.Is(err, io.EOF) {
		p.syntax(err)
		return nil
	}
	if err := dec.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		p.at(1, "more than one document")
	}
	if len(root.Content) == 0 {
		p.at(1, "no features: want a list under the key features")
		return nil
	}
	return resolve(root.Content[0])
}

// syntax reports an error of the YAML library, whose text contains the line.
func (p *parser) syntax(err error) {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	line := 1
	if m := regexp.MustCompile(`^line (\d+): (.*)`).FindStringSubmatch(text); m != nil {
		line, _ = strconv.Atoi(m[1])
		text = m[2]
	}
	p.at(line, "%s", text)
}

func (p *parser) top(n *yaml.Node) []Definition {
	var list, sets *yaml.Node
	for key, value := range p.entries(n, "the file") {
		switch key.Value {
		case "features":
			list = value
		case "feature_sets":
			sets = value
		default:
			p.at(key.Line, "unknown key %q: want features or feature_sets", key.Value)
		}
	}
	if list == nil {
		p.at(n.Line, "no features: want a list under the key features")
		return nil
	}
	if list.Kind != yaml.SequenceNode {
		p.at(list.Line, "features: want a list")
		return nil
	}
	if len(list.Content) > MaxDefinitions {
		p.at(list.Line, "features: %d definitions: at most %d", len(list.Content), MaxDefinitions)
	}
	defs := p.definitions(list)
	if sets != nil {
		p.sets(defs, sets)
	}
	return defs
}

func (p *parser) definitions(list *yaml.Node) []Definition {
	defs, lines := make([]Definition, len(list.Content)), make([]keyLines, len(list.Content))
	first := map[string]int{}
	for i, n := range list.Content {
		defs[i], lines[i] = p.definition(resolve(n))
		if line, ok := first[defs[i].Name]; ok && defs[i].Name != "" {
			p.at(lines[i].of("name"), "name: already the name of the feature in line %d", line)
		}
		first[defs[i].Name] = lines[i].of("name")
		p.feature = ""
	}
	for i := range defs {
		p.feature = defs[i].Name
		if defs[i].Aggregate == Ratio {
			p.ratio(defs, &defs[i], lines[i])
		}
	}
	p.feature = ""
	return defs
}

// keyLines holds the lines of the keys of a definition.
type keyLines struct {
	start int
	keys  map[string]int
}

func (l keyLines) of(key string) int {
	if line, ok := l.keys[key]; ok {
		return line
	}
	return l.start
}

func (l keyLines) has(key string) bool { _, ok := l.keys[key]; return ok }

func (p *parser) definition(n *yaml.Node) (Definition, keyLines) {
	lines := keyLines{start: n.Line, keys: map[string]int{}}
	d := Definition{Window: Kept}
	before := len(p.mistakes)
	for key, value := range p.entries(n, "a feature") {
		if key.Value == "name" {
			p.feature = value.Value
		}
		lines.keys[key.Value] = key.Line
		p.key(&d, key, value)
	}
	// Keys are checked together only if each key by itself is valid, so that one error gives one message.
	if len(p.mistakes) == before {
		(&combination{p, &d, lines}).check()
	}
	return d, lines
}

// scalar reads a scalar with parse, whose error states the expected form.
func scalar[T any](p *parser, v *yaml.Node, key string, parse func(string) (T, error)) T {
	text := p.text(v, key)
	value, err := parse(text)
	if err != nil && isText(v) {
		p.at(v.Line, "%s %q: %v", key, text, err)
	}
	return value
}

func parseName(s string) (string, error) {
	if !regexp.MustCompile(`^[a-z][a-z0-9_]*$`).MatchString(s) || len(s) > MaxNameBytes {
		return "", fmt.Errorf("want [a-z][a-z0-9_]*, at most %d bytes", MaxNameBytes)
	}
	return s, nil
}

func parseEntity(s string) (Entity, error) {
	if e := Entity(s); e == User || e == Pin || e == Pair {
		return e, nil
	}
	return "", errors.New("want user, pin or pair")
}

func parseEmbedding(s string) (Embedding, error) {
	if e := Embedding(s); e == Float32 || e == Int8 {
		return e, nil
	}
	return "", errors.New("want float32 or int8")
}

func parseAggregate(s string) (Aggregate, error) {
	if _, ok := Aggregate(s).rule(); !ok {
		return "", errors.New("want count, sum, mean, min, max, distinct, last, top, sequence, rate, mean_embedding, cosine or ratio")
	}
	return Aggregate(s), nil
}

func parseWindow(s string) (time.Duration, error) {
	d, err := parseDuration(s, 1, Kept)
	if err == nil && d%time.Millisecond != 0 {
		err = errors.New("want a whole number of milliseconds")
	}
	return d, err
}

func parseHalfLife(s string) (time.Duration, error) {
	return parseDuration(s, MinHalfLife, MaxHalfLife)
}

func parseDuration(s string, least, most time.Duration) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	switch {
	case err != nil:
		return 0, errors.New("want a duration such as 90s, 2m or 24h")
	case least == 1 && (d < least || d > most):
		return d, fmt.Errorf("want more than 0 and at most %s", settings.Short(most))
	case d < least || d > most:
		return d, fmt.Errorf("want %s to %s", settings.Short(least), settings.Short(most))
	}
	return d, nil
}

func parseN(s string) (int, error) {
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 || n > MaxN {
		return 0, fmt.Errorf("want a whole number from 1 to %d", MaxN)
	}
	return n, nil
}

func (p *parser) verbs(v *yaml.Node) []schemas.Verb {
	var verbs []schemas.Verb
	for _, s := range parseList(p, v, "verbs", MaxVerbs, asText) {
		if s == "" {
			p.at(v.Line, "verbs: an empty verb")
		}
		verbs = append(verbs, schemas.Verb(s))
	}
	return verbs
}

func (p *parser) where(v *yaml.Node) []Condition {
	var all []Condition
	for key, value := range p.entries(v, "where") {
		path := scalar(p, key, "where", ParsePath)
		if path.isVector() {
			p.at(key.Line, "where %s: an embedding has no values to compare", path)
		}
		in := parseList(p, value, "where "+key.Value, MaxValues, asText)
		if len(in) == 0 {
			p.at(value.Line, "where %s: no values, nothing would match", key.Value)
		}
		all = append(all, Condition{Path: path, In: in})
	}
	if len(all) > MaxConditions {
		p.at(v.Line, "where: %d conditions: at most %d", len(all), MaxConditions)
	}
	return all
}

// text reads a scalar as it is written: the number 3 is the text "3".
func (p *parser) text(v *yaml.Node, what string) string {
	if !isText(v) {
		p.at(v.Line, "%s: want a text", what)
		return ""
	}
	return v.Value
}

func isText(v *yaml.Node) bool { return v.Kind == yaml.ScalarNode && v.Tag != "!!null" }

func asText(s string) (string, error) { return s, nil }

// parseList reads a list of scalars, or a scalar as a list of one, with parse. Repeats are mistakes.
func parseList[T comparable](p *parser, v *yaml.Node, what string, most int, parse func(string) (T, error)) []T {
	nodes := []*yaml.Node{v}
	if v.Kind == yaml.SequenceNode {
		nodes = v.Content
	}
	if len(nodes) > most {
		p.at(v.Line, "%s: %d values: at most %d", what, len(nodes), most)
	}
	var out []T
	for _, n := range nodes {
		before := len(p.mistakes)
		value := scalar(p, resolve(n), what, parse)
		if len(p.mistakes) == before && slices.Contains(out, value) {
			p.at(n.Line, "%s: %q twice", what, fmt.Sprint(value))
		}
		out = append(out, value)
	}
	return out
}

// entries ranges over the keys and values of a mapping. A repeated key is a mistake.
func (p *parser) entries(n *yaml.Node, what string) func(yield func(key, value *yaml.Node) bool) {
	return func(yield func(key, value *yaml.Node) bool) {
		if n.Kind != yaml.MappingNode {
			p.at(n.Line, "%s: want keys with values", what)
			return
		}
		seen := map[string]bool{}
		for i := 0; i+1 < len(n.Content); i += 2 {
			key := n.Content[i]
			if seen[key.Value] {
				p.at(key.Line, "%s: the key %q twice", what, key.Value)
			}
			seen[key.Value] = true
			if !yield(key, resolve(n.Content[i+1])) {
				return
			}
		}
	}
}

// resolve returns the target of an alias, or n itself.
func resolve(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}
