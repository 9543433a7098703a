package cli

import (
	"cmp"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/smartfeed/smartfeed/app"
	"github.com/smartfeed/smartfeed/internal/command"
	"github.com/smartfeed/smartfeed/internal/config"
	"github.com/smartfeed/smartfeed/internal/tools/doctor"
	"github.com/smartfeed/smartfeed/schemas"
)

func (p *program) configCommand() *cobra.Command {
	return group("config", "Check and show the configuration", "  smartfeed config check --config smartfeed.yaml",
		p.configCheckCommand(), p.configShowCommand())
}

func (p *program) configShowCommand() *cobra.Command {
	var o config.Options
	c := &cobra.Command{
		Use: "show", Short: "Print the configuration as a file",
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
	roles := schemas.Strings(app.Roles())
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

func (p *program) doctorCommand() *cobra.Command {
	timeout := 10 * time.Second
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check all dependencies and print what to fix",
		Long: `Check brokers, permissions, topics, transactions, registry, stores, clocks and the process at --http, in parallel. For
each problem, print what to do. If the process at --http is a server, the report has the versions of all other processes, why
they are not ready, and which do not answer. The command changes nothing: it aborts its test transaction.

The exit code is 1 if there is a problem, and 0 if there are only warnings and notes. The command works with and without a
running "smartfeed dev".`,
		Example: "  smartfeed doctor\n  smartfeed doctor --config production.yaml -o json",
		RunE: p.prints(func(cmd *cobra.Command, _ []string) (any, error) {
			if timeout <= 0 {
				return nil, command.Usagef("--timeout: %s: want above 0", timeout)
			}
			cfg, err := p.load(cmd)
			if err != nil {
				return nil, err
			}
			checks, err := cfg.DoctorChecks(p.environ, cmp.Or(p.configFile(), "without a file"))
			if err != nil {
				return nil, err
			}
			report := doctor.NewReport(app.Version(), doctor.Run(cmd.Context(), timeout, checks...))
			return output{value: report, failure: report.Err()}, nil
		}),
	}
	cmd.Flags().DurationVar(&timeout, "timeout", timeout, "timeout of each check")
	return cmd
}

// idCommand returns the commands that encode and decode sharded ids.
func (p *program) idCommand() *cobra.Command {
	return group("id", "Encode and decode sharded ids", "  smartfeed id decode 241294492511762325", &cobra.Command{
		Use: "encode SHARD TYPE LOCAL", Short: "Print the id with this shard, type and local part", Args: cobra.ExactArgs(3),
		Example: "  smartfeed id encode 3429 1 7075733",
		RunE: p.prints(func(_ *cobra.Command, args []string) (any, error) {
			id, err := makeID(args)
			return line(partsOf(id), "%s", id), usage(err)
		}),
	}, &cobra.Command{
		Use: "decode ID", Short: "Print shard, type and local part of an id", Args: cobra.ExactArgs(1),
		Example: "  smartfeed id decode pin:241294492511762325\n  smartfeed id decode 241294492511762325 -o json",
		RunE: p.prints(func(_ *cobra.Command, args []string) (any, error) {
			name := args[0]
			if _, rest, found := strings.Cut(name, ":"); found {
				name = rest
			}
			id, err := schemas.ParseShardedID(name)
			parts := partsOf(id)
			return line(parts, "shard %d type %d local %d", parts.Shard, parts.Type, parts.Local), usage(err)
		}),
	})
}

// makeID returns the id of the parts shard, type and local.
func makeID(args []string) (schemas.ShardedID, error) {
	var parts [3]uint64
	for i, bits := range []int{32, 32, 64} {
		var err error
		if parts[i], err = strconv.ParseUint(args[i], 10, bits); err != nil {
			return 0, command.Usagef("%q is not an unsigned integer of %d bits", args[i], bits)
		}
	}
	return schemas.MakeShardedID(uint32(parts[0]), uint32(parts[1]), parts[2])
}

// idParts is an id and its parts.
type idParts struct {
	ID    string `json:"id"` // a text, because it does not fit a float
	Shard uint32 `json:"shard"`
	Type  uint32 `json:"type"`
	Local uint64 `json:"local"`
}

func partsOf(id schemas.ShardedID) idParts {
	shard, typ, local := id.Split()
	return idParts{id.String(), shard, typ, local}
}

// build is the result of version.
type build struct {
	Version string `json:"version"` // see app.Version
	Go      string `json:"go"`
	OS      string `json:"os"`
	Arch    string `json:"arch"`
}

func (p *program) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version",
		Example: "  smartfeed version\n  smartfeed version -o json",
		RunE: p.prints(func(*cobra.Command, []string) (any, error) {
			return line(build{app.Version(), runtime.Version(), runtime.GOOS, runtime.GOARCH}, "%s", app.Version()), nil
		}),
	}
}
