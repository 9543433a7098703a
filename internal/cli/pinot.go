package cli

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/smartfeed/smartfeed/internal/command"
	"github.com/smartfeed/smartfeed/serving/feature/pinot"
	"github.com/smartfeed/smartfeed/topics"
)

func (p *program) pinotCommand() *cobra.Command {
	return group("pinot", "Create and verify the tables of features in Apache Pinot",
		"  smartfeed pinot apply --pinot.controller pinot-1:9000",
		p.pinotApplyCommand(), p.pinotVerifyCommand(), p.pinotShowCommand())
}

// pinotSetup returns how a command reaches Pinot.
func (p *program) pinotSetup(cmd *cobra.Command) (pinot.Setup, error) {
	cfg, err := p.load(cmd)
	if err != nil {
		return pinot.Setup{}, err
	}
	setup, err := cfg.PinotSetup()
	if errors.Is(err, topics.ErrPartitions) {
		err = usage(err)
	}
	return setup, err
}

func (p *program) pinotApplyCommand() *cobra.Command {
	return &cobra.Command{
		Use: "apply", Short: "Create or update the tables and their schemas for the release of the controller", Args: noArguments,
		Example: "  smartfeed pinot apply --pinot.controller pinot-1:9000",
		RunE: p.prints(func(cmd *cobra.Command, _ []string) (any, error) {
			setup, err := p.pinotSetup(cmd)
			if err == nil {
				err = setup.Apply(cmd.Context())
			}
			return line(struct {
				Tables  []string `json:"tables"`
				Applied bool     `json:"applied"`
			}{pinot.Tables(), true}, "tables %s are applied", strings.Join(pinot.Tables(), ", ")), err
		}),
	}
}

func (p *program) pinotVerifyCommand() *cobra.Command {
	return &cobra.Command{
		Use: "verify", Short: "Verify that the tables and their schemas match the configuration", Args: noArguments,
		Example: "  smartfeed pinot verify --pinot.controller pinot-1:9000 -o json",
		RunE: p.prints(func(cmd *cobra.Command, _ []string) (any, error) {
			setup, err := p.pinotSetup(cmd)
			if err != nil {
				return nil, err
			}
			differences, err := setup.Verify(cmd.Context())
			if err != nil {
				return nil, err
			}
			if len(differences) > 0 {
				err = fmt.Errorf("pinot differs:\n%s", strings.Join(differences, "\n"))
			}
			result := struct {
				Tables  []string `json:"tables"`
				Differs []string `json:"differs"`
			}{pinot.Tables(), append([]string{}, differences...)}
			return output{value: result, text: func(out io.Writer) error {
				if err == nil {
					fmt.Fprintln(out, "tables "+strings.Join(pinot.Tables(), ", ")+" match the configuration")
				}
				return nil
			}, failure: err}, nil
		}),
	}
}

func (p *program) pinotShowCommand() *cobra.Command {
	var release, table string
	cmd := &cobra.Command{
		Use: "show", Short: "Print a table of apply and its schema, without secrets", Args: noArguments,
		Example: "  smartfeed pinot show --table pins --release 1.5\n  smartfeed pinot show -o json | jq .table",
		RunE: p.prints(func(cmd *cobra.Command, _ []string) (any, error) {
			if r := pinot.Release(release); r != pinot.V0 && r != pinot.V1 {
				return nil, command.Usagef("--release: %q: want %s or %s", release, pinot.V0, pinot.V1)
			}
			setup, err := p.pinotSetup(cmd)
			if err != nil {
				return nil, err
			}
			if !slices.Contains(pinot.Tables(), table) {
				return nil, command.Usagef("--table: %q: want one of %s", table, strings.Join(pinot.Tables(), ", "))
			}
			d, err := setup.Definitions(table, pinot.Release(release))
			return line(d, "%s", strings.TrimSuffix(string(d.Schema)+string(d.Table), "\n")), err
		}),
	}
	cmd.Flags().StringVar(&release, "release", string(pinot.V1), "release of Pinot, 0.11 or 1.5")
	cmd.Flags().StringVar(&table, "table", pinot.TableName, "name of the table")
	complete(cmd, "table", pinot.Tables()...)
	complete(cmd, "release", string(pinot.V0), string(pinot.V1))
	return cmd
}
