package peers

import (
	"context"
	"errors"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/schemas"
)

// nowhere has no pools.
type nowhere struct{ *fakeGenerator }

func (nowhere) Settle(schemas.UserID, string, schemas.Outcome) {}
func (nowhere) Why(context.Context, schemas.WhyRequest) (*schemas.Why, error) {
	return nil, schemas.ErrNotOwner
}
func (nowhere) Known(context.Context, string, schemas.UserID) (bool, error) {
	return false, schemas.ErrNotOwner
}

// FuzzCall sends any body to the handler of calls. It answers 200, rejects the body as invalid JSON, or answers 421.
func FuzzCall(f *testing.F) {
	g := nowhere{&fakeGenerator{err: schemas.ErrNotOwner}}
	h := Handler(Local{Generator: g, Known: g})
	for _, call := range []string{"chunk", "settle", "waiting", "pool", "why", "state", "known"} {
		f.Add(call, `{"user":"user:1","Feed":"home","limit":3}`)
	}
	f.Fuzz(func(t *testing.T, call, body string) {
		if strings.ContainsFunc(call, func(r rune) bool { return r < 'a' || r > 'z' }) {
			t.Skip() // not a call
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("POST", Path+call, strings.NewReader(body)))
		expect.True(t, slices.Contains([]int{200, 400, 404, 421}, w.Code), "%s of %q: got %d %s", call, body, w.Code, w.Body)
		if err := errorOf(w.Result()); w.Code == 421 && !errors.Is(err, schemas.ErrNotOwner) {
			t.Errorf("got %v, want that it is elsewhere", err)
		}
	})
}
