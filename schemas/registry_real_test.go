package schemas

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/sr"

	"github.com/smartfeed/smartfeed/internal/secure"
	"github.com/smartfeed/smartfeed/internal/testkit/eventually"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/internal/testkit/securetest"
)

// Uses a registry with TLS and authentication, as .ci/services starts registry-secured. Schemas keep their ids. A schema
// that cannot read older records is rejected before the registry is asked, and by the registry for any client.
func TestRealSecuredRegistry(t *testing.T) {
	const variable = "SMARTFEED_TEST_REGISTRY_SECURED"
	at, dir := os.Getenv(variable), os.Getenv("SMARTFEED_TEST_CERTIFICATES")
	if at == "" {
		t.Skipf("set %s to the address of a registry that wants TLS and a login", variable)
	}
	as := secure.HTTP{
		TLS:   secure.Certificates{CAFile: filepath.Join(dir, securetest.CA)},
		Login: secure.Login{User: securetest.User, PasswordFile: filepath.Join(dir, securetest.Secret)},
	}
	open := func(as secure.HTTP) *Registry {
		t.Helper()
		r := must.Get(NewRegistryAs(as, "https://"+at+"/apis/ccompat/v7"))(t)
		t.Cleanup(r.Close)
		return r
	}
	r, subject := open(as), fmt.Sprintf("r-%d-value", time.Now().UnixNano())
	v1 := recordSchema("R", fieldSchema("a", "int"))
	v2 := recordSchema("R", fieldSchema("a", "long"), `{"name":"b","type":"string","default":""}`)
	eventually.OK(t, func() error { // a new registry on a busy machine responds slowly at first
		return expect.ErrorOf(r.Register(t.Context(), subject, v1))
	})
	ids := map[string]int{}
	for _, text := range []string{v1, v2, v1, v2} {
		id := must.Get(r.Register(t.Context(), subject, text))(t)
		if had, known := ids[text]; known && had != id {
			t.Errorf("registered again: id %d, want %d", id, had)
		}
		ids[text] = id
		if got, err := r.SchemaByID(t.Context(), id); err != nil || checkBackward(text, got) != nil || checkBackward(got, text) != nil {
			t.Errorf("by id %d: %s, %v, want %s", id, got, err, text)
		}
	}
	expect.True(t, ids[v1] != ids[v2], "two schemas have different ids, %d", ids[v1])
	bad := recordSchema("R", fieldSchema("a", "long"), fieldSchema("c", "int"))
	expect.Error(t, expect.ErrorOf(r.Register(t.Context(), subject, bad)), "c: new field without a default", "field without a default")
	if _, known, _ := r.Lookup(t.Context(), subject, bad); known {
		t.Error("it was registered all the same")
	}
	_, err := r.client.RegisterSchema(t.Context(), subject, sr.Schema{Schema: bad, Type: sr.TypeAvro}, -1, -1) // as another client would
	expect.Equal(t, must.As[*sr.ResponseError](t, err).StatusCode, http.StatusConflict, "status of a registration past our own check")
	as.Login = secure.Login{User: securetest.User, Password: "battery-staple"}
	expect.Error(t, expect.ErrorOf(open(as).Register(t.Context(), subject, v1)), "401", "with a wrong password")
}
