package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"github.com/smartfeed/smartfeed/internal/command"
)

// format is the value of --output.
type format string

// The formats. The default is asTable, text for people.
const (
	asTable format = "table"
	asJSON  format = "json"
	asYAML  format = "yaml"
)

func formats() []string { return []string{string(asTable), string(asJSON), string(asYAML)} }

// String implements pflag.Value.
func (f *format) String() string {
	if *f == "" {
		return string(asTable)
	}
	return string(*f)
}

// Type implements pflag.Value.
func (f *format) Type() string { return "format" }

// Set implements pflag.Value.
func (f *format) Set(text string) error {
	if !slices.Contains(formats(), text) {
		return errors.New("want " + strings.Join(formats(), ", "))
	}
	*f = format(text)
	return nil
}

// forPeople reports whether the output is text for people.
func (f *format) forPeople() bool { return f.String() == string(asTable) }

// print prints v as --output says; table prints it for people.
func (p *program) print(cmd *cobra.Command, v any, table func(io.Writer) error) error {
	if p.format.forPeople() {
		return table(cmd.OutOrStdout())
	}
	if p.format == asJSON {
		return command.PrintJSON(cmd.OutOrStdout(), v)
	}
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return printYAML(cmd.OutOrStdout(), text)
}

// printLine is print of a value with one line for people.
func (p *program) printLine(cmd *cobra.Command, v any, line any) error {
	return p.print(cmd, v, func(out io.Writer) error {
		_, err := fmt.Fprintln(out, line)
		return err
	})
}

// printAnswer is print of an answer in JSON. JSON is printed unchanged.
func (p *program) printAnswer(cmd *cobra.Command, answer json.RawMessage, table func(io.Writer) error) error {
	if p.format == asJSON {
		_, err := cmd.OutOrStdout().Write(answer)
		return err
	}
	return p.print(cmd, answer, table)
}

// printYAML prints a JSON value as YAML, with its keys in the same order.
func printYAML(out io.Writer, text []byte) error {
	var node yaml.Node
	if err := yaml.Unmarshal(text, &node); err != nil {
		return fmt.Errorf("print YAML: %w", err)
	}
	inBlocks(&node)
	enc := yaml.NewEncoder(out)
	enc.SetIndent(2)
	if err := enc.Encode(&node); err != nil {
		return fmt.Errorf("print YAML: %w", err)
	}
	return enc.Close()
}

// inBlocks removes the style of JSON: braces, and quotes that YAML does not need.
func inBlocks(node *yaml.Node) {
	node.Style = 0
	for _, child := range node.Content {
		inBlocks(child)
	}
}
