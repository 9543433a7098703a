package feature

import (
	"log/slog"

	"github.com/smartfeed/smartfeed/internal/metrics"
	"github.com/smartfeed/smartfeed/internal/reload"
)

// NewReloader returns a File that reloads the definitions of a Service, every cfg.ReloadInterval. path "" means the built-in
// definitions, which do not change. If the file is invalid, the present definitions stay in use.
func NewReloader(cfg Config, path string, service *Service, m *Metrics, log *slog.Logger) *reload.File {
	return reload.New(reload.Config{
		Contents: "feature definitions", Path: path, Every: cfg.ReloadInterval, MaxBytes: MaxFileBytes, Log: log,
		Apply: func(text []byte) (needsRestart []string, err error) {
			defs, err := Parse(path, text)
			if err != nil {
				return nil, err
			}
			return nil, service.Replace(defs)
		},
		Report: func(s reload.State) { m.stale.Set(metrics.Flag(s.Error != "")) },
	})
}
