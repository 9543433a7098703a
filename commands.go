package main

import (
	"fmt"
	"log/slog"
	"os"

	"github.com/spf13/cobra"

	"github.com/smartfeed/smartfeed/internal/config"
	"github.com/smartfeed/smartfeed/internal/progress"
	"github.com/smartfeed/smartfeed/topics"
	"github.com/smartfeed/smartfeed/topics/lastfm"
	"github.com/smartfeed/smartfeed/topics/simulate"
)

// program is one run of the binary.
type program struct {
	environ []string
	file    string // --config
	started bool   // the command line was understood
}

// command is the whole tree of commands.
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
	root.PersistentFlags().StringVar(&p.file, "config", "", "configuration file (default smartfeed.yaml, if there is one)")
	root.AddCommand(p.devCommand(), p.importCommand(), simulate.Command(p.setup), p.configCommand(), p.versionCommand())
	root.AddCommand(topics.Commands(p.setup)...)
	return root
}

// load reads the configuration as the command line, the environment and the file have it.
func (p *program) load(cmd *cobra.Command) (Config, error) {
	cfg := DefaultConfig()
	src := config.Source{File: p.configFile(), Environ: p.environ, Flags: cmd.Flags()}
	if err := config.Load(&cfg, src); err != nil {
		return Config{}, usageError{err}
	}
	cfg.settle()
	return cfg, nil
}

// defaultFile is read if it is there and no other is named.
const defaultFile = "smartfeed.yaml"

func (p *program) configFile() string {
	if p.file != "" {
		return p.file
	}
	if name := os.Getenv(config.EnvPrefix + "CONFIG"); name != "" {
		return name
	}
	if _, err := os.Stat(defaultFile); err == nil {
		return defaultFile
	}
	return ""
}

// logger writes to standard error, as the configuration says.
func logger(cmd *cobra.Command, cfg LogConfig) *slog.Logger {
	options := &slog.HandlerOptions{Level: cfg.Level}
	if cfg.Format == "json" {
		return slog.New(slog.NewJSONHandler(cmd.ErrOrStderr(), options))
	}
	return slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), options))
}

// setup is what the commands of other folders need of the configuration.
func (p *program) setup(cmd *cobra.Command) (topics.Setup, error) {
	cfg, err := p.load(cmd)
	if err != nil {
		return topics.Setup{}, err
	}
	reporter := progress.To(cmd.ErrOrStderr())
	return topics.Setup{
		Kafka: cfg.kafka(), Registry: cfg.registryURL(), Verbs: cfg.Verbs, Log: logger(cmd, cfg.Log),
		Progress: func(what string, total int) topics.Progress { return reporter.Start(what, total) },
	}, nil
}

func (p *program) importCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "import", Short: "publish events made of other people's data", Args: noArguments}
	cmd.AddCommand(lastfm.Command(p.setup))
	return cmd
}

func (p *program) configCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "config", Short: "check and show the configuration", Args: noArguments}
	cmd.AddCommand(&cobra.Command{
		Use: "check", Short: "report every mistake in the configuration", Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if _, err := p.load(cmd); err != nil {
				return err
			}
			fmt.Fprintln(cmd.OutOrStdout(), "the configuration is in order")
			return nil
		},
	})
	return cmd
}

func (p *program) versionCommand() *cobra.Command {
	return &cobra.Command{Use: "version", Short: "print the version", Args: noArguments,
		Run: func(cmd *cobra.Command, _ []string) { fmt.Fprintln(cmd.OutOrStdout(), version) }}
}
