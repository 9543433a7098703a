package cli

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/smartfeed/smartfeed/internal/command"
	"github.com/smartfeed/smartfeed/serving/feature/pinot"
	"github.com/smartfeed/smartfeed/topics"
)

func (p *program) pinotCommand() *cobra.Command {
	return group("pinot", "Create and verify the table of enriched actions in Apache Pinot",
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
		Use: "apply", Short: "Create or update schema and table for the release of the controller", Args: noArguments,
		Example: "  smartfeed pinot apply --pinot.controller pinot-1:9000",
		RunE: p.prints(func(cmd *cobra.Command, _ []string) (any, error) {
			setup, err := p.pinotSetup(cmd)
			if err == nil {
				err = setup.Apply(cmd.Context())
			}
			return line(struct {
				Table   string `json:"table"`
				Applied bool   `json:"applied"`
			}{pinot.TableName, true}, "table %s is applied", pinot.TableName), err
		}),
	}
}

func (p *program) pinotVerifyCommand() *cobra.Command {
	return &cobra.Command{
		Use: "verify", Short: "Verify that schema and table match the configuration", Args: noArguments,
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
				Table   string   `json:"table"`
				Differs []string `json:"differs"`
			}{pinot.TableName, append([]string{}, differences...)}
			return output{value: result, text: func(out io.Writer) error {
				if err == nil {
					fmt.Fprintln(out, "table "+pinot.TableName+" matches the configuration")
				}
				return nil
			}, failure: err}, nil
		}),
	}
}

func (p *program) pinotShowCommand() *cobra.Command {
	var release string
	cmd := &cobra.Command{
		Use: "show", Short: "Print the schema and table of apply, without secrets", Args: noArguments,
		Example: "  smartfeed pinot show --release 1.5\n  smartfeed pinot show -o json | jq .table",
		RunE: p.prints(func(cmd *cobra.Command, _ []string) (any, error) {
			if r := pinot.Release(release); r != pinot.V0 && r != pinot.V1 {
				return nil, command.Usagef("--release: %q: want %s or %s", release, pinot.V0, pinot.V1)
			}
			setup, err := p.pinotSetup(cmd)
			if err != nil {
				return nil, err
			}
			d, err := setup.Definitions(pinot.Release(release))
			return line(d, "%s", strings.TrimSuffix(string(d.Schema)+string(d.Table), "\n")), err
		}),
	}
	cmd.Flags().StringVar(&release, "release", string(pinot.V1), "release of Pinot, 0.11 or 1.5")
	complete(cmd, "release", string(pinot.V0), string(pinot.V1))
	return cmd
}
