// Package inference calls models that score the candidates of a visit, over HTTP. A model has one of these protocols:
//
//   - JSON, the protocol of this project: see Request and jsonResponse.
//   - OpenInference and OpenInferenceBinary: the Open Inference Protocol v2, with tensors in JSON or as bytes. KServe, Triton,
//     MLServer and OpenVINO Model Server implement it. The URL is that of the model's infer endpoint:
//     http://HOST/v2/models/NAME/infer.
//
// A model returns one or more outputs: for each candidate, the probability of a save, of a hide, and so on. Combine adds them
// up with configured weights.
package inference

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/smartfeed/smartfeed/internal/settings"
	"github.com/smartfeed/smartfeed/processors/external"
	"github.com/smartfeed/smartfeed/schemas"
)

// The protocols of a model.
const (
	JSON                = "json"
	OpenInference       = "open-inference"
	OpenInferenceBinary = "open-inference-binary"
)

// MaxFeatures is the maximum number of features of a model.
const MaxFeatures = 100

// Config configures a model.
type Config struct {
	external.Config `yaml:",inline"` // without a URL there is no model
	Protocol        string           `yaml:"protocol" default:"json" help:"protocol of the model: json, open-inference or open-inference-binary"`
	MaxCandidates   int              `yaml:"max_candidates" default:"200" range:"1..1000" help:"number of best candidates of all sources that are sent to the model"`
	// Repeated values of a user's features are sent for each candidate.
	Features     []string `yaml:"features" help:"names of the features of users, pins and pairs that the model receives, at most 100; their values must be numbers"`
	MissingValue float64  `yaml:"missing_value" default:"0" range:"-1e9..1e9" help:"value that the model receives for a missing feature"`
	Input        string   `yaml:"input" default:"features" help:"name of the input tensor of the Open Inference Protocol, with a row per candidate and a column per feature, of type FP32"`
}

// Validate reports every field that is out of its bounds, if there is a model.
func (c Config) Validate() error {
	if c.URL == "" {
		return nil
	}
	problems := settings.Problems{c.Config.Validate(), settings.Validate(c)}
	protocols := []string{"", JSON, OpenInference, OpenInferenceBinary}
	problems.Want(slices.Contains(protocols, c.Protocol), "protocol: %q: want one of %s", c.Protocol, strings.Join(protocols[1:], ", "))
	problems.Want(c.isJSON() || c.Input != "" && len(c.Features) > 0,
		"input, features: the Open Inference Protocol requires a name and at least one feature")
	repeats := len(c.Features) - len(slices.Compact(slices.Sorted(slices.Values(c.Features))))
	problems.Want(len(c.Features) <= MaxFeatures && repeats == 0,
		"features: %d names: want at most %d, each once", len(c.Features), MaxFeatures)
	return problems.Err()
}

func (c Config) isJSON() bool { return c.Protocol == JSON || c.Protocol == "" }

// UsesFeatures reports whether there is a model that receives features.
func (c Config) UsesFeatures() bool { return c.URL != "" && len(c.Features) > 0 }

// Request asks a model for the outputs of candidates. In JSON it is the request of the protocol JSON.
type Request struct {
	User       schemas.UserID `json:"user"`
	Feed       string         `json:"feed"`
	Candidates []Candidate    `json:"candidates"`        // a pin occurs once for each of its sources
	Values     [][]float32    `json:"-"`                 // of the configured features: a row for each candidate, without NaN
	Outputs    []string       `json:"outputs,omitempty"` // names of the requested outputs; none: the first one
}

// Candidate is a candidate of a Request.
type Candidate struct {
	Pin     schemas.PinID     `json:"pin"`
	Source  schemas.Source    `json:"source"`
	Score   schemas.PoolScore `json:"score"`
	Created time.Time         `json:"created"`
	schemas.Facets
	Features map[string]float32 `json:"features,omitempty"` // set by Infer, if the protocol is JSON
}

// Outputs are the outputs of a model: a row for each candidate of the request, with a number for each name. A number is NaN if the
// model returned none for the candidate.
type Outputs struct {
	Names []string
	Rows  [][]float64
}

// Model is a model. Service calls it.
type Model struct {
	cfg     Config
	service *external.Service
}

// New returns a model that is called through service.
func New(cfg Config, service *external.Service) *Model { return &Model{cfg, service} }

// Infer returns the outputs of the candidates. The error is that of external.Service.Call.
func (m *Model) Infer(ctx context.Context, req Request) (Outputs, error) {
	if m.cfg.isJSON() {
		return m.inferJSON(ctx, req)
	}
	return m.inferTensors(ctx, req)
}

// Combine returns the weighted sum of the outputs for each candidate. Without weights, each has the weight 1. The sum is not finite
// if a number is not.
func (o Outputs) Combine(weights map[string]float64) []float64 {
	sums := make([]float64, len(o.Rows))
	for i, row := range o.Rows {
		for k, name := range o.Names {
			weight, given := weights[name]
			if !given {
				weight = 1
			}
			sums[i] += weight * row[k]
		}
	}
	return sums
}

// column splits the name of an output: "proba[1]" is column 1 of the output proba. Without brackets, the output has one
// column, and column is -1.
func column(name string) (output string, column int) {
	output, rest, found := strings.Cut(name, "[")
	n, err := strconv.Atoi(strings.TrimSuffix(rest, "]"))
	if !found || err != nil || n < 0 {
		return name, -1
	}
	return output, n
}
