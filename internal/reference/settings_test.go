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
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
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
			expect.True(t, k.Help != "", "%s has a help text", k.Path)
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
		expect.True(t, k.Help != "", "%s has a help text", k.Path)
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
		line := must.Get(yaml.Marshal(&node))(t)
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
