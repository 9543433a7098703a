package pinot

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/smartfeed/smartfeed/internal/command"
)

// Setup is the part of the program's configuration that the commands need.
type Setup struct {
	Config     Config
	Kafka      []string // brokers, if Config names none
	Registry   string   // if Config names none
	Partitions int32
}

// Verify compares schema and table on the controller with what apply would create; see Admin.Verify.
func (s Setup) Verify(ctx context.Context) ([]string, error) {
	a, err := NewAdmin(s.Config)
	if err != nil {
		return nil, err
	}
	return a.Verify(ctx, s.stream())
}

// stream returns how Pinot's servers reach the topic.
func (s Setup) stream() Stream {
	out := Stream{Brokers: s.Config.Kafka, Registry: s.Config.Registry, Partitions: s.Partitions, Replicas: s.Config.Replicas, More: s.Config.Stream}
	if len(out.Brokers) == 0 {
		out.Brokers = s.Kafka
	}
	if out.Registry == "" {
		out.Registry = s.Registry
	}
	return out
}

// Command returns pinot apply, verify and show. They call setup when they run.
func Command(setup func(*cobra.Command) (Setup, error)) *cobra.Command {
	cmd := command.Group("pinot", "make and check the table of enriched actions in Apache Pinot",
		"  smartfeed pinot apply --pinot.controller pinot-1:9000")
	var asJSON bool
	cmd.PersistentFlags().BoolVar(&asJSON, "json", false, "print JSON")
	administer := func(do func(ctx context.Context, cmd *cobra.Command, a *Admin, s Stream) error) func(*cobra.Command, []string) error {
		return func(cmd *cobra.Command, _ []string) error {
			s, err := setup(cmd)
			if err != nil {
				return err
			}
			a, err := NewAdmin(s.Config)
			if err != nil {
				return err
			}
			return do(cmd.Context(), cmd, a, s.stream())
		}
	}
	cmd.AddCommand(&cobra.Command{
		Use: "apply", Short: "create or update schema and table, in the form of the controller's release", Args: cobra.NoArgs,
		Example: "  smartfeed pinot apply --pinot.controller pinot-1:9000",
		RunE: administer(func(ctx context.Context, cmd *cobra.Command, a *Admin, s Stream) error {
			if err := a.Apply(ctx, s); err != nil {
				return err
			}
			return say(cmd, asJSON, applied{Table: TableName, Applied: true}, "table "+TableName+" is applied")
		}),
	}, &cobra.Command{
		Use: "verify", Short: "report how schema and table differ from what they should be", Args: cobra.NoArgs,
		Example: "  smartfeed pinot verify --pinot.controller pinot-1:9000 --json",
		RunE: administer(func(ctx context.Context, cmd *cobra.Command, a *Admin, s Stream) error {
			differ, err := a.Verify(ctx, s)
			if err != nil {
				return err
			}
			return verdict(cmd, differ, asJSON)
		}),
	}, showCommand(setup, &asJSON))
	return cmd
}

// applied is the JSON output of apply.
type applied struct {
	Table   string `json:"table"`
	Applied bool   `json:"applied"`
}

// verified is the JSON output of verify.
type verified struct {
	Table   string   `json:"table"`
	Differs []string `json:"differs"`
}

// verdict prints the differences of the table, and returns an error if there are any.
func verdict(cmd *cobra.Command, differ []string, asJSON bool) error {
	if len(differ) == 0 {
		return say(cmd, asJSON, verified{Table: TableName, Differs: []string{}}, "table "+TableName+" is as it should be")
	}
	err := fmt.Errorf("pinot differs:\n%s", strings.Join(differ, "\n"))
	if asJSON {
		err = errors.Join(say(cmd, true, verified{Table: TableName, Differs: differ}, ""), err)
	}
	return err
}

// say prints value as JSON, or line as text.
func say(cmd *cobra.Command, asJSON bool, value any, line string) error {
	if asJSON {
		enc := json.NewEncoder(cmd.OutOrStdout())
		enc.SetIndent("", "  ")
		return enc.Encode(value)
	}
	_, err := fmt.Fprintln(cmd.OutOrStdout(), line)
	return err
}

func showCommand(setup func(*cobra.Command) (Setup, error), asJSON *bool) *cobra.Command {
	var release string
	cmd := &cobra.Command{
		Use: "show", Short: "print schema and table as apply sends them, but for secrets", Args: cobra.NoArgs,
		Example: "  smartfeed pinot show --release 1.5\n  smartfeed pinot show --json | jq .table",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if r := Release(release); r != V0 && r != V1 {
				return command.Usagef("--release %q: want %s or %s", release, V0, V1)
			}
			s, err := setup(cmd)
			if err != nil {
				return err
			}
			schema, err := Schema()
			if err != nil {
				return err
			}
			table, err := Table(Release(release), s.stream())
			if err != nil {
				return err
			}
			if table, err = masked(table, s.Config.Stream); err != nil {
				return err
			}
			both := map[string]json.RawMessage{"schema": schema, "table": table}
			return say(cmd, *asJSON, both, strings.TrimSuffix(string(schema)+string(table), "\n"))
		},
	}
	cmd.Flags().StringVar(&release, "release", string(V1), "release of Pinot: 0.11 or 1.5")
	releases := cobra.FixedCompletions([]string{string(V0), string(V1)}, cobra.ShellCompDirectiveNoFileComp)
	_ = cmd.RegisterFlagCompletionFunc("release", releases) // fails only if the flag does not exist
	return cmd
}
