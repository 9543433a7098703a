// Package cli has the commands of the program. It is the only package that imports cobra. Each command checks its flags and
// calls a function of app, internal/ops or internal/tools, or the HTTP API of a running server.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/smartfeed/smartfeed/app"
	"github.com/smartfeed/smartfeed/internal/command"
	"github.com/smartfeed/smartfeed/internal/config"
)

// program is one run of the binary.
type program struct {
	environ []string
	file    string // --config
	format  format // --output
	started bool   // the command line is valid
	warned  bool   // a warning about ignored variables is logged
}

// Execute runs a command line, without the program's name, and returns its exit code: 0 for success, 1 for a failure, 2
// for an invalid command line or configuration. When ctx is done, the command shuts down.
func Execute(ctx context.Context, args, environ []string, in io.Reader, out, errOut io.Writer) int {
	p := &program{environ: environ}
	root := p.root()
	root.SetArgs(args)
	root.SetIn(in)
	root.SetOut(out)
	root.SetErr(errOut)
	addCompletion(root)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		return 0
	}
	fmt.Fprintf(errOut, "smartfeed: %v\n", err)
	var usage *command.UsageError
	if !p.started || errors.As(err, &usage) {
		fmt.Fprintf(errOut, "see %q\n", cmd.CommandPath()+" --help")
		return 2
	}
	return 1
}

// The groups of commands in the help.
const (
	runGroup     = "run"
	dataGroup    = "data"
	operateGroup = "operate"
	inspectGroup = "inspect"
)

// Commands returns the tree of commands, for the reference.
func Commands() *cobra.Command {
	root := new(program).root()
	addCompletion(root)
	return root
}

// root returns the tree of commands.
func (p *program) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "smartfeed",
		Short: "Run and operate a home feed and near-real-time features on Kafka",
		Long: `Run and operate a home feed and near-real-time features on Kafka.

"smartfeed dev" runs all parts in one process, with an embedded broker, registry and stores. Set a key of the configuration
in a file (--config, SMARTFEED_CONFIG), in the environment (SMARTFEED_POOLS_MAX_CANDIDATES) or by a flag
(--pools.max_candidates). A flag overrides the environment, and the environment overrides the file. "smartfeed config show"
prints all keys. Every command accepts the flags below.`,
		Version:          app.Version(),
		SilenceErrors:    true,
		SilenceUsage:     true,
		PersistentPreRun: func(*cobra.Command, []string) { p.started = true },
	}
	defaults := app.DefaultConfig()
	flags := root.PersistentFlags()
	config.AddFlags(&defaults, flags)
	flags.StringVar(&p.file, "config", "", "configuration file (default smartfeed.yaml, if it exists)")
	flags.VarP(&p.format, "output", "o", "output format: table, json or yaml")
	_ = root.MarkPersistentFlagFilename("config", "yaml", "yml") // the flag exists: it was added above
	complete(root, "output", formats()...)
	root.SetUsageTemplate(usageTemplate)
	add := func(group, title string, commands ...*cobra.Command) {
		root.AddGroup(&cobra.Group{ID: group, Title: title})
		for _, cmd := range commands {
			cmd.GroupID = group
			root.AddCommand(cmd)
		}
	}
	add(runGroup, "Run:", p.devCommand(), p.processCommand(), p.serveCommand(), p.materializeCommand())
	add(dataGroup, "Data:", p.publishCommand(), p.importCommand(), p.simulateCommand(), p.waitCommand(), p.eraseCommand(),
		group("training", "Export training data", "  smartfeed training export --label save=24h --out training", p.exportCommand()))
	add(operateGroup, "Operate:", p.topicsCommand(), p.feedStoreCommand(), p.pinotCommand(), p.deadLettersCommand(),
		p.rebuildCommand(), p.replayCommand(), p.tokenCommand())
	add(inspectGroup, "Inspect:", p.queryCommand(), p.featuresCommand(), p.evaluateCommand(), p.doctorCommand(), p.benchCommand(), p.configCommand(),
		p.idCommand(), p.versionCommand())
	defaultArguments(root)
	return root
}

// usageTemplate is cobra's, with the flags of the root command in the root's help only.
const usageTemplate = `Usage:{{if .Runnable}}
  {{.UseLine}}{{end}}{{if .HasAvailableSubCommands}}
  {{.CommandPath}} [command]{{end}}{{if .HasExample}}

Examples:
{{.Example}}{{end}}{{if .HasAvailableSubCommands}}{{$cmds := .Commands}}{{range $group := .Groups}}

{{.Title}}{{range $cmds}}{{if (and (eq .GroupID $group.ID) .IsAvailableCommand)}}
  {{rpad .Name .NamePadding }} {{.Short}}{{end}}{{end}}{{end}}{{if not .AllChildCommandsHaveGroup}}

{{if .Groups}}Additional commands:{{else}}Commands:{{end}}{{range $cmds}}{{if (and (eq .GroupID "") (or .IsAvailableCommand (eq .Name "help")))}}
  {{rpad .Name .NamePadding }} {{.Short}}{{end}}{{end}}{{end}}{{end}}{{if .HasAvailableLocalFlags}}

Flags:
{{.LocalFlags.FlagUsages | trimTrailingWhitespaces}}{{end}}{{if .HasAvailableSubCommands}}

Use "{{.CommandPath}} [command] --help" for more information about a command.{{end}}{{if .HasParent}}

"smartfeed --help" lists the flags of every command, such as --config and --output.{{end}}
`

// addCompletion adds cobra's command that prints completion scripts. The command keeps the present output of root.
func addCompletion(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	for _, cmd := range root.Commands() {
		if cmd.Name() == "completion" {
			cmd.RunE, cmd.Example = missingCommand, "  source <(smartfeed completion bash)"
		}
	}
}

// group returns a command with subcommands. Without a subcommand it returns a usage error; see missingCommand.
func group(use, short, example string, children ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short, Example: example, Args: cobra.ArbitraryArgs, RunE: missingCommand}
	cmd.AddCommand(children...)
	return cmd
}

// missingCommand runs a group without a valid subcommand. It returns a *command.UsageError with the subcommands and the
// given arguments.
func missingCommand(cmd *cobra.Command, args []string) error {
	var names []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
		}
	}
	given := ""
	if len(args) > 0 {
		given = fmt.Sprintf(", not %q", args)
	}
	return command.Usagef("%s: want one of the commands %s%s", cmd.CommandPath(), strings.Join(names, ", "), given)
}

// defaultArguments makes the commands below a command reject arguments, unless their field Args is set. A shell completes
// arguments with file names only if the usage line names a file or a directory.
func defaultArguments(cmd *cobra.Command) {
	for _, c := range cmd.Commands() {
		if c.Args == nil {
			c.Args = noArguments
		}
		takesFiles := strings.Contains(c.Use, "FILE") || strings.Contains(c.Use, "DIR")
		if c.ValidArgs == nil && c.ValidArgsFunction == nil && !takesFiles {
			c.ValidArgsFunction = cobra.NoFileCompletions
		}
		defaultArguments(c)
	}
}

// noArguments is cobra.NoArgs with a message that quotes the arguments.
func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("%s: want no arguments, not %q", cmd.CommandPath(), args)
	}
	return nil
}

// usage marks an error as one of the command line or the configuration. It returns nil for nil.
func usage(err error) error {
	if err == nil {
		return nil
	}
	return &command.UsageError{Err: err}
}

// complete registers the values of a flag for shell completion.
func complete(cmd *cobra.Command, flag string, values ...string) {
	// An error means that the flag does not exist. The test of completions checks each flag.
	_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
}

// limitTime adds the flag --timeout to a command: its context expires after this time. A timeout of 0 or less is a usage
// error.
func limitTime(cmd *cobra.Command, byDefault time.Duration) *cobra.Command {
	timeout := cmd.Flags().Duration("timeout", byDefault, "maximum time to wait")
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if *timeout <= 0 {
			return command.Usagef("--timeout: %s: want above 0", *timeout)
		}
		ctx, cancel := context.WithTimeoutCause(cmd.Context(), *timeout, fmt.Errorf("not done within %s", *timeout))
		defer cancel()
		cmd.SetContext(ctx)
		return run(cmd, args)
	}
	return cmd
}
