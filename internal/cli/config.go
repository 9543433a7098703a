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
		Use: "show", Short: "Print every value in effect, as a configuration file", Args: noArguments,
		Example: "  smartfeed config show --docs > smartfeed.yaml\n  SMARTFEED_POOLS_MAX_CANDIDATES=200 smartfeed config show --changed",
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := p.load(cmd)
			if err != nil {
				return err
			}
			return cfg.Write(cmd.OutOrStdout(), o)
		},
	}
	c.Flags().BoolVar(&o.Docs, "docs", false, "precede each value by its help text, default and bounds")
	c.Flags().BoolVar(&o.Changed, "changed", false, "omit values that are equal to their defaults")
	return c
}

func (p *program) configCheckCommand() *cobra.Command {
	roles := texts(app.Roles())
	return &cobra.Command{
		Use: "check [ROLE]", Short: "Report every error in the configuration and in the files that it names",
		Long: fmt.Sprintf(`Report every error in the configuration that keeps a process from starting: values, and files that cannot be read or have
invalid contents. With a role (%s) report also what this role needs; its command makes the same
checks before it starts. No server is contacted; see "smartfeed doctor".`, strings.Join(roles, ", ")),
		Args: cobra.MaximumNArgs(1), ValidArgs: roles,
		Example: "  smartfeed config check\n  smartfeed config check serve --config smartfeed.yaml -o json",
		RunE: p.prints(func(cmd *cobra.Command, args []string) (any, error) {
			var role app.Role
			if len(args) > 0 {
				if role = app.Role(args[0]); !slices.Contains(app.Roles(), role) {
					return nil, command.Usagef("there is no role %q, but %s", role, strings.Join(roles, ", "))
				}
			}
			cfg, err := p.load(cmd)
			if err == nil {
				err = usage(cfg.Check(role))
			}
			return output{newVerdict(err), func(out io.Writer) error {
				if err == nil {
					fmt.Fprintln(out, "the configuration is valid")
				}
				return nil
			}, err}, nil
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
