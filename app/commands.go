package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/smartfeed/smartfeed/internal/command"
	"github.com/smartfeed/smartfeed/internal/config"
	"github.com/smartfeed/smartfeed/internal/ops"
	"github.com/smartfeed/smartfeed/internal/progress"
	"github.com/smartfeed/smartfeed/internal/tools/lastfm"
	"github.com/smartfeed/smartfeed/internal/tools/simulate"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/serving/api"
	"github.com/smartfeed/smartfeed/serving/feature"
	"github.com/smartfeed/smartfeed/serving/feature/pinot"
	"github.com/smartfeed/smartfeed/serving/featurelog"
	"github.com/smartfeed/smartfeed/serving/feedstore/cassandra"
	"github.com/smartfeed/smartfeed/topics"
)

// program is one run of the binary.
type program struct {
	environ []string
	file    string // --config
	started bool   // the command line is valid
	warned  bool   // about ignored variables
}

// command returns the tree of commands.
func (p *program) command() *cobra.Command {
	root := &cobra.Command{
		Use:   "smartfeed",
		Short: "a home feed and near-real-time features from one stream of events",
		Long: `smartfeed makes a home feed and near-real-time features from one stream of events.

"smartfeed dev" runs all of it in one process on embedded parts. Every value of the configuration can be set in a file
(--config, SMARTFEED_CONFIG), in the environment (SMARTFEED_POOLS_CAP) and by a flag (--pools.cap), each over the one
before it; "smartfeed config show" prints them all.`,
		Version:          version,
		SilenceErrors:    true,
		SilenceUsage:     true,
		PersistentPreRun: func(*cobra.Command, []string) { p.started = true },
	}
	defaults := DefaultConfig()
	config.AddFlags(&defaults, root.PersistentFlags())
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return config.FlagError(err, renamed()) })
	root.PersistentFlags().StringVar(&p.file, "config", "", "configuration file (default smartfeed.yaml, if there is one)")
	root.AddCommand(
		p.devCommand(),
		p.processCommand(),
		p.materializeCommand(),
		p.serveCommand(),
		p.importCommand(),
		simulate.Command(p.setup),
		p.featuresCommand(),
		p.pinotCommand(),
		p.feedStoreCommand(),
		p.eraseCommand(),
		p.rebuildCommand(),
		p.replayCommand(),
		p.tokenCommand(),
		p.configCommand(),
		idCommand(),
		p.versionCommand(),
		p.doctorCommand(),
		p.benchCommand(),
	)
	root.AddCommand(ops.Commands(p.setup, api.RetryCommands(p.server)...)...) // only a process knows the state of retries
	root.AddCommand(api.Commands(p.server, p.names)...)
	_ = root.MarkPersistentFlagFilename("config", "yaml", "yml") // the flag exists: it was added above
	return root
}

// addCompletion adds cobra's command that prints completion scripts. The command keeps the present output of root.
func addCompletion(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	for _, cmd := range root.Commands() {
		if cmd.Name() == "completion" {
			cmd.RunE, cmd.Example = command.Missing, "  source <(smartfeed completion bash)"
		}
	}
}

// complete registers the values of a flag for shell completion.
func complete(cmd *cobra.Command, flag string, values ...string) {
	// It fails only if the flag does not exist. The test of completions checks each flag.
	_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
}

// names returns the names that completion can offer from the configuration, or none if the configuration is invalid.
func (p *program) names(cmd *cobra.Command) api.Names {
	cfg, err := p.load(cmd)
	if err != nil {
		return api.Names{}
	}
	n := api.Names{
		Feeds:   slices.Sorted(maps.Keys(cfg.Generator.Feeds)),
		Sources: []string{string(schemas.Following), string(schemas.FromInterest), string(schemas.Related)},
	}
	for _, source := range cfg.Generator.Sources {
		n.Sources = append(n.Sources, string(source.Name))
	}
	if definitions, err := feature.Load(cfg.Features); err == nil {
		for _, d := range definitions {
			n.Features = append(n.Features, d.Name)
		}
	}
	return n
}

// load reads the configuration from the command line, the environment and the file.
func (p *program) load(cmd *cobra.Command) (Config, error) {
	cfg := DefaultConfig()
	src := config.Source{File: p.configFile(), Environ: p.environ, Flags: cmd.Flags(), Renamed: renamed()}
	if err := config.Load(&cfg, src); err != nil {
		return Config{}, &command.UsageError{Err: err}
	}
	p.warnOfServiceLinks(logger(cmd, cfg.Log))
	return cfg, nil
}

// warnOfServiceLinks logs once which variables were ignored because Kubernetes sets them.
func (p *program) warnOfServiceLinks(log *slog.Logger) {
	names := config.ServiceLinks(p.environ)
	if len(names) == 0 || p.warned {
		return
	}
	p.warned = true
	log.Warn("ignored variables that Kubernetes sets for a Service; enableServiceLinks: false in the pod's specification removes them",
		"variables", names)
}

// defaultFile is read if it exists and no other file is named.
const defaultFile = "smartfeed.yaml"

func (p *program) configFile() string {
	if p.file != "" {
		return p.file
	}
	if name := p.variable(config.EnvPrefix + "CONFIG"); name != "" {
		return name
	}
	if _, err := os.Stat(defaultFile); err == nil {
		return defaultFile
	}
	return ""
}

// variable returns an environment variable, or "" if it is not set. Of several with the same name, the last wins, as in
// a shell.
func (p *program) variable(name string) string {
	for _, kv := range slices.Backward(p.environ) {
		if key, value, _ := strings.Cut(kv, "="); key == name {
			return value
		}
	}
	return ""
}

// logger returns a logger to standard error, as configured.
func logger(cmd *cobra.Command, cfg LogConfig) *slog.Logger {
	options := &slog.HandlerOptions{Level: cfg.Level, ReplaceAttr: errorText}
	if cfg.Format == "json" {
		return slog.New(slog.NewJSONHandler(cmd.ErrOrStderr(), options))
	}
	return slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), options))
}

// errorText logs an error as its text. Some libraries would otherwise add the stack of its origin.
func errorText(_ []string, a slog.Attr) slog.Attr {
	if err, ok := a.Value.Any().(error); ok {
		a.Value = slog.StringValue(err.Error())
	}
	return a
}

// setup returns the part of the configuration that commands of other packages need.
func (p *program) setup(cmd *cobra.Command) (topics.Setup, error) {
	cfg, err := p.load(cmd)
	if err != nil {
		return topics.Setup{}, err
	}
	kafka, err := cfg.kafka()
	if err != nil {
		return topics.Setup{}, err
	}
	outsiders, err := cfg.outsiders()
	if err != nil {
		return topics.Setup{}, err
	}
	reporter := progress.To(cmd.ErrOrStderr())
	return topics.Setup{
		Kafka: kafka, Registry: cfg.registryURL(), Access: cfg.RegistryClient, Verbs: cfg.Verbs, Log: logger(cmd, cfg.Log),
		FeedStores: cfg.FeedStore.others(), Outsiders: outsiders,
		Progress: func(what string, total int) topics.Progress { return reporter.Start(what, total) },
		Work:     func(ctx context.Context) (topics.Work, error) { return p.askWork(ctx, cfg) },
	}, nil
}

func (p *program) importCommand() *cobra.Command {
	return command.Group("import", "publish events made of other people's data", "  smartfeed import lastfm hetrec2011-lastfm-2k",
		lastfm.Command(p.setup))
}

// featuresCommand returns the commands for definitions and the training log.
func (p *program) featuresCommand() *cobra.Command {
	cmd := command.Group("features", "try definitions, and check what was logged for training", "  smartfeed features verify --json")
	cmd.AddCommand(api.TryCommand(p.server))
	cmd.AddCommand(featurelog.VerifyCommand(func(cmd *cobra.Command) (featurelog.Setup, error) {
		setup, err := p.setup(cmd)
		if err != nil {
			return featurelog.Setup{}, err
		}
		cfg, err := p.load(cmd)
		if err != nil {
			return featurelog.Setup{}, err
		}
		definitions, err := feature.Load(cfg.Features)
		return featurelog.Setup{Setup: setup, Definitions: definitions}, err
	}))
	return cmd
}

func (p *program) pinotCommand() *cobra.Command {
	return pinot.Command(func(cmd *cobra.Command) (pinot.Setup, error) {
		cfg, err := p.load(cmd)
		if err == nil && cfg.Partitions == 0 && !cfg.bringsBroker() {
			err = &command.UsageError{Err: topics.ErrPartitions}
		}
		return pinot.Setup{Config: cfg.Pinot, Kafka: cfg.Kafka, Registry: cfg.registryURL(), Partitions: cfg.partitions()}, err
	})
}

func (p *program) feedStoreCommand() *cobra.Command {
	cmd := command.Group("feedstore", "make and check the tables of feed stores on Cassandra, and fill a store anew",
		"  smartfeed feedstore apply --feed_store.cassandra.primary.hosts cassandra-a:9042")
	cmd.AddCommand(cassandra.Commands(func(cmd *cobra.Command) (cassandra.Setup, error) {
		cfg, err := p.load(cmd)
		at := cfg.FeedStore.Cassandra
		return cassandra.Setup{Config: at.Config, Primary: at.Primary, Standby: at.Standby}, err
	})...)
	cmd.AddCommand(p.refillCommand())
	return cmd
}

func (p *program) configCommand() *cobra.Command {
	cmd := command.Group("config", "check and show the configuration", "  smartfeed config check --config smartfeed.yaml")
	var asJSON bool
	check := &cobra.Command{
		Use: "check [ROLE]", Short: "report every mistake in the configuration, and in the files that it names",
		Long: fmt.Sprintf(`Report everything in the configuration that keeps a process from starting: values, and files that cannot be read or do not
hold what they should. With a role (%s) report also what this role needs, as its command does
before it starts. Servers are not asked; see "smartfeed doctor".`, strings.Join(texts(roles()), ", ")),
		Args: cobra.MaximumNArgs(1), ValidArgs: texts(roles()),
		Example: "  smartfeed config check\n  smartfeed config check serve --config smartfeed.yaml --json",
		RunE: func(cmd *cobra.Command, args []string) error {
			role, err := roleOf(args)
			if err != nil {
				return err
			}
			cfg, err := p.load(cmd)
			if err == nil {
				err = cfg.check(role)
			}
			if asJSON {
				return errors.Join(command.PrintJSON(cmd.OutOrStdout(), newVerdict(err)), err)
			}
			if err == nil {
				fmt.Fprintln(cmd.OutOrStdout(), "the configuration is in order")
			}
			return err
		},
	}
	check.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.AddCommand(check, &cobra.Command{
		Use: "show", Short: "print every value as it is in force, as a configuration file", Args: noArguments,
		Example: "  smartfeed config show > smartfeed.yaml\n  SMARTFEED_POOLS_CAP=200 smartfeed config show",
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := p.load(cmd)
			if err != nil {
				return err
			}
			return cfg.Write(cmd.OutOrStdout())
		},
	})
	return cmd
}

// roleOf returns the role argument of config check, or "" if there is none.
func roleOf(args []string) (Role, error) {
	if len(args) == 0 {
		return "", nil
	}
	if !slices.Contains(texts(roles()), args[0]) {
		return "", command.Usagef("there is no role %q, but %s", args[0], strings.Join(texts(roles()), ", "))
	}
	return Role(args[0]), nil
}

func texts(roles []Role) (out []string) {
	for _, r := range roles {
		out = append(out, string(r))
	}
	return out
}

// verdict is the JSON output of config check.
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

// idCommand returns the commands that create and split sharded ids.
func idCommand() *cobra.Command {
	cmd := command.Group("id", "make and take apart sharded ids", "  smartfeed id split 241294492511762325")
	var asJSON bool
	cmd.AddCommand(&cobra.Command{
		Use: "make SHARD TYPE LOCAL", Short: "print the id of these parts", Args: cobra.ExactArgs(3),
		Example: "  smartfeed id make 3429 1 7075733",
		RunE: func(cmd *cobra.Command, args []string) error {
			var parts [3]uint64
			for i, bits := range []int{32, 32, 64} {
				var err error
				if parts[i], err = strconv.ParseUint(args[i], 10, bits); err != nil {
					return command.Usagef("%q is no whole number of the size wanted", args[i])
				}
			}
			id, err := schemas.MakeShardedID(uint32(parts[0]), uint32(parts[1]), parts[2])
			if err != nil {
				return &command.UsageError{Err: err}
			}
			return printID(cmd.OutOrStdout(), id, asJSON, id.String())
		},
	}, &cobra.Command{
		Use: "split ID", Short: "print shard, type and local of an id, with or without its kind", Args: cobra.ExactArgs(1),
		Example: "  smartfeed id split pin:241294492511762325\n  smartfeed id split 241294492511762325 --json",
		RunE: func(cmd *cobra.Command, args []string) error {
			name := args[0]
			if _, rest, found := strings.Cut(name, ":"); found {
				name = rest
			}
			id, err := schemas.ParseShardedID(name)
			if err != nil {
				return &command.UsageError{Err: err}
			}
			shard, typ, local := id.Split()
			return printID(cmd.OutOrStdout(), id, asJSON, fmt.Sprintf("shard %d type %d local %d", shard, typ, local))
		},
	})
	cmd.PersistentFlags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// printID prints an id and its parts as JSON, or a line of text.
func printID(out io.Writer, id schemas.ShardedID, asJSON bool, line string) error {
	if !asJSON {
		_, err := fmt.Fprintln(out, line)
		return err
	}
	shard, typ, local := id.Split()
	return command.PrintJSON(out, struct {
		ID    string `json:"id"` // a text, because it does not fit a float
		Shard uint32 `json:"shard"`
		Type  uint32 `json:"type"`
		Local uint64 `json:"local"`
	}{id.String(), shard, typ, local})
}

// build is the JSON output of version.
type build struct {
	Version string `json:"version"` // the git tag or commit; "unknown" for a build without make
	Go      string `json:"go"`
	OS      string `json:"os"`
	Arch    string `json:"arch"`
}

func (p *program) versionCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "version", Short: "print the version", Args: noArguments,
		Example: "  smartfeed version\n  smartfeed version --json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if asJSON {
				return command.PrintJSON(cmd.OutOrStdout(), build{version, runtime.Version(), runtime.GOOS, runtime.GOARCH})
			}
			_, err := fmt.Fprintln(cmd.OutOrStdout(), version)
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}
