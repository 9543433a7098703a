package app

import (
	"context"

	"github.com/smartfeed/smartfeed/internal/config"
	"github.com/smartfeed/smartfeed/internal/metrics"
	"github.com/smartfeed/smartfeed/internal/reload"
	"github.com/smartfeed/smartfeed/schemas"
)

// ConfigFile is the file of a configuration. While an App runs, it reloads verbs and generator.feeds from the file; changes
// of other keys need a restart. The zero value means that nothing is reloaded.
type ConfigFile struct {
	Path string
	Load func() (Config, error) // loads and validates the configuration as for the start, with its other sources
}

// reloads adds a file that is reloaded, as a component.
func (p *App) reloads(component string, f *reload.File) {
	p.reloaded = append(p.reloaded, f)
	p.component(component, f.Run)
}

// openConfigReload reloads the configuration while the process runs.
func (p *App) openConfigReload(context.Context) error {
	set := metrics.New(p.metrics, "smartfeed_config_")
	stale := set.Gauge("stale", "1 while the configuration file is invalid and the previous values stay in use, otherwise 0.")
	restart := set.Gauge("restart_required", "Number of keys that have changed in the configuration file and need a restart.")
	p.reloads("configuration", reload.New(reload.Config{
		Contents: "configuration", Path: p.file.Path, Every: p.cfg.ReloadInterval, MaxBytes: config.MaxFileBytes, Log: p.log,
		Apply: p.reloadConfig,
		Report: func(s reload.State) {
			stale.Set(metrics.Flag(s.Error != ""))
			restart.Set(float64(len(s.NeedsRestart)))
		},
	}))
	return set.Err()
}

// reloadConfig applies the reloadable keys of the configuration file, and returns the other keys that differ from the start.
// It ignores the text: Load reads the file again, and its other sources.
func (p *App) reloadConfig([]byte) (needsRestart []string, err error) {
	next, err := p.file.Load()
	if err != nil {
		return nil, err
	}
	cfg := p.cfg
	cfg.Verbs, cfg.Generator.Feeds = next.Verbs, next.Generator.Feeds
	if err := cfg.Validate(); err != nil { // together with the values that stay
		return nil, err
	}
	p.current.Store(&cfg)
	if p.local != nil {
		p.local.SetFeeds(cfg.Generator.Feeds)
	}
	needsRestart = config.Changed(&cfg, &next)
	if p.local != nil && p.features == nil && cfg.Generator.LooksUpEmbeddings() {
		needsRestart = append(needsRestart, "generator.feeds")
	}
	return needsRestart, nil
}

// currentVerbs returns the verbs of the last reload.
func (p *App) currentVerbs() schemas.Verbs { return p.current.Load().Verbs }

// reloadStates returns the results of the last reloads.
func (p *App) reloadStates() (all []reload.State) {
	for _, f := range p.reloaded {
		if s := f.State(); s.File != "" {
			all = append(all, s)
		}
	}
	return all
}
