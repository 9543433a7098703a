package cli

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/smartfeed/smartfeed/app"
	"github.com/smartfeed/smartfeed/internal/config"
	"github.com/smartfeed/smartfeed/internal/convert"
	"github.com/smartfeed/smartfeed/internal/progress"
	"github.com/smartfeed/smartfeed/internal/status"
	"github.com/smartfeed/smartfeed/serving/client"
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

// client returns a client of the running server. The caller must close it.
func (p *program) client(cmd *cobra.Command) (*client.Client, error) {
	cfg, err := p.server(cmd)
	if err != nil {
		return nil, err
	}
	c, err := client.New(cfg)
	if wrong := new(client.AddressError); errors.As(err, &wrong) {
		return nil, usage(err)
	}
	return c, err
}

// request is a request to a running server.
type request struct {
	path  []string   // below /v1
	query url.Values // of a GET
	body  any        // nil: GET; otherwise POST
}

// ask sends a request to a running server, and returns the JSON of its answer.
func (p *program) ask(cmd *cobra.Command, r request) (answer json.RawMessage, err error) {
	c, err := p.client(cmd)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	path := append([]string{"v1"}, r.path...)
	if r.body == nil {
		answer, err = c.Get(cmd.Context(), r.query, path...)
	} else {
		answer, err = c.Post(cmd.Context(), r.body, path...)
	}
	if err == nil && !json.Valid(answer) {
		err = errors.New("read answer: it is not JSON")
	}
	return answer, explained(err)
}

// explained returns an error with each problem of a rejected request on its own line, if there are several.
func explained(err error) error {
	refused, ok := errors.AsType[*client.Error](err)
	if !ok || len(refused.Errors) < 2 {
		return err
	}
	problems := convert.All(refused.Errors, func(one string) error { return errors.New("  " + printed(one)) })
	return errors.Join(slices.Insert(problems, 0, err)...)
}
