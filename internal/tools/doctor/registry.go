package doctor

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/smartfeed/smartfeed/internal/command"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// RegistryCheck is the name of the check on the schema registry.
const RegistryCheck = "registry"

// Registry returns the check on a schema registry: it must respond, and have our schemas or accept them. own says that
// the registry is the one of `smartfeed dev`, which may not be running.
func Registry(registry *schemas.Registry, own bool) Check {
	return Check{Name: RegistryCheck, Look: func(ctx context.Context, found *Findings) {
		settings, err := registry.Settings(ctx)
		if err != nil {
			if own {
				found.Note(`start "smartfeed dev", which brings a registry of its own; or name yours in registry`, "none answers: %v", reason(ctx, err))
				return
			}
			found.Problem("check the address in registry, and registry_client", "%v", reason(ctx, err))
			return
		}
		asked := &lookUp{registry: registry}
		if _, err := topics.Open(ctx, asked); err != nil {
			found.Problem("see the schemas' own words: an incompatible one needs a default for what is new, or another topic", "%v", reason(ctx, err))
			return
		}
		asked.report(settings, found)
	}}
}

// lookUp is a registry that registers nothing.
type lookUp struct {
	registry *schemas.Registry
	known    int
	fresh    []string
}

// Register returns the id of a schema. A new schema gets an unused id.
func (l *lookUp) Register(ctx context.Context, subject, schema string) (int, error) {
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
		return 0, fmt.Errorf("%s has the schema under id %d, but: %w", subject, id, err)
	}
	return id, nil
}

// SchemaByID always fails, because the check reads no records.
func (l *lookUp) SchemaByID(ctx context.Context, id int) (string, error) {
	return "", errors.New("nothing is read here")
}

func (l *lookUp) report(s schemas.RegistrySettings, found *Findings) {
	if len(l.fresh) > 0 && s.Mode != "" && s.Mode != "READWRITE" {
		found.Problem("set its mode to READWRITE while the new version starts for the first time",
			"%s must be registered, but its mode is %s: %s", command.Count(len(l.fresh), "schema"), s.Mode, strings.Join(l.fresh, ", "))
		return
	}
	if len(l.fresh) > 0 {
		found.Note("they are registered when a process of this version starts", "%s not known yet: %s", command.Count(len(l.fresh), "schema"), few(l.fresh))
	}
	switch {
	case s.Compatibility == "NONE":
		found.Warn("set BACKWARD: what other producers register is checked by the registry alone", "it takes incompatible schemas (compatibility NONE)")
	case strings.HasPrefix(s.Compatibility, "FORWARD"):
		found.Warn("set BACKWARD or FULL: readers are upgraded before writers here", "its compatibility is %s: it would take a schema that cannot read what there is", s.Compatibility)
	}
	found.OK("%s with their ids, compatibility %s", command.Count(l.known, "schema"), orUnknown(s.Compatibility))
}

func orUnknown(s string) string {
	if s == "" {
		return "not told"
	}
	return s
}

// few formats the first elements of a list.
func few(list []string) string {
	if len(list) > 4 {
		return strings.Join(list[:4], ", ") + fmt.Sprintf(" and %d more", len(list)-4)
	}
	return strings.Join(list, ", ")
}
