// Package settings reads the defaults, bounds and help texts in the tags of configuration structs:
//
//	type Config struct {
//		Keep    int           `yaml:"keep" default:"50" range:"1..1000" help:"neighbors that a pin keeps"`
//		Offer   int           `yaml:"offer" default:"10" range:"0..keep" help:"neighbors that an action delivers"`
//		Expiry  time.Duration `yaml:"expiry" range:"0|1m.." help:"age at which a pin expires; 0: never"`
//		MaxSize Bytes         `yaml:"max_size" default:"64MiB" range:"1MiB..4GiB" help:"size of a file"`
//	}
//
// Each default, bound and help text is in a tag only. Defaults, Validate, `smartfeed config show --docs` and the
// configuration reference read the tags. Durations have the form of time.ParseDuration, and sizes that of Bytes. A bound may be
// the yaml name of another field of the struct. Either bound may be missing. A range that starts with "0|" also accepts zero.
// A field without a default tag has the zero value.
//
// This package imports no other package of the module, so every package may import it.
package settings

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// Defaults returns a T with the defaults of its fields and of the fields of nested structs. It panics if a default is not a
// value of its field.
func Defaults[T any]() T {
	var out T
	setDefaults(reflect.ValueOf(&out).Elem())
	return out
}

func setDefaults(v reflect.Value) {
	for f, field := range v.Fields() {
		if f.Type.Kind() == reflect.Struct && f.IsExported() {
			setDefaults(field)
		}
		text, ok := f.Tag.Lookup("default")
		if !ok {
			continue
		}
		value, err := parse(text, f.Type)
		if err != nil {
			panic(fmt.Sprintf("%s.%s: default %q: %v", v.Type(), f.Name, text, err))
		}
		field.Set(value)
	}
}

// Validate returns an error that lists every field of a struct that is out of its range: "keep: 0: want 1 to 1000". It does
// not check nested structs; see Nested. It panics if a range is malformed.
func Validate(config any) error {
	v := reflect.Indirect(reflect.ValueOf(config))
	var problems []error
	for f := range v.Fields() {
		if limits, ok := f.Tag.Lookup("range"); ok {
			problems = append(problems, check(v, f, limits))
		}
	}
	return errors.Join(problems...)
}

func check(parent reflect.Value, f reflect.StructField, limits string) error {
	value := parent.FieldByIndex(f.Index)
	orZero := strings.HasPrefix(limits, "0|")
	if orZero && value.IsZero() {
		return nil
	}
	lowText, highText, ok := strings.Cut(strings.TrimPrefix(limits, "0|"), "..")
	if !ok {
		panic(fmt.Sprintf("%s.%s: range %q without \"..\"", parent.Type(), f.Name, limits))
	}
	low, high := bound(parent, f, lowText), bound(parent, f, highText)
	if (!low.IsValid() || notBelow(value, low)) && (!high.IsValid() || notBelow(high, value)) {
		return nil
	}
	return fmt.Errorf("%s: %s: want %s", Name(f), text(value.Interface()), describe(boundText(low), boundText(high), orZero))
}

// RangeText returns the range of a field as text: "1h to 8760h", "at least 1m, or 0", "0 to keep". It is "" without a
// range.
func RangeText(f reflect.StructField) string {
	limits, orZero := strings.CutPrefix(f.Tag.Get("range"), "0|")
	low, high, ok := strings.Cut(limits, "..")
	if !ok {
		return ""
	}
	return describe(low, high, orZero)
}

// describe returns a range as text. A bound of "" is none.
func describe(low, high string, orZero bool) string {
	text := low + " to " + high
	switch {
	case high == "":
		text = "at least " + low
	case low == "":
		text = "at most " + high
	}
	if orZero {
		text += ", or 0"
	}
	return text
}

func boundText(bound reflect.Value) string {
	if !bound.IsValid() {
		return ""
	}
	return text(bound.Interface())
}

// bound returns a bound of a field's range, or the zero Value if there is none.
func bound(parent reflect.Value, f reflect.StructField, text string) reflect.Value {
	if text == "" {
		return reflect.Value{}
	}
	for other, value := range parent.Fields() {
		if Name(other) == text {
			return value
		}
	}
	value, err := parse(text, f.Type)
	if err != nil {
		panic(fmt.Sprintf("%s.%s: bound %q: %v", parent.Type(), f.Name, text, err))
	}
	return value
}

// notBelow reports whether a is at least b. It is false if one of them is NaN.
func notBelow(a, b reflect.Value) bool {
	if a.CanFloat() {
		return a.Float() >= b.Float()
	}
	return a.Int() >= b.Int()
}

// Name returns the name of a field in configuration files.
func Name(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
	return name
}

func parse(text string, t reflect.Type) (reflect.Value, error) {
	var value any
	var err error
	switch {
	case t == reflect.TypeFor[time.Duration]():
		value, err = time.ParseDuration(text)
	case t == reflect.TypeFor[Bytes]():
		value, err = ParseBytes(text)
	case t.Kind() == reflect.String:
		value = text
	case t.Kind() == reflect.Bool:
		value, err = strconv.ParseBool(text)
	case t.Kind() == reflect.Float64:
		value, err = strconv.ParseFloat(text, 64)
	case reflect.Zero(t).CanInt():
		value, err = strconv.ParseInt(text, 10, 64)
	default:
		err = fmt.Errorf("%s has no text form", t)
	}
	if err != nil {
		return reflect.Value{}, err
	}
	return reflect.ValueOf(value).Convert(t), nil
}

// Within returns an error if a field's value is outside [low, high] or NaN: "pools.max_candidates: 5: want 10 to 1000000".
func Within[T cmp.Ordered](field string, v, low, high T) error {
	if v >= low && v <= high { // false for NaN
		return nil
	}
	return fmt.Errorf("%s: %s: want %s to %s", field, text(v), text(low), text(high))
}

func text(v any) string {
	if d, ok := v.(time.Duration); ok {
		return Short(d)
	}
	return fmt.Sprint(v)
}

// Short formats a duration as 24h where Duration.String returns 24h0m0s.
func Short(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// Nested calls the method Validate of each nested struct that has one, and prepends the struct's name to its problems.
// config is a pointer to a struct.
func Nested(config any) error {
	v := reflect.ValueOf(config).Elem()
	var problems []error
	for f, field := range v.Fields() {
		nested, ok := field.Addr().Interface().(interface{ Validate() error })
		switch {
		case !ok || f.Type.Kind() != reflect.Struct:
		case strings.HasSuffix(f.Tag.Get("yaml"), ",inline"):
			problems = append(problems, nested.Validate())
		default:
			problems = append(problems, Under(Name(f), nested.Validate()))
		}
	}
	return errors.Join(problems...)
}

// Under prepends the name of a nested struct to each of its problems. They then start with the full path of a value:
// "pools.max_candidates: …".
func Under(name string, err error) error {
	var out []error
	for _, e := range Split(err) {
		out = append(out, fmt.Errorf("%s.%w", name, e))
	}
	return errors.Join(out...)
}

// Problems collects the problems of a configuration or a command line.
type Problems []error

// Want adds a problem unless ok is set. The arguments are those of fmt.Errorf.
func (p *Problems) Want(ok bool, format string, args ...any) {
	if !ok {
		p.Add(fmt.Errorf(format, args...))
	}
}

// Add adds errors. It ignores nil.
func (p *Problems) Add(errs ...error) { *p = append(*p, errs...) }

// Err returns an error that lists all problems, or nil.
func (p Problems) Err() error { return errors.Join(p...) }

// Split returns the errors in joined errors, at every depth. It returns none for nil.
func Split(err error) []error {
	if err == nil {
		return nil
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	var out []error
	for _, e := range joined.Unwrap() {
		out = append(out, Split(e)...)
	}
	return out
}
