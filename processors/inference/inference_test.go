package inference_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/processors/external"
	"github.com/smartfeed/smartfeed/processors/inference"
)

// posted is a request that a fake model received.
type posted struct {
	header http.Header
	json   string // the JSON part of the body
	rest   []byte
}

// model returns a model that answers with a fixed response, and the requests that it receives.
func model(t *testing.T, cfg inference.Config, response string, tensors []byte) (*inference.Model, *[]posted) {
	t.Helper()
	var requests []posted
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body := must.Get(io.ReadAll(r.Body))(t)
		n := len(body)
		if length := r.Header.Get("Inference-Header-Content-Length"); length != "" {
			n = must.Get(strconv.Atoi(length))(t)
		}
		requests = append(requests, posted{r.Header, string(body[:n]), body[n:]})
		if tensors != nil {
			w.Header().Set("Inference-Header-Content-Length", strconv.Itoa(len(response)))
		}
		_, _ = w.Write(append([]byte(response), tensors...))
	}))
	t.Cleanup(server.Close)
	cfg.URL, cfg.Timeout = server.URL, 10*time.Second
	service := external.New(cfg.Config, nil)
	t.Cleanup(service.Close)
	return inference.New(cfg, service), &requests
}

// question asks for two candidates with two features.
func question(outputs ...string) inference.Request {
	return inference.Request{
		User: "user:ada", Feed: "home", Outputs: outputs,
		Candidates: []inference.Candidate{{Pin: "pin:1", Source: "following"}, {Pin: "pin:2", Source: "related"}},
		Values:     [][]float32{{0.1, 2}, {3, -4}},
	}
}

func configured(protocol string) inference.Config {
	return inference.Config{Protocol: protocol, MaxCandidates: 2, Input: "features", Features: []string{"clicks", "taste"}}
}

func float32s(values ...float32) (data []byte) {
	for _, v := range values {
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(v))
	}
	return data
}

func TestInfer_JSON(t *testing.T) {
	m, requests := model(t, configured(inference.JSON), `{"outputs":{"save":{"pin:2":0.5,"pin:1":-1},"hide":{"pin:1":7}}}`, nil)
	got := must.Get(m.Infer(t.Context(), question("hide", "save")))(t)
	want := inference.Outputs{Names: []string{"hide", "save"}, Rows: [][]float64{{7, -1}, {math.NaN(), 0.5}}}
	expect.NoDiffBut(t, cmpopts.EquateNaNs(), got, want, "outputs")
	for _, part := range []string{`"user":"user:ada"`, `"outputs":["hide","save"]`, `"features":{"clicks":0.1,"taste":2}`, `"features":{"clicks":3,"taste":-4}`} {
		expect.Contains(t, (*requests)[0].json, part, "request")
	}
}

// A response may have many values that smartfeed does not know.
func TestInfer_JSONWithUnknownValues(t *testing.T) {
	m, _ := model(t, configured(inference.JSON), `{"scores":{"pin:1":1,"pin:2":2},"debug":[0`+strings.Repeat(",0", 200)+`]}`, nil)
	got := must.Get(m.Infer(t.Context(), question()))(t)
	expect.NoDiff(t, got, inference.Outputs{Names: []string{"score"}, Rows: [][]float64{{1}, {2}}}, "outputs")
}

func TestInfer_TensorsInJSON(t *testing.T) {
	for name, c := range map[string]struct {
		outputs  []string
		request  string // its outputs
		response string
		want     inference.Outputs
	}{
		"first output": {nil, ``, `{"outputs":[{"name":"predict","shape":[2,1],"datatype":"FP64","data":[1.5,2]},{"name":"x","shape":[2],"data":[0,0]}]}`,
			inference.Outputs{Names: []string{"predict"}, Rows: [][]float64{{1.5}, {2}}}},
		"heads": {[]string{"save", "hide"}, `,"outputs":[{"name":"save"},{"name":"hide"}]`,
			`{"outputs":[{"name":"hide","shape":[2],"data":[0.1,0.2]},{"name":"save","shape":[2],"data":[1,2]}]}`,
			inference.Outputs{Names: []string{"save", "hide"}, Rows: [][]float64{{1, 0.1}, {2, 0.2}}}},
		"columns": {[]string{"proba[0]", "proba[1]"}, `,"outputs":[{"name":"proba"}]`, `{"outputs":[{"name":"proba","shape":[2,2],"data":[[0.9,0.1],[0.2,0.8]]}]}`,
			inference.Outputs{Names: []string{"proba[0]", "proba[1]"}, Rows: [][]float64{{0.9, 0.1}, {0.2, 0.8}}}},
	} {
		t.Run(name, func(t *testing.T) {
			m, requests := model(t, configured(inference.OpenInference), c.response, nil)
			got := must.Get(m.Infer(t.Context(), question(c.outputs...)))(t)
			expect.NoDiff(t, got, c.want, "outputs")
			want := `{"inputs":[{"name":"features","shape":[2,2],"datatype":"FP32","data":[0.1,2,3,-4]}]` + c.request + `}`
			expect.Equal(t, (*requests)[0].json, want, "request")
		})
	}
}

func TestInfer_BinaryTensors(t *testing.T) {
	response := `{"outputs":[{"name":"hide","shape":[2],"datatype":"FP32","parameters":{"binary_data_size":8}},` +
		`{"name":"class","shape":[2],"datatype":"INT64","parameters":{"binary_data_size":16}},` +
		`{"name":"save","shape":[2],"datatype":"FP64","parameters":{"binary_data_size":16}}]}`
	tensors := float32s(0.25, -1)
	tensors = binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(tensors, 3), math.MaxUint64)
	tensors = binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(tensors, math.Float64bits(0.1)), math.Float64bits(2))
	m, requests := model(t, configured(inference.OpenInferenceBinary), response, tensors)
	got := must.Get(m.Infer(t.Context(), question("save", "hide", "class")))(t)
	want := inference.Outputs{Names: []string{"save", "hide", "class"}, Rows: [][]float64{{0.1, 0.25, 3}, {2, -1, -1}}}
	expect.NoDiff(t, got, want, "outputs")
	request := (*requests)[0]
	if want := float32s(0.1, 2, 3, -4); !bytes.Equal(request.rest, want) || !json.Valid([]byte(request.json)) {
		t.Errorf("got tensors % x after %s, want % x", request.rest, request.json, want)
	}
	for _, part := range []string{`"parameters":{"binary_data_size":16}`, `{"name":"save","parameters":{"binary_data":true}}`, `"binary_data_output":true`} {
		expect.Contains(t, request.json, part, "request")
	}
}

func TestInfer_RejectsResponses(t *testing.T) {
	one := `{"outputs":[{"name":"predict","shape":[2],"datatype":"FP32","parameters":{"binary_data_size":%d}}]}`
	for want, c := range map[string]struct {
		response string
		tensors  []byte
	}{
		`output "predict" is missing`: {`{"outputs":[{"name":"other","data":[1,2]}]}`, nil},
		"3 numbers of shape [3]":      {`{"outputs":[{"name":"predict","shape":[3],"data":[1,2,3]}]}`, nil},
		"0 numbers":                   {`{"outputs":[{"name":"predict","data":[]}]}`, nil},
		"data has a string":           {`{"outputs":[{"name":"predict","data":["1","2"]}]}`, nil},
		"data has a <nil>":            {`{"outputs":[{"name":"predict"}]}`, nil},
		"has 2 columns":               {`{"outputs":[{"name":"predict","data":[1,2,3,4]}]}`, nil},
		"12 bytes: the response has":  {fmt.Sprintf(one, 12), float32s(1, 2)},
		"7 bytes of type":             {fmt.Sprintf(one, 7), float32s(1, 2)},
		`type "BYTES"`:                {strings.Replace(fmt.Sprintf(one, 8), "FP32", "BYTES", 1), float32s(1, 2)},
		"JSON values: want at most":   {`{"outputs":[{"name":"predict","data":[` + strings.Repeat("1,", 1000) + `1]}]}`, nil},
	} {
		t.Run(want, func(t *testing.T) {
			m, _ := model(t, configured(inference.OpenInferenceBinary), c.response, c.tensors)
			expect.Error(t, expect.ErrorOf(m.Infer(t.Context(), question("predict"))), want, "Infer")
		})
	}
}

func TestCombine(t *testing.T) {
	nan := math.NaN()
	heads := inference.Outputs{Names: []string{"hide", "save"}, Rows: [][]float64{{1, 0.5}, {0, 1}, {0, nan}, {0, 1e7}}}
	for name, c := range map[string]struct {
		of      inference.Outputs
		weights map[string]float64
		want    []float64
	}{
		"weights":      {heads, map[string]float64{"save": 3, "hide": -5}, []float64{-3.5, 3, nan, 3e7}},
		"the only one": {inference.Outputs{Names: []string{"predict"}, Rows: [][]float64{{1}, {2}}}, nil, []float64{1, 2}},
		"no candidate": {inference.Outputs{}, nil, []float64{}},
	} {
		expect.NoDiffBut(t, cmpopts.EquateNaNs(), c.of.Combine(c.weights), c.want, "%s", name)
	}
}

func TestConfig_Validate(t *testing.T) {
	good := inference.Config{
		Config: external.Config{URL: "http://m/v2/models/m/infer", Timeout: time.Second}, Protocol: inference.OpenInference,
		MaxCandidates: 1, Features: []string{"a"}, Input: "x",
	}
	for want, change := range map[string]func(*inference.Config){
		"":                                     func(*inference.Config) {},
		`protocol: "grpc": want one of json`:   func(c *inference.Config) { c.Protocol = "grpc" },
		"input, features: the Open Inference":  func(c *inference.Config) { c.Features = nil },
		"features: 2 names: want at most 100,": func(c *inference.Config) { c.Features = []string{"a", "a"} },
		"missing_value: NaN: want -1e+09 to":   func(c *inference.Config) { c.MissingValue = math.NaN() },
		"max_candidates: 0: want 1 to 1000":    func(c *inference.Config) { c.MaxCandidates = 0 },
	} {
		cfg := good
		change(&cfg)
		expect.Error(t, cfg.Validate(), want, "Validate")
	}
	must.OK(t, (inference.Config{}).Validate())
}

// RealModels names the environment variable with models of the Open Inference Protocol: PROTOCOL=URL, separated by spaces.
// Each is the logistic regression that .ci/models starts, with the coefficients 2 and -1 and the intercept 0.5.
const RealModels = "SMARTFEED_TEST_MODELS"

func TestRealModels_ReturnProbabilities(t *testing.T) {
	models := strings.Fields(os.Getenv(RealModels))
	if len(models) == 0 {
		t.Skipf("set %s to models", RealModels)
	}
	for _, m := range models {
		t.Run(m, func(t *testing.T) {
			protocol, url, _ := strings.Cut(m, "=")
			cfg := configured(protocol)
			cfg.Config = external.Config{URL: url, Timeout: 10 * time.Second}
			service := external.New(cfg.Config, nil)
			defer service.Close()
			req := question("predict_proba[1]", "predict_proba[0]")
			outputs := must.Get(inference.New(cfg, service).Infer(t.Context(), req))(t)
			for i, row := range req.Values {
				want := 1 / (1 + math.Exp(-(2*float64(row[0]) - float64(row[1]) + 0.5)))
				if got := outputs.Rows[i]; math.Abs(got[0]-want) > 1e-6 || math.Abs(1-got[0]-got[1]) > 1e-6 {
					t.Errorf("candidate %d: got %v, want %v", i, got, want)
				}
			}
		})
	}
}
