package reference

import (
	"cmp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"

	"github.com/smartfeed/smartfeed/app"
	"github.com/smartfeed/smartfeed/internal/cli"
	"github.com/smartfeed/smartfeed/internal/config"
	"github.com/smartfeed/smartfeed/internal/settings"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/serving/feature"
)

// configuration has a section for each top-level key.
func configuration(t *testing.T, p *page) {
	p.text("A value is set in `smartfeed.yaml` (or the file in `--config` or `SMARTFEED_CONFIG`), by its environment variable, or by a flag: " +
		"`pools.max_candidates` is `SMARTFEED_POOLS_MAX_CANDIDATES` and `--pools.max_candidates`. A flag overrides the variable, and the variable overrides the file. " +
		"`smartfeed config show --docs` prints all values in effect, and `smartfeed config check` reports mistakes with their lines.")
	p.text("Durations have a unit: `90s`, `2m`, `24h`. Sizes have a unit, too, or are a number of bytes: `64KiB`, `16MiB`, `1GiB`. A list of strings is written as `[a, b]`, or as `a,b` in a " +
		"variable or flag. Other lists and maps are written in YAML. The keys of a map are added to the existing ones. Paths of files are relative " +
		"to the working directory, unless the description says otherwise.")
	defaults := app.DefaultConfig()
	sections, names := map[string][]config.Key{}, []string{"general"}
	for _, k := range config.Keys(&defaults) {
		name, _, nested := strings.Cut(k.Path, ".")
		if !nested {
			name = "general"
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
		sections[name] = append(sections[name], k)
	}
	for _, name := range names {
		p.text("## %s", name)
		var rows, inner [][]string
		var long []config.Key
		for _, k := range sections[name] {
			if k.Help == "" {
				t.Errorf("%s has no help text", k.Path)
			}
			text := defaultOf(t, k)
			if len(text) > 80 {
				text, long = "see below", append(long, k)
			}
			rows = append(rows, []string{code(k.Path), sentence(k.Help), k.Type, text, k.Range, code(k.Env)})
			inner = append(inner, elementsOf(t, k.Elements)...)
		}
		p.table([]string{"Key", "Description", "Type", "Default", "Range", "Variable"}, rows)
		if len(inner) > 0 {
			p.text("Elements of the lists and maps above. `NAME` stands for a key of a map.")
			p.table([]string{"Key", "Description", "Type", "Default", "Range"}, inner)
		}
		for _, k := range long {
			p.text("Default of `%s`:", k.Path)
			p.block("yaml", nested(strings.Split(k.Path, "."), k.Default))
		}
	}
}

func elementsOf(t *testing.T, keys []config.Key) (rows [][]string) {
	for _, k := range keys {
		if k.Help == "" {
			t.Errorf("%s has no help text", k.Path)
		}
		rows = append(rows, []string{code(k.Path), sentence(k.Help), k.Type, defaultOf(t, k), k.Range})
		rows = append(rows, elementsOf(t, k.Elements)...)
	}
	return rows
}

// defaultOf returns a default on one line.
func defaultOf(t *testing.T, k config.Key) string {
	t.Helper()
	switch k.Default {
	case "", "[]", "{}":
		return map[string]string{"string": "empty"}[k.Type] + map[bool]string{true: "none"}[k.Type != "string"]
	case "required":
		return k.Default
	}
	text := k.Default
	if strings.Contains(text, "\n") || k.Type == "list" && strings.HasPrefix(text, "-") || k.Type == "map" {
		var node yaml.Node
		must.OK(t, yaml.Unmarshal([]byte(text), &node))
		node.Content[0].Style = yaml.FlowStyle
		line, err := yaml.Marshal(&node)
		must.OK(t, err)
		text = strings.TrimSpace(string(line))
	}
	return code(text)
}

// nested returns a YAML text below a path of keys.
func nested(path []string, text string) string {
	for _, name := range slices.Backward(path) {
		text = name + ":\n  " + strings.ReplaceAll(text, "\n", "\n  ")
	}
	return text
}

// commands has a section for each command.
func commands(_ *testing.T, p *page) {
	all := cli.Commands()
	all.InitDefaultHelpCmd()
	p.text("%s", plain(all.Long))
	p.text("The exit code is 0 for success, 1 for a failure, and 2 for an invalid command line or configuration.")
	p.text("## Global flags")
	p.text("Every command accepts these flags, and a flag for each value of the [configuration](configuration.md), such as `--pools.max_candidates`.")
	p.table([]string{"Flag", "Description", "Type", "Default"}, flags(all.PersistentFlags()))
	for _, group := range append(all.Groups(), &cobra.Group{Title: "Other:"}) {
		p.text("## %s", strings.TrimSuffix(group.Title, ":"))
		for _, c := range all.Commands() {
			if c.GroupID == group.ID && c.IsAvailableCommand() {
				command(p, c)
			}
		}
	}
}

func command(p *page, c *cobra.Command) {
	p.text("### %s", c.CommandPath())
	p.text("%s", sentence(c.Short))
	if c.Runnable() && !c.HasAvailableSubCommands() {
		p.block("sh", c.UseLine())
		if c.Long != "" {
			p.text("%s", plain(c.Long))
		}
		p.table([]string{"Flag", "Description", "Type", "Default"}, flags(c.NonInheritedFlags()))
		if c.Example != "" {
			p.block("sh", strings.ReplaceAll(strings.TrimSpace(c.Example), "\n  ", "\n"))
		}
	}
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() && c.Name() != "completion" { // of cobra, one for each shell
			command(p, sub)
		}
	}
}

// flags returns the rows of the flags that the help shows.
func flags(set *pflag.FlagSet) (rows [][]string) {
	set.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" || f.Name == "version" {
			return
		}
		name := code("--" + f.Name)
		if f.Shorthand != "" {
			name += ", " + code("-"+f.Shorthand)
		}
		kind, usage := pflag.UnquoteUsage(f)
		rows = append(rows, []string{name, sentence(usage), cmp.Or(kind, "bool"), code(strings.ReplaceAll(f.DefValue, "\n", ", "))})
	})
	return rows
}

// featuresFile describes the keys of a definition.
func featuresFile(_ *testing.T, p *page) {
	p.text("A file of definitions has the key `features`, with a list of at most %d definitions, in at most %s. "+
		"`smartfeed features try FILE` checks and evaluates definitions. [How to define a feature](../how-to/features.md).",
		feature.MaxDefinitions, settings.Bytes(feature.MaxFileBytes))
	p.text("The optional key `feature_sets` has at most %d lists, each with the names of at most %d of the features, under the name of the set: "+
		"[a-z][a-z0-9_]*, at most %d bytes. A request evaluates the features of the sets that it lists in `feature_sets`.",
		feature.MaxSets, feature.MaxFeatures, feature.MaxNameBytes)
	p.text("## Keys of a definition")
	var rows [][]string
	for _, k := range feature.Keys() {
		rows = append(rows, []string{code(k.Name), sentence(k.Help), k.Type, plain(k.Default), plain(k.Bounds)})
	}
	p.table([]string{"Key", "Description", "Type", "Default", "Bounds"}, rows)
	p.text("## Aggregates")
	yes := map[bool]string{true: "yes"}
	rows = nil
	for _, a := range feature.Aggregates() {
		var entities []string
		for _, e := range a.Entities {
			entities = append(entities, string(e))
		}
		rows = append(rows, []string{code(string(a.Aggregate)), sentence(a.Help), codes(entities), a.Of, yes[a.GroupBy], yes[a.HalfLife], yes[a.N]})
	}
	p.table([]string{"Aggregate", "Value", "Entities", "`of`", "`group_by`", "`half_life`", "`n`"}, rows)
	p.text("For a pin, only `verb` can be in `group_by`, and `where` is not available: a pin has counts by verb, its actors, and the mean of their embeddings.")
	p.text("## Groups")
	p.text("With `group_by`, a value is an object of numbers by group. With several paths, an action counts once in each combination of its values: " +
		"a save of a pin with two interests is in two groups of `[verb, objectAttributes.interests]`. An action without a value at one of the paths is in no group.")
	p.text("The name of a group is its value, or its values in the order of the paths, joined by `|`, such as `save|interest:tea`. " +
		"In the name of several values, `\\` precedes each `|` and `\\` of a value. The order of the paths changes only the names.")
	p.text("`n` keeps the groups with the most actions, ties by name in ascending order of bytes. In any case, at most `feature.max_groups` groups are counted: " +
		"those with the newest actions. If there are more, `missing` lists the feature with the reason `cap`.")
	p.text("A pair has the number of the pin's own group. It is an object of numbers if the pin can have several values at one of the paths.")
	p.text("Without any matching action, sum, count, rate and distinct are 0, groups are `{}`, and lists are `[]`. Every other value is null and listed in `missing`.")
	p.text("## Paths")
	p.text("`where`, `group_by` and `of` name a part of an action. `NAME` stands for the name of an attribute.")
	p.text("%s", codes(feature.PathNames()))
}
