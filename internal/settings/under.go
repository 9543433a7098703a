package settings

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
)

// Nested calls the method Validate of each nested struct that has one, and prepends the struct's name to its problems.
// config is a pointer to a struct.
func Nested(config any) error {
	v := reflect.ValueOf(config).Elem()
	var problems []error
	for i := range v.NumField() {
		f := v.Type().Field(i)
		nested, ok := v.Field(i).Addr().Interface().(interface{ Validate() error })
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
