package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"github.com/smartfeed/smartfeed/internal/command"
	"github.com/smartfeed/smartfeed/schemas"
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

// commandFunc is the function of a command. It gets the arguments without the flags.
type commandFunc = func(cmd *cobra.Command, args []string) error

// output is a result without a method Text, or one that is printed although the command fails.
type output struct {
	value   any                   // is printed as JSON or YAML; a json.RawMessage is printed as JSON unchanged
	text    func(io.Writer) error // prints value as a table; nil: its method Text does, or value is one line
	failure error                 // the error of the command
	isYAML  bool                  // text prints YAML
	tables  bool                  // print value as tables
	columns []string              // of these tables; none: all
}

// line returns the output of a value whose table is one line.
func line(value any, format string, args ...any) output {
	return output{value: value, text: func(out io.Writer) error {
		_, err := fmt.Fprintf(out, format+"\n", args...)
		return err
	}}
}

// prints returns a command's function that prints the result of do: an output, or a value with a method Text.
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
	return p.prints(func(cmd *cobra.Command, args []string) (any, error) {
		setup, err := p.setup(cmd)
		if err != nil {
			return nil, err
		}
		return do(cmd, args, setup)
	})
}

// print prints a result in the format of --output.
func (p *program) print(out io.Writer, o output) error {
	answer, unchanged := o.value.(json.RawMessage)
	itself, ok := o.value.(interface{ Text(io.Writer) error })
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
	case o.tables:
		return printTables(out, o.value, o.columns)
	case ok:
		return itself.Text(out)
	}
	_, err := fmt.Fprintln(out, o.value)
	return err
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

// tables writes answers for people. It keeps the first write error until flush.
type tables struct {
	out *tabwriter.Writer
	err error
}

// asTables returns the text of an output that is written as tables.
func asTables(write func(*tables)) func(io.Writer) error {
	return func(out io.Writer) error {
		t := &tables{out: tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)}
		write(t)
		return t.flush()
	}
}

// row writes one line of cells. It replaces control characters, so that a title cannot control the terminal.
func (t *tables) row(cells ...any) {
	texts := make([]string, len(cells))
	for i, c := range cells {
		texts[i] = printed(formatted(c))
	}
	t.line(strings.TrimRight(strings.Join(texts, "\t"), "\t"))
}

// line writes a line unchanged. A line without a tab ends the columns above it.
func (t *tables) line(text string) {
	if _, err := fmt.Fprintln(t.out, text); t.err == nil {
		t.err = err
	}
}

func (t *tables) flush() error {
	if err := t.out.Flush(); t.err == nil {
		t.err = err
	}
	if t.err != nil {
		return fmt.Errorf("print answer: %w", t.err)
	}
	return nil
}

func (t *tables) degraded(without []string) {
	if len(without) > 0 {
		t.row("answered without: " + strings.Join(without, ", "))
	}
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

// formatted formats a time in the local time zone, an integer in full, any other number with six digits, and decoded lists and
// objects as JSON. A nil time is a dash.
func formatted(v any) string {
	switch v := v.(type) {
	case nil:
		return "none"
	case time.Time:
		return local(v)
	case *schemas.Timestamp:
		if v == nil {
			return "–"
		}
		return local(v.Time())
	case float64:
		if v == math.Trunc(v) && math.Abs(v) < 1e15 {
			return strconv.FormatFloat(v, 'f', 0, 64)
		}
		return strconv.FormatFloat(v, 'g', 6, 64)
	case map[string]any, []any:
		text, _ := json.Marshal(v) // it was read from JSON
		return string(text)
	}
	return fmt.Sprint(v)
}
