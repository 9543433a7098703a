package api

import (
	"bytes"
	"encoding/binary"
	"math"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/smartfeed/smartfeed/internal/testkit/must"
)

func TestFeatures_AnswersWithTensors(t *testing.T) {
	for accept, isTensor := range map[string]bool{
		"application/octet-stream": true, "application/json, Application/Octet-Stream;q=0.9": true, "*/*": false, "application/json": false, "": false, ";;,": false,
	} {
		t.Run(accept, func(t *testing.T) {
			res, body := answered(t, exchange{
				method: http.MethodPost, path: "/v1/features", code: 200, body: `{"features":["number"],"users":["user:b","user:a"]}`,
				header: []string{"Content-Type", "application/json", "Accept", accept},
			})
			if kind := res.Header.Get("Content-Type"); res.StatusCode != http.StatusOK || isTensor != (kind == "application/octet-stream") {
				t.Fatalf("got %d, %s", res.StatusCode, kind)
			}
			if !isTensor {
				return
			}
			n := must.Get(strconv.Atoi(res.Header.Get("Inference-Header-Content-Length")))(t)
			if want := `"outputs":[{"name":"number","shape":[2],"datatype":"FP64","parameters":{"binary_data_size":16}}]}`; !bytes.HasSuffix(body[:n], []byte(want)) {
				t.Errorf("got %s, want %s at the end", body[:n], want)
			}
			b, a := math.Float64frombits(binary.LittleEndian.Uint64(body[n:])), math.Float64frombits(binary.LittleEndian.Uint64(body[n+8:]))
			if !math.IsNaN(b) || a != 1.25 || len(body) != n+16 {
				t.Errorf("got %v of user:b and %v of user:a in %d bytes, want NaN and 1.25", b, a, len(body)-n)
			}
		})
	}
	res, body := answered(t, exchange{
		method: http.MethodPost, path: "/v1/features", code: 400, body: `{"features":["unknown"],"users":["user:a"]}`,
		header: []string{"Content-Type", "application/json", "Accept", "application/octet-stream"},
	})
	if res.StatusCode != http.StatusBadRequest || !strings.Contains(string(body), "is not defined") {
		t.Errorf("unknown feature: got %d %s", res.StatusCode, body)
	}
}
