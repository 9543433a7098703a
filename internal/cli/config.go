package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/smartfeed/smartfeed/app"
	"github.com/smartfeed/smartfeed/internal/command"
	"github.com/smartfeed/smartfeed/internal/config"
)

func (p *program) configCommand() *cobra.Command {
	return group("config", "Check and show the configuration", "  smartfeed config check --config smartfeed.yaml",
		p.configCheckCommand(), p.configShowCommand())
}

func (p *program) configShowCommand() *cobra.Command {
	var o config.Options
	c := &cobra.Command{
		Use: "show", Short: "Print the configuration as a file", Args: noArguments,
		Long: `Print the value of every key that is in effect, without secrets: the defaults, overridden by the file, the environment and
the flags. The output is a configuration file.`,
		Example: "  smartfeed config show --docs > smartfeed.yaml\n  SMARTFEED_POOLS_MAX_CANDIDATES=200 smartfeed config show --changed\n" +
			"  smartfeed config show -o json | jq .pools",
		RunE: p.prints(func(cmd *cobra.Command, _ []string) (any, error) {
			if o.Docs && p.format == asJSON {
				return nil, command.Usagef("--docs: JSON has no comments: want -o yaml")
			}
			cfg, err := p.load(cmd)
			if err != nil {
				return nil, err
			}
			values, err := cfg.Values(o)
			return output{value: values, isYAML: true, text: func(out io.Writer) error { return cfg.Write(out, o) }}, err
		}),
	}
	c.Flags().BoolVar(&o.Docs, "docs", false, "add a comment with description, default and range to each key")
	c.Flags().BoolVar(&o.Changed, "changed", false, "print only the keys whose values differ from the defaults")
	return c
}

func (p *program) configCheckCommand() *cobra.Command {
	roles := texts(app.Roles())
	return &cobra.Command{
		Use: "check [ROLE]", Short: "Report the errors in the configuration and in the files that it names",
		Long: fmt.Sprintf(`Report every error in the configuration that prevents the start of a process: invalid values, and files that are unreadable or
have invalid contents. With a role (%s) it also checks the requirements of this role, as the
command of the role does at its start. It contacts no server; "smartfeed doctor" does.`, strings.Join(roles, ", ")),
		Args: cobra.MaximumNArgs(1), ValidArgs: roles,
		Example: "  smartfeed config check\n  smartfeed config check serve --config smartfeed.yaml -o json",
		RunE: p.prints(func(cmd *cobra.Command, args []string) (any, error) {
			var role app.Role
			if len(args) > 0 {
				if role = app.Role(args[0]); !slices.Contains(app.Roles(), role) {
					return nil, command.Usagef("role %q: want one of %s", role, strings.Join(roles, ", "))
				}
			}
			cfg, err := p.load(cmd)
			if err == nil {
				err = usage(cfg.Check(role))
			}
			return output{value: newVerdict(err), text: func(out io.Writer) error {
				if err == nil {
					fmt.Fprintln(out, "the configuration is valid")
				}
				return nil
			}, failure: err}, nil
		}),
	}
}

// verdict is the result of config check.
type verdict struct {
	OK       bool     `json:"ok"`
	Problems []string `json:"problems"`
}

func newVerdict(err error) verdict {
	v := verdict{OK: err == nil, Problems: []string{}}
	if err != nil {
		v.Problems = strings.Split(err.Error(), "\n")
	}
	return v
}
