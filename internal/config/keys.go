package config

import (
	"errors"
	"reflect"
	"strings"

	"github.com/smartfeed/smartfeed/internal/settings"
)

// Key describes a value that can be set.
type Key struct {
	Path    string // pools.max_candidates
	Env     string // SMARTFEED_POOLS_MAX_CANDIDATES
	Help    string // one line, without a full stop
	Type    string // duration, size, int, number, bool, string, list or map
	Default string // as it is written in YAML
	Range   string // "10 to 1000000"; "" without bounds
	// Elements are the values of one element of a list or map of structs: pools.rules[].name, pools.rules.NAME.cap.
	// They have no variable. Default is "required" if the zero value is out of range.
	Elements []Key
}

// Keys returns the values of the struct that cfg points to, in the order of the struct. Its values are the defaults.
func Keys(cfg any) []Key {
	var out []Key
	for _, l := range leaves(cfg) {
		out = append(out, Key{
			Path: l.path, Env: l.env(), Help: l.help(), Type: typeName(l.value.Type()), Default: show(l.value),
			Range: settings.RangeText(l.field), Elements: elements(l.path, l.value.Type()),
		})
	}
	return out
}

// elements returns the values of one element of a list or map of structs. A type with a method Element() any says which
// values an element has by default.
func elements(path string, t reflect.Type) []Key {
	switch {
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Struct:
		path += "[]."
	case t.Kind() == reflect.Map && t.Elem().Kind() == reflect.Struct:
		path += ".NAME."
	default:
		return nil
	}
	one := reflect.New(t.Elem()).Interface()
	if known, ok := reflect.Zero(t).Interface().(interface{ Element() any }); ok {
		one = known.Element()
	}
	problems := settings.Split(errors.Join(settings.Validate(one), settings.Nested(one)))
	var out []Key
	for _, k := range Keys(one) {
		for _, p := range problems {
			if strings.HasPrefix(p.Error(), k.Path+":") || strings.HasPrefix(p.Error(), k.Path+" ") {
				k.Default = "required"
			}
		}
		k.Path, k.Env = path+k.Path, ""
		for i := range k.Elements {
			k.Elements[i].Path = path + k.Elements[i].Path
		}
		out = append(out, k)
	}
	return out
}

// Changed returns the paths of the values that differ between two structs of one type, given by pointers.
func Changed(a, b any) (paths []string) {
	others := leaves(b)
	for i, l := range leaves(a) {
		if !reflect.DeepEqual(l.value.Interface(), others[i].value.Interface()) {
			paths = append(paths, l.path)
		}
	}
	return paths
}
