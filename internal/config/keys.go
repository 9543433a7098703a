package config

import "github.com/smartfeed/smartfeed/internal/settings"

// Key describes a value that can be set.
type Key struct {
	Path    string // pools.cap
	Env     string // SMARTFEED_POOLS_CAP
	Help    string // one line, without a full stop
	Type    string // duration, int, number, bool, string, list or yaml
	Default string // as it is written in YAML
	Range   string // "10 to 1000000"; "" without bounds
}

// Keys returns the values of the struct that cfg points to, in the order of the struct. Its values are the defaults.
func Keys(cfg any) []Key {
	var out []Key
	for _, l := range leaves(cfg) {
		out = append(out, Key{
			Path: l.path, Env: l.env(), Help: l.help(), Type: shortType(l.value.Type().String()), Default: show(l.value),
			Range: settings.RangeText(l.field),
		})
	}
	return out
}
