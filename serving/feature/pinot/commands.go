package pinot

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
)

// Setup is what the commands need of the program's configuration.
type Setup struct {
	Config     Config
	Kafka      []string // brokers, where Config names none
	Registry   string   // where Config names none
	Partitions int32
}

// Verify asks the controller how schema and table differ from what apply would make, see Admin.Verify.
func (s Setup) Verify(ctx context.Context) ([]string, error) {
	a, err := NewAdmin(s.Config)
	if err != nil {
		return nil, err
	}
	return a.Verify(ctx, s.stream())
}

// stream returns where Pinot's servers find the topic.
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

// Command returns pinot apply, verify and show. setup is called when one of them runs.
func Command(setup func(*cobra.Command) (Setup, error)) *cobra.Command {
	cmd := &cobra.Command{
		Use: "pinot", Short: "make and check the table of enriched actions in Apache Pinot", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
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
		RunE: administer(func(ctx context.Context, cmd *cobra.Command, a *Admin, s Stream) error {
			if err := a.Apply(ctx, s); err != nil {
				return err
			}
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "table %s is applied\n", TableName)
			return err
		}),
	}, &cobra.Command{
		Use: "verify", Short: "report how schema and table differ from what they should be", Args: cobra.NoArgs,
		RunE: administer(func(ctx context.Context, cmd *cobra.Command, a *Admin, s Stream) error {
			differ, err := a.Verify(ctx, s)
			if err != nil {
				return err
			}
			var problems []error
			for _, d := range differ {
				problems = append(problems, errors.New(d))
			}
			if err := errors.Join(problems...); err != nil {
				return fmt.Errorf("pinot differs:\n%w", err)
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "table %s is as it should be\n", TableName)
			return err
		}),
	}, showCommand(setup))
	return cmd
}

func showCommand(setup func(*cobra.Command) (Setup, error)) *cobra.Command {
	var release string
	cmd := &cobra.Command{
		Use: "show", Short: "print schema and table as apply sends them, but for secrets", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
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
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s%s", schema, table)
			return err
		},
	}
	cmd.Flags().StringVar(&release, "release", string(V1), "release of Pinot: 0.11 or 1.5")
	return cmd
}
