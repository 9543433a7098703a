package visits

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/smartfeed/smartfeed/schemas"
)

// poolsFunc is a function that implements Pools.
type poolsFunc func(source schemas.Source, n int) ([]schemas.PoolItem, error)

func (f poolsFunc) Pool(_ context.Context, _ schemas.UserID, source schemas.Source, n int) ([]schemas.PoolItem, error) {
	return f(source, n)
}

func TestCheckPools_ReportsFirstDifference(t *testing.T) {
	broken := errors.New("broken")
	tests := []struct {
		name string
		bend func(items []schemas.PoolItem) ([]schemas.PoolItem, error)
		want string
	}{
		{"good", func(i []schemas.PoolItem) ([]schemas.PoolItem, error) { return i, nil }, ""},
		{"broken", func([]schemas.PoolItem) ([]schemas.PoolItem, error) { return nil, broken }, "pool following of user:u: broken"},
		{"one missing", func(i []schemas.PoolItem) ([]schemas.PoolItem, error) { return i[:4], nil }, "4 candidates, want 5"},
		{"too many", func(i []schemas.PoolItem) ([]schemas.PoolItem, error) { return append(i, i[0]), nil }, "6 candidates, want 5"},
		{"order", func(i []schemas.PoolItem) ([]schemas.PoolItem, error) { i[0], i[1] = i[1], i[0]; return i, nil },
			"has rank 1, want pin:a29"},
		{"score", func(i []schemas.PoolItem) ([]schemas.PoolItem, error) { i[1].PoolScore += 1e-8; return i, nil }, "pin:a28: score"},
		{"time", func(i []schemas.PoolItem) ([]schemas.PoolItem, error) { i[1].Time++; return i, nil }, "pin:a28: created"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			p := product(30)
			pools := poolsFunc(func(source schemas.Source, n int) ([]schemas.PoolItem, error) {
				items := p.Pool(reader, source, n)
				if source != schemas.Following {
					return items, nil
				}
				return test.bend(items)
			})
			err := CheckPools(t.Context(), pools, p, reader, 5)
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("error %v, want one with %q", err, test.want)
			}
		})
	}
}

func TestHTTP_ReadsPools(t *testing.T) {
	p := product(30)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		if r.URL.EscapedPath() != "/v1/users/user:u/pools" || q.Get("limit") != "5" {
			http.Error(w, "unexpected "+r.URL.String(), http.StatusBadRequest)
			return
		}
		type item struct {
			Pin   schemas.PinID     `json:"pin"`
			Score schemas.PoolScore `json:"score"`
			Time  string            `json:"time"`
		}
		answer := map[string][]item{}
		for _, c := range p.Pool(reader, schemas.Source(q.Get("source")), 5) {
			answer["items"] = append(answer["items"], item{c.Pin, c.PoolScore, c.Time.Time().Format("2006-01-02T15:04:05.999999Z07:00")})
		}
		if err := json.NewEncoder(w).Encode(answer); err != nil {
			t.Error(err)
		}
	}))
	defer server.Close()
	if err := CheckPools(t.Context(), &HTTP{URL: server.URL, Client: server.Client()}, p, reader, 5); err != nil {
		t.Error(err)
	}
}

func TestHTTP_ReadsFeatures(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		question, err := io.ReadAll(r.Body)
		const want = `{"at":"1970-01-01T00:00:01Z","features":["f"],"users":["user:u"]}`
		if err != nil || r.URL.Path != "/v1/features" || r.Method != http.MethodPost || string(question) != want {
			http.Error(w, "unexpected "+string(question), http.StatusBadRequest)
			return
		}
		fmt.Fprint(w, `{"values":{"user:u":{"f":{"a":1}}},"missing":[]}`)
	}))
	defer server.Close()
	h := &HTTP{URL: server.URL, Client: server.Client()}
	got, err := h.Features(t.Context(), []string{"f"}, []schemas.UserID{reader}, time.Unix(1, 0).UTC())
	if err != nil || string(got[reader]["f"]) != `{"a":1}` {
		t.Errorf("features %s, %v", got, err)
	}
}
