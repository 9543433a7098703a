package inference_test

import (
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/processors/external"
	"github.com/smartfeed/smartfeed/processors/inference"
)

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
