package cli

import (
	"context"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/smartfeed/smartfeed/app"
	"github.com/smartfeed/smartfeed/internal/config"
	"github.com/smartfeed/smartfeed/internal/progress"
	"github.com/smartfeed/smartfeed/internal/status"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/serving/client"
	"github.com/smartfeed/smartfeed/serving/feature"
	"github.com/smartfeed/smartfeed/topics"
)

// load reads the configuration from the command line, the environment and the file.
func (p *program) load(cmd *cobra.Command) (app.Config, error) {
	cfg := app.DefaultConfig()
	src := config.Source{File: p.configFile(), Environ: p.environ, Flags: cmd.Flags()}
	if err := config.Load(&cfg, src); err != nil {
		return app.Config{}, usage(err)
	}
	p.warnOfServiceLinks(cfg.Log.Logger(cmd.ErrOrStderr()))
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

// setup returns how a command reaches the brokers and the registry, with its log and its progress display.
func (p *program) setup(cmd *cobra.Command) (topics.Setup, error) {
	cfg, err := p.load(cmd)
	if err != nil {
		return topics.Setup{}, err
	}
	setup, err := cfg.Setup()
	reporter := progress.To(cmd.ErrOrStderr())
	setup.Log = cfg.Log.Logger(cmd.ErrOrStderr())
	setup.Progress = func(what string, total int) topics.Progress { return reporter.Start(what, total) }
	setup.Results = func(ctx context.Context) (topics.Results, error) {
		at, err := cfg.ClientConfig(p.environ)
		if err != nil {
			return topics.Results{}, err
		}
		return status.RequestResults(ctx, at)
	}
	return setup, err
}

// streams is setup with the open streams.
func (p *program) streams(cmd *cobra.Command) (topics.Setup, *topics.Streams, error) {
	setup, err := p.setup(cmd)
	if err != nil {
		return setup, nil, err
	}
	streams, err := setup.Streams(cmd.Context())
	return setup, streams, err
}

// server returns the HTTP server and the credentials for a command.
func (p *program) server(cmd *cobra.Command) (client.Config, error) {
	cfg, err := p.load(cmd)
	if err != nil {
		return client.Config{}, err
	}
	return cfg.ClientConfig(p.environ)
}

// names are the names in the configuration that a shell can complete. They do not include users.
type names struct{ feeds, sources, features []string }

// names returns the names that completion can offer, or none if the configuration is invalid.
func (p *program) names(cmd *cobra.Command) names {
	cfg, err := p.load(cmd)
	if err != nil {
		return names{}
	}
	n := names{
		feeds:   slices.Sorted(maps.Keys(cfg.Generator.Feeds)),
		sources: []string{string(schemas.Following), string(schemas.FromInterest), string(schemas.Related), string(schemas.FromPopular)},
	}
	for _, source := range cfg.Generator.ExternalSources {
		n.sources = append(n.sources, string(source.Name))
	}
	if definitions, err := feature.Load(cfg.FeaturesFile); err == nil {
		for _, d := range definitions {
			n.features = append(n.features, d.Name)
		}
	}
	return n
}
