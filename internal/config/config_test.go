package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
)

type pool struct {
	Cap      int           `yaml:"cap"`
	HalfLife time.Duration `yaml:"half_life"`
}

type product struct {
	Dir    string             `yaml:"dir" help:"state directory"`
	Kafka  []string           `yaml:"kafka"`
	Loud   bool               `yaml:"loud"`
	Pools  pool               `yaml:"pools"`
	Shares map[string]float64 `yaml:"shares"`
}

func (p *product) Validate() error {
	var problems []error
	if p.Pools.Cap < 1 {
		problems = append(problems, errors.New("pools.cap: 0 is below 1"))
	}
	if p.Dir == "" {
		problems = append(problems, errors.New("dir: is empty"))
	}
	return errors.Join(problems...)
}

func defaults() *product {
	return &product{Dir: "data", Kafka: []string{"a:1"}, Pools: pool{Cap: 500, HalfLife: time.Hour}}
}

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "smartfeed.yaml")
	must.OK(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func parsed(t *testing.T, args ...string) *pflag.FlagSet {
	t.Helper()
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	AddFlags(defaults(), flags)
	must.OK(t, flags.Parse(args))
	return flags
}

func TestLoad_LaterSourcesOverride(t *testing.T) {
	file := write(t, "dir: fromfile\nkafka: [b:1, c:2]\npools: {cap: 7, half_life: 90s}\nshares: {related: 0.5}\n")
	got := defaults()
	err := Load(got, Source{
		File:    file,
		Environ: []string{"HOME=/x", "SMARTFEED_DIR=fromenv", "SMARTFEED_SHARES={interest: 0.25}", "SMARTFEED_POOLS_CAP=8", "SMARTFEED_CONFIG=" + file},
		Flags:   parsed(t, "--pools.cap=9", "--loud", "--kafka", "d:1,e:2"),
	})
	must.OK(t, err)
	want := &product{Dir: "fromenv", Kafka: []string{"d:1", "e:2"}, Loud: true,
		Pools: pool{Cap: 9, HalfLife: 90 * time.Second}, Shares: map[string]float64{"related": 0.5, "interest": 0.25}}
	expect.NoDiff(t, got, want, "loaded configuration")
}

func TestLoad_ReportsEveryMistakeWithItsPlace(t *testing.T) {
	file := write(t, "dir: x\npools:\n  cap: many\n  color: red\nextra: 1\n")
	err := Load(defaults(), Source{
		File:    file,
		Environ: []string{"SMARTFEED_POOLS_HALF_LIFE=soon", "SMARTFEED_NOSUCH=1"},
		Flags:   parsed(t, "--loud=perhaps"),
	})
	for _, want := range []string{
		file + ":3: ", file + ":4: unknown key pools.color", file + ":5: unknown key extra",
		`SMARTFEED_POOLS_HALF_LIFE: "soon": want duration`, "SMARTFEED_NOSUCH: unknown variable",
		`--loud: "perhaps": want bool`,
	} {
		expect.Error(t, err, want, "Load")
	}
}

func TestLoad_NamesLineOfInvalidValue(t *testing.T) {
	file := write(t, "# a comment\npools:\n  cap: 0\n")
	cfg := defaults()
	cfg.Dir = ""
	want := file + ":3: pools.cap: 0 is below 1\ndir: is empty"
	expect.Equal(t, fmt.Sprint(Load(cfg, Source{File: file})), want, "error")
}

func TestLoad_RejectsBadFiles(t *testing.T) {
	for name, c := range map[string]struct{ file, want string }{
		"missing":   {filepath.Join(t.TempDir(), "no.yaml"), "no such file"},
		"not yaml":  {write(t, "a: [\n"), "line 1"},
		"too large": {write(t, strings.Repeat("# long\n", MaxFileBytes/6)), "more than"},
	} {
		expect.Error(t, Load(defaults(), Source{File: c.file}), c.want, "%s", name)
	}
	must.OK(t, Load(defaults(), Source{File: write(t, "")}))
}

func TestAddFlags_ShowDefaults(t *testing.T) {
	flags := parsed(t)
	for name, want := range map[string]string{"dir": "data", "kafka": "a:1", "pools.half_life": "1h", "loud": "false"} {
		expect.Equal(t, flags.Lookup(name).DefValue, want, "--%s: default", name)
	}
	expect.True(t, !flags.Lookup("dir").Hidden && flags.Lookup("pools.cap").Hidden, "only nested flags are hidden")
}

// The variables that kubelet sets in a pod for the Services "smartfeed" and "smartfeed-serve".
func serviceLinks() []string {
	return []string{
		"SMARTFEED_SERVICE_HOST=10.96.0.10",
		"SMARTFEED_SERVICE_PORT=8080",
		"SMARTFEED_SERVICE_PORT_HTTP=8080",
		"SMARTFEED_PORT=tcp://10.96.0.10:8080",
		"SMARTFEED_PORT_8080_TCP=tcp://10.96.0.10:8080",
		"SMARTFEED_PORT_8080_TCP_PROTO=tcp",
		"SMARTFEED_PORT_8080_TCP_PORT=8080",
		"SMARTFEED_PORT_8080_TCP_ADDR=10.96.0.10",
		"SMARTFEED_SERVE_SERVICE_HOST=fd00::10",
		"SMARTFEED_SERVE_PORT_53_UDP=udp://[fd00::10]:53",
	}
}

func TestLoad_IgnoresVariablesOfKubernetesServices(t *testing.T) {
	must.OK(t, Load(defaults(), Source{Environ: serviceLinks()}))
	expect.Equal(t, len(ServiceLinks(append(serviceLinks(), "HOME=/x", "SMARTFEED_DIR=data"))), len(serviceLinks()), "ignored variables")
}

func TestLoad_RefusesVariablesThatOnlyResembleServiceLinks(t *testing.T) {
	for _, kv := range []string{
		"SMARTFEED_PORT=8080", "SMARTFEED_HTTP_PORT=8080", "SMARTFEED_PORT_8080=tcp://10.96.0.10:8080",
		"SMARTFEED_SERVICE=feed", "SMARTFEED_SERVICE_PORT=http", "SMARTFEED_PORTS=tcp://10.96.0.10:8080",
	} {
		expect.Error(t, Load(defaults(), Source{Environ: []string{kv}}), "unknown variable", "%s", kv)
	}
}

type source struct {
	Name  string        `yaml:"name" help:"its name"`
	Limit int           `yaml:"limit" range:"1..9"`
	Wait  time.Duration `yaml:"wait" range:"0s..1m"`
	More  []more        `yaml:"more"`
}

type more struct {
	Share float64 `yaml:"share"`
}

func TestKeys_DescribeElementsOfLists(t *testing.T) {
	cfg := struct {
		Sources []source `yaml:"sources"`
	}{}
	got := Keys(&cfg)
	want := []Key{{Path: "sources", Env: "SMARTFEED_SOURCES", Type: "list", Default: "[]", Elements: []Key{
		{Path: "sources[].name", Help: "its name", Type: "string"},
		{Path: "sources[].limit", Type: "int", Default: "required", Range: "1 to 9"},
		{Path: "sources[].wait", Type: "duration", Default: "0s", Range: "0s to 1m"},
		{Path: "sources[].more", Type: "list", Default: "[]", Elements: []Key{{Path: "sources[].more[].share", Type: "number", Default: "0"}}},
	}}}
	expect.NoDiff(t, got, want, "configuration")
}

func TestValues_CanBePrintedAsJSON(t *testing.T) {
	cfg := defaults()
	cfg.Dir, cfg.Shares = "state", map[string]float64{"related": math.Inf(-1)}
	values := must.Get(Values(cfg, defaults(), Options{Changed: true}))(t)
	got := must.Get(json.Marshal(values))(t)
	expect.Equal(t, string(got), `{"dir":"state","shares":{"related":"-.inf"}}`, "values")
}
