// Package config loads a configuration struct from four sources. Each source overrides the previous one: the struct itself
// (the defaults), a YAML file, environment variables, and flags.
//
// The yaml tags of the struct define the keys. A field with the tag max_candidates in a struct with the tag pools has the
// key pools.max_candidates, the flag --pools.max_candidates and the variable SMARTFEED_POOLS_MAX_CANDIDATES. Values are
// YAML in every source: 90s, [a, b], true. A list of strings may also have the form a,b. The keys of a map are added to
// the existing ones.
//
// Load reports all errors together. Unknown keys and values of the wrong type have the line of the file, or the name of
// the variable or flag. Errors of the struct's Validate have the line if the file has set the value.
package config

import (
	"encoding"
	"errors"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"

	"github.com/smartfeed/smartfeed/internal/reload"
	"github.com/smartfeed/smartfeed/internal/settings"
)

// EnvPrefix is the prefix of every environment variable that sets a value.
const EnvPrefix = "SMARTFEED_"

// A FieldError is a problem of one value. Validate methods need not return it: Load adds the line of the file to each
// problem whose text starts with the value's path and a space or a colon ("pools.max_candidates: …").
type FieldError struct {
	Where   string // "smartfeed.yaml:12", "SMARTFEED_POOLS_MAX_CANDIDATES", "--pools.max_candidates"
	Problem string
}

// Error returns the problem after the place where the value was set.
func (e *FieldError) Error() string { return e.Where + ": " + e.Problem }

// Source holds the sources of a load. The zero Source gives the defaults.
type Source struct {
	File    string // path of the YAML file; "" for none
	Environ []string
	Flags   *pflag.FlagSet // as filled by AddFlags and parsed; nil for none
}

// leaf is a value that can be set.
type leaf struct {
	path  string
	field reflect.StructField
	value reflect.Value
}

func (l leaf) help() string { return l.field.Tag.Get("help") }

// env returns the environment variable: SMARTFEED_POOLS_MAX_CANDIDATES for pools.max_candidates.
func (l leaf) env() string {
	return EnvPrefix + strings.ToUpper(strings.NewReplacer(".", "_", "-", "_").Replace(l.path))
}

// AddFlags adds a flag for every value of the struct that cfg points to. The value in cfg is the flag's default, and the
// help tag is its usage text. Flags of nested values are hidden, because there are too many for one screen.
func AddFlags(cfg any, flags *pflag.FlagSet) {
	for _, l := range leaves(cfg) {
		if flags.Lookup(l.path) != nil {
			continue
		}
		text := &textValue{text: show(l.value), kind: typeName(l.value.Type())}
		f := flags.VarPF(text, l.path, "", l.help())
		f.Hidden = strings.Contains(l.path, ".")
		if l.value.Kind() == reflect.Bool {
			f.NoOptDefVal = "true"
		}
	}
}

// Load sets the struct that cfg points to and calls its method Validate() error, if it has one.
func Load(cfg any, src Source) error {
	all := leaves(cfg)
	lines, problems := loadFile(cfg, src)
	problems = append(problems, loadEnv(all, src)...)
	problems = append(problems, loadFlags(all, src.Flags)...)
	if v, ok := cfg.(interface{ Validate() error }); ok && len(problems) == 0 {
		problems = append(problems, located(v.Validate(), src.File, lines)...)
	}
	return errors.Join(problems...)
}

func loadFile(cfg any, src Source) (map[string]int, []error) {
	file := src.File
	if file == "" {
		return nil, nil
	}
	text, err := reload.Read(file, MaxFileBytes)
	if err != nil {
		return nil, []error{fmt.Errorf("read configuration: %w", err)}
	}
	if len(text) > MaxFileBytes {
		return nil, []error{fmt.Errorf("read configuration %s: more than %d bytes", file, MaxFileBytes)}
	}
	var root yaml.Node
	if err := yaml.Unmarshal(text, &root); err != nil {
		return nil, []error{&FieldError{file, strings.TrimPrefix(err.Error(), "yaml: ")}}
	}
	lines := lineNumbers(&root)
	return lines, decodeErrors(decodeStrict(text, cfg), file, lines)
}

// MaxFileBytes is the maximum size of a configuration file. A file of a thousand lines has a tenth of it.
const MaxFileBytes = 1 << 20

func decodeStrict(text []byte, cfg any) error {
	dec := yaml.NewDecoder(strings.NewReader(string(text)))
	dec.KnownFields(true)
	err := dec.Decode(cfg)
	if errors.Is(err, io.EOF) { // an empty file sets nothing
		return nil
	}
	return err
}

var lineOf = regexp.MustCompile(`^line (\d+): (.*)$`)

// unknownField matches yaml's message for a key that the struct does not have.
var unknownField = regexp.MustCompile(`^field (\S+) not found in type \S+$`)

// decodeErrors returns one error per problem of the file, with its line: "smartfeed.yaml:4: unknown key pools.color".
func decodeErrors(err error, file string, lines map[string]int) []error {
	var types *yaml.TypeError
	if !errors.As(err, &types) {
		if err == nil {
			return nil
		}
		return []error{&FieldError{file, err.Error()}}
	}
	var out []error
	for _, text := range types.Errors {
		where := file
		if m := lineOf.FindStringSubmatch(text); m != nil {
			where, text = file+":"+m[1], m[2]
			if field := unknownField.FindStringSubmatch(text); field != nil {
				text = "unknown key " + pathAt(m[1], field[1], lines)
			}
		}
		out = append(out, &FieldError{where, text})
	}
	return out
}

// pathAt returns the path that ends with a key and starts on a line of the file, or else the key alone.
func pathAt(line, key string, lines map[string]int) string {
	for path, n := range lines {
		if strconv.Itoa(n) == line && (path == key || strings.HasSuffix(path, "."+key)) {
			return path
		}
	}
	return key
}

func loadEnv(all []leaf, src Source) []error {
	known := map[string]leaf{}
	for _, l := range all {
		known[l.env()] = l
	}
	var problems []error
	for _, kv := range src.Environ {
		name, text, _ := strings.Cut(kv, "=")
		l, ok := known[name]
		if !ok {
			if strings.HasPrefix(name, EnvPrefix) && !slices.Contains(otherVariables, name) && !isServiceLink(kv) {
				problems = append(problems, &FieldError{name, "unknown variable: no key of the configuration has this name"})
			}
			continue
		}
		if err := set(l.value, text); err != nil {
			problems = append(problems, &FieldError{name, err.Error()})
		}
	}
	return problems
}

// otherVariables have the prefix, but are not keys of the configuration.
var otherVariables = []string{EnvPrefix + "CONFIG", EnvPrefix + "TOKEN"}

func loadFlags(all []leaf, flags *pflag.FlagSet) []error {
	if flags == nil {
		return nil
	}
	var problems []error
	for _, l := range all {
		f := flags.Lookup(l.path)
		if f == nil || !f.Changed {
			continue
		}
		if err := set(l.value, f.Value.String()); err != nil {
			problems = append(problems, &FieldError{"--" + l.path, err.Error()})
		}
	}
	return problems
}

// located prepends the line of the file that set a value to each problem that starts with the value's path.
func located(err error, file string, lines map[string]int) []error {
	var out []error
	for _, e := range settings.Split(err) {
		path, _, _ := strings.Cut(e.Error(), " ")
		if n, ok := lines[strings.TrimSuffix(path, ":")]; ok {
			e = &FieldError{fmt.Sprintf("%s:%d", file, n), e.Error()}
		}
		out = append(out, e)
	}
	return out
}

func lineNumbers(root *yaml.Node) map[string]int {
	lines := map[string]int{}
	var walk func(n *yaml.Node, path string)
	walk = func(n *yaml.Node, path string) {
		if n.Kind == yaml.DocumentNode && len(n.Content) > 0 {
			walk(n.Content[0], path)
		}
		if n.Kind != yaml.MappingNode {
			return
		}
		for pair := range slices.Chunk(n.Content, 2) {
			name := strings.TrimPrefix(path+"."+pair[0].Value, ".")
			lines[name] = pair[0].Line
			walk(pair[1], name)
		}
	}
	walk(root, "")
	return lines
}

// leaves returns the values of the struct that cfg points to, depth first.
func leaves(cfg any) []leaf {
	var out []leaf
	var walk func(v reflect.Value, path string)
	walk = func(v reflect.Value, path string) {
		for field, value := range v.Fields() {
			name, options, _ := strings.Cut(field.Tag.Get("yaml"), ",")
			if name == "-" || !field.IsExported() {
				continue
			}
			at := path + name
			switch {
			case options == "inline":
				walk(value, path)
			case field.Type.Kind() == reflect.Struct:
				walk(value, at+".")
			default:
				out = append(out, leaf{path: at, field: field, value: value})
			}
		}
	}
	walk(reflect.ValueOf(cfg).Elem(), "")
	return out
}

func set(v reflect.Value, text string) error {
	if v.Kind() == reflect.String {
		v.SetString(text)
		return nil
	}
	if v.Type() == reflect.TypeFor[[]string]() && !strings.HasPrefix(strings.TrimSpace(text), "[") {
		v.Set(reflect.ValueOf(strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' })))
		return nil
	}
	fresh := reflect.New(v.Type())
	if v.Kind() == reflect.Map { // as in a file: keys are added
		fresh.Elem().Set(reflect.MakeMap(v.Type()))
		for _, k := range v.MapKeys() {
			fresh.Elem().SetMapIndex(k, v.MapIndex(k))
		}
	}
	if err := decodeStrict([]byte(text), fresh.Interface()); err != nil {
		return fmt.Errorf("%q: want %s", text, typeName(v.Type()))
	}
	v.Set(fresh.Elem())
	return nil
}

func show(v reflect.Value) string {
	if list, ok := v.Interface().([]string); ok {
		return strings.Join(list, ",")
	}
	if v.Kind() == reflect.String {
		return v.String()
	}
	var node yaml.Node
	if err := node.Encode(v.Interface()); err != nil {
		return ""
	}
	shortenDurations(&node)
	text, err := yaml.Marshal(&node)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

// textValue is a flag that keeps its text until Load parses it. So Load reports the errors of all flags together.
type textValue struct{ text, kind string }

func (t *textValue) String() string     { return t.text }
func (t *textValue) Set(s string) error { t.text = s; return nil }
func (t *textValue) Type() string       { return t.kind }

// typeName returns the name of a type for people: duration, size, int, number, bool, string, list or map.
func typeName(t reflect.Type) string {
	switch {
	case t == reflect.TypeFor[time.Duration]():
		return "duration"
	case t == reflect.TypeFor[settings.Bytes]():
		return "size"
	case t.Kind() == reflect.String, t.Implements(reflect.TypeFor[encoding.TextMarshaler]()):
		return "string"
	case t.Kind() == reflect.Slice:
		return "list"
	case reflect.Zero(t).CanFloat():
		return "number"
	case reflect.Zero(t).CanInt(), reflect.Zero(t).CanUint():
		return "int"
	}
	return t.Kind().String() // bool, map
}
