package cli

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"github.com/smartfeed/smartfeed/internal/command"
	"github.com/smartfeed/smartfeed/topics"
)

// format is the value of --output.
type format string

// The formats. The default is asTable, which is text for people.
const (
	asTable format = "table"
	asJSON  format = "json"
	asYAML  format = "yaml"
)

func formats() []string { return []string{string(asTable), string(asJSON), string(asYAML)} }

// String implements pflag.Value.
func (f *format) String() string { return string(cmp.Or(*f, asTable)) }

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

// commandFunc is the function of a command. It gets the arguments without the flags.
type commandFunc = func(cmd *cobra.Command, args []string) error

// output is a result that is printed although the command fails, or with certain columns or another text than a table.
type output struct {
	value   any                   // is printed as JSON or YAML; a json.RawMessage is printed as JSON unchanged
	columns []string              // of the tables; none: all
	text    func(io.Writer) error // prints value for people; nil: its method Text or String does, or printTables
	isYAML  bool                  // text prints YAML
	failure error                 // the error of the command
}

// line returns the output of a value whose table is one line.
func line(value any, format string, args ...any) output {
	return output{value: value, text: func(out io.Writer) error {
		_, err := fmt.Fprintf(out, format+"\n", args...)
		return err
	}}
}

// prints returns a command's function that prints the result of do: an output, or its value.
func (p *program) prints(do func(cmd *cobra.Command, args []string) (any, error)) commandFunc {
	return func(cmd *cobra.Command, args []string) error {
		result, err := do(cmd, args)
		if err != nil {
			return err
		}
		o, ok := result.(output)
		if !ok {
			o.value = result
		}
		return errors.Join(p.print(cmd.OutOrStdout(), o), o.failure)
	}
}

// printsOf is prints for a command that needs the brokers and the registry.
func (p *program) printsOf(do func(cmd *cobra.Command, args []string, setup topics.Setup) (any, error)) commandFunc {
	return p.prints(with(p.setup, do))
}

// with calls do with the result of get.
func with[T any](
	get func(*cobra.Command) (T, error), do func(*cobra.Command, []string, T) (any, error),
) func(*cobra.Command, []string) (any, error) {
	return func(cmd *cobra.Command, args []string) (any, error) {
		needed, err := get(cmd)
		if err != nil {
			return nil, err
		}
		return do(cmd, args, needed)
	}
}

// print prints a result in the format of --output.
func (p *program) print(out io.Writer, o output) error {
	answer, unchanged := o.value.(json.RawMessage)
	itself, hasText := o.value.(interface{ Text(io.Writer) error })
	line, isLine := o.value.(fmt.Stringer)
	switch {
	case p.format == asJSON && unchanged:
		_, err := out.Write(answer)
		return err
	case p.format == asJSON:
		return command.PrintJSON(out, o.value)
	case p.format == asYAML && !o.isYAML:
		return printYAML(out, o.value)
	case o.text != nil:
		return o.text(out)
	case hasText:
		return itself.Text(out)
	case isLine:
		_, err := fmt.Fprintln(out, line)
		return err
	}
	return printTables(out, o.value, o.columns)
}

// printYAML prints the JSON of a value as YAML.
func printYAML(out io.Writer, v any) error {
	value, err := orderedValue(v)
	if err != nil {
		return err
	}
	enc := yaml.NewEncoder(out)
	enc.SetIndent(2)
	if err := enc.Encode(value); err != nil {
		return fmt.Errorf("print YAML: %w", err)
	}
	return enc.Close()
}

func printed(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) { // Cf: for example direction marks
			return '\uFFFD'
		}
		return r
	}, text)
}

func local(at time.Time) string { return at.Local().Format(time.DateTime) }

func score[T ~float64](s T) string { return strconv.FormatFloat(float64(s), 'f', 3, 64) }
