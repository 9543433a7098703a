package app

import (
	"io"
	"log/slog"
)

// LogConfig configures the log, which goes to standard error.
type LogConfig struct {
	Level  slog.Level `yaml:"level" help:"debug, info, warn or error"`
	Format string     `yaml:"format" default:"text" help:"text or json"`
}

// Logger returns a logger that writes to w as configured.
func (c LogConfig) Logger(w io.Writer) *slog.Logger {
	options := &slog.HandlerOptions{Level: c.Level, ReplaceAttr: errorText}
	if c.Format == "json" {
		return slog.New(slog.NewJSONHandler(w, options))
	}
	return slog.New(slog.NewTextHandler(w, options))
}

// errorText logs an error as its text. Some libraries would otherwise add the stack of its origin.
func errorText(_ []string, a slog.Attr) slog.Attr {
	if err, ok := a.Value.Any().(error); ok {
		a.Value = slog.StringValue(err.Error())
	}
	return a
}
