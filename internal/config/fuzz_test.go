package config

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
)

// FuzzLoad loads any text as a file and as two variables. Load must not panic, and a valid variable must take effect.
func FuzzLoad(f *testing.F) {
	f.Add("pools:\n  cap: 3\nlist: [a, b]\n", "5s", "a,b")
	f.Add("a: &a [*a]\n", "{", "[")
	f.Add("map: {x: {y: 1}}\n<<: {}", "1e999", "!!binary x")
	f.Fuzz(func(t *testing.T, text, variable, more string) {
		var cfg struct {
			Pools struct {
				Cap int `yaml:"cap"`
			} `yaml:"pools"`
			Gap  time.Duration      `yaml:"gap"`
			List []string           `yaml:"list"`
			Map  map[string]float64 `yaml:"map"`
		}
		file := filepath.Join(t.TempDir(), "x.yaml")
		must.OK(t, os.WriteFile(file, []byte(text), 0o600))
		err := Load(&cfg, Source{File: file, Environ: []string{"SMARTFEED_GAP=" + variable, "SMARTFEED_LIST=" + more}})
		expect.False(t, err == nil && cfg.Gap == 0 && variable == "5s", "the variable has no effect")
	})
}
