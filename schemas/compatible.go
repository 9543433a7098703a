package schemas

import (
	"errors"
	"fmt"
)

// checkBackward checks whether a reader with an Avro schema of this program can read every record that was written with
// another, by the rules of "schema resolution" in the Avro specification. It returns nil, or all obstacles joined, each with
// the path of the field: "candidates[].score: type changed from string to double".
//
// These changes are compatible:
//
//   - a removed field, a new field with a default, and a reordered or aliased field;
//   - int widened to long, float or double; long to float or double; float to double; string and bytes exchanged;
//   - a type that became a branch of a union;
//   - an enum that gained symbols or has a default.
//
// Beyond the specification, another logical type of the same number (milliseconds for microseconds) is an obstacle.
func checkBackward(reader, writer string) error {
	r, err := parseReader(reader)
	if err != nil {
		return fmt.Errorf("reader's schema: %w", err)
	}
	w, err := parseSchema(writer)
	if err != nil {
		return fmt.Errorf("writer's schema: %w", err)
	}
	_, problems := resolve(r, w)
	return errors.Join(problems...)
}
