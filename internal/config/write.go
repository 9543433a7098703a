package config

import (
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/smartfeed/smartfeed/internal/settings"
)

// Options of Write.
type Options struct {
	Docs    bool // precede each value by a comment with its help text, default and bounds
	Changed bool // omit the values that are equal to their defaults
}

// Write writes a configuration as a YAML file. Both structs have the same type, and defaults has the default of every value.
func Write(w io.Writer, cfg, defaults any, o Options) error {
	root, err := encode(cfg, defaults, o)
	if err != nil || len(root.Content) == 0 {
		return err
	}
	enc := yaml.NewEncoder(w)
	enc.SetIndent(2)
	if err := enc.Encode(root); err != nil {
		return fmt.Errorf("write configuration: %w", err)
	}
	return enc.Close()
}

// Values returns a configuration as maps, lists and scalars for JSON. JSON has no infinity, so it is the string ".inf".
func Values(cfg, defaults any, o Options) (values any, err error) {
	root, err := encode(cfg, defaults, o)
	if err != nil {
		return nil, err
	}
	quoteInfinity(root)
	return values, root.Decode(&values)
}

func quoteInfinity(n *yaml.Node) {
	if n.Value == ".inf" || n.Value == "-.inf" {
		n.SetString(n.Value)
	}
	for _, child := range n.Content {
		quoteInfinity(child)
	}
}

// encode returns a configuration as a YAML node, with the options applied.
func encode(cfg, defaults any, o Options) (*yaml.Node, error) {
	root, before := new(yaml.Node), new(yaml.Node)
	if err := errors.Join(root.Encode(cfg), before.Encode(defaults)); err != nil {
		return nil, fmt.Errorf("write configuration: %w", err)
	}
	keys := map[string]Key{}
	for _, k := range Keys(defaults) {
		keys[k.Path] = k
	}
	applyOptions(root, before, "", keys, o)
	shortenDurations(root)
	return root, nil
}

// shortenDurations replaces durations such as 24h0m0s by 24h.
func shortenDurations(n *yaml.Node) {
	if d, err := time.ParseDuration(n.Value); err == nil && d.String() == n.Value {
		n.Value = settings.Short(d)
	}
	for _, child := range n.Content {
		shortenDurations(child)
	}
}

// applyOptions applies the options to a mapping and to those below it.
func applyOptions(n, before *yaml.Node, path string, keys map[string]Key, o Options) {
	var kept []*yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		name, value := n.Content[i], n.Content[i+1]
		at := strings.TrimPrefix(path+"."+name.Value, ".")
		key, isLeaf := keys[at]
		was := valueOf(before, name.Value)
		if !isLeaf {
			applyOptions(value, was, at, keys, o)
		}
		if o.Changed && (isLeaf && reflect.DeepEqual(value, was) || !isLeaf && len(value.Content) == 0) {
			continue
		}
		if o.Docs && isLeaf {
			name.HeadComment = key.comment()
		}
		kept = append(kept, name, value)
	}
	n.Content = kept
}

// comment describes a key: "neighbors kept per pin. Default 50, 1 to 1000."
func (k Key) comment() string {
	var facts []string
	if k.Default != "" && !strings.Contains(k.Default, "\n") {
		facts = append(facts, "default "+k.Default)
	}
	if k.Range != "" {
		facts = append(facts, k.Range)
	}
	text := capitalized(k.Help) + "."
	if len(facts) > 0 {
		text += " " + capitalized(strings.Join(facts, "; ")) + "."
	}
	return text
}

func capitalized(text string) string {
	if text == "" {
		return ""
	}
	return strings.ToUpper(text[:1]) + text[1:]
}

func valueOf(mapping *yaml.Node, name string) *yaml.Node {
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == name {
			return mapping.Content[i+1]
		}
	}
	return new(yaml.Node)
}
