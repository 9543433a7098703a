package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/smartfeed/smartfeed/internal/command"
	"github.com/smartfeed/smartfeed/internal/convert"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// RegistryCheck is the name of the check on the schema registry.
const RegistryCheck = "registry"

// Registry returns the check on a schema registry: it must respond, and must have or accept the schemas of this version.
// embedded means that it is the registry of `smartfeed dev`, which need not be running.
func Registry(registry *schemas.Registry, embedded bool) Check {
	return Check{Name: RegistryCheck, Examine: func(ctx context.Context, found *Findings) error {
		settings, err := registry.Settings(ctx)
		switch {
		case err != nil && embedded:
			found.Note(`start "smartfeed dev", which includes a registry; or set registry`, "no registry responds: %v", reason(ctx, err))
			return nil
		case err != nil:
			return err
		}
		schemas := &dryRegistry{registry: registry}
		if _, err := topics.Open(ctx, schemas); err != nil {
			return advise("give each new field of an incompatible schema a default, or use another topic", "%w", err)
		}
		schemas.report(settings, found)
		return nil
	}, Advice: "check the address in registry, and registry_client"}
}

// dryRegistry looks up schemas and checks their compatibility, but registers none.
type dryRegistry struct {
	registry *schemas.Registry
	known    int
	fresh    []string
}

// Register returns the id of a schema. For a new schema it returns an unused id.
func (l *dryRegistry) Register(ctx context.Context, subject, schema string) (int, error) {
	id, known, err := l.registry.Lookup(ctx, subject, schema)
	switch {
	case err != nil:
		return 0, err
	case !known:
		l.fresh = append(l.fresh, subject)
		return 1 + len(l.fresh), nil
	}
	l.known++
	if _, err := l.registry.SchemaByID(ctx, id); err != nil {
		return 0, fmt.Errorf("%s has the schema with id %d: %w", subject, id, err)
	}
	return id, nil
}

// SchemaByID always fails, because the check reads no records.
func (l *dryRegistry) SchemaByID(ctx context.Context, id int) (string, error) {
	return "", errors.New("not supported")
}

func (l *dryRegistry) report(s schemas.RegistrySettings, found *Findings) {
	if len(l.fresh) > 0 && s.Mode != "" && s.Mode != "READWRITE" {
		found.Problem("set its mode to READWRITE until the new version has started",
			"%s must be registered, but the registry's mode is %s: %s", command.Count(len(l.fresh), "schema"), s.Mode, strings.Join(l.fresh, ", "))
		return
	}
	if len(l.fresh) > 0 {
		found.Note("a process of this version registers them when it starts",
			"%s not registered yet: %s", command.Count(len(l.fresh), "schema"), few(l.fresh, func(subject string) string { return subject }))
	}
	switch {
	case s.Compatibility == "NONE":
		found.Warn("set BACKWARD: only the registry checks the schemas of other producers", "the registry accepts incompatible schemas (compatibility NONE)")
	case strings.HasPrefix(s.Compatibility, "FORWARD"):
		found.Warn("set BACKWARD or FULL: consumers are upgraded before producers", "the compatibility is %s: the registry accepts schemas that cannot read existing records", s.Compatibility)
	}
	found.OK("%s registered, compatibility %s", command.Count(l.known, "schema"), cmp.Or(s.Compatibility, "unknown"))
}

// few formats the first elements of a list.
func few[T any](list []T, text func(T) string) string {
	texts := convert.All(list[:min(4, len(list))], text)
	if more := len(list) - len(texts); more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(texts, ", "), more)
	}
	return strings.Join(texts, ", ")
}
