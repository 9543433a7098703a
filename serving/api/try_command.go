package api

import (
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/smartfeed/smartfeed/internal/command"
	"github.com/smartfeed/smartfeed/serving/client"
	"github.com/smartfeed/smartfeed/serving/feature"
)

// maxDefinitionBytes is the maximum length of a definition to try, the same as on the server.
const maxDefinitionBytes = 16 << 10

// TryCommand returns the command try, which requests the values of undefined features from a running server. When it runs,
// server returns the address and the credentials.
func TryCommand(server func(*cobra.Command) (client.Config, error)) *cobra.Command {
	q := &querying{server: server}
	var a asked
	cmd := &cobra.Command{
		Use:   "try FILE",
		Short: "values of features that are not defined yet",
		Long: `Ask a running server for the values of features that are in no file it has: FILE, or standard input if that is "-", holds one
definition, a list of at most ten, or what features.yaml holds. Nothing is kept. Mistakes are named with their lines.`,
		Example: "  smartfeed features try saves.yaml --user user:ada\n  smartfeed features try - --user user:ada --pair 'user:ada|pin:42' --json",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			req, err := a.trial(cmd.InOrStdin(), args[0])
			if err != nil {
				return err
			}
			c, err := q.client(cmd)
			if err != nil {
				return err
			}
			answer, err := c.Post(cmd.Context(), req, "v1", "features", "try")
			if err != nil {
				return told(err)
			}
			_, err = show(q, cmd, answer, (*tables).features)
			return err
		},
	}
	cmd.Flags().BoolVar(&q.asJSON, "json", false, "print the answer as it is")
	a.flags(cmd)
	return cmd
}

// trial returns the request for the file and the flags. Invalid flags are a *command.UsageError.
func (a asked) trial(stdin io.Reader, file string) (feature.TryRequest, error) {
	if len(a.users)+len(a.pins)+len(a.pairs) == 0 {
		return feature.TryRequest{}, command.Usagef("want a --user, --pin or --pair")
	}
	of, err := a.entities()
	if err != nil {
		return feature.TryRequest{}, err
	}
	text, err := definitionIn(stdin, file)
	return feature.TryRequest{Definition: text, Users: of.Users, Pins: of.Pins, Pairs: of.Pairs, At: of.At}, err
}

// definitionIn reads a file, or standard input for "-", up to the limit of the server.
func definitionIn(stdin io.Reader, file string) (string, error) {
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return "", fmt.Errorf("read definitions: %w", err)
		}
		defer f.Close()
		stdin = f
	}
	text, err := io.ReadAll(io.LimitReader(stdin, maxDefinitionBytes+1))
	if err == nil && len(text) > maxDefinitionBytes {
		err = fmt.Errorf("more than %d bytes", maxDefinitionBytes)
	}
	if err != nil {
		return "", fmt.Errorf("read definitions: %w", err)
	}
	return string(text), nil
}
