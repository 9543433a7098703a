package doctor_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/sr"
	"github.com/twmb/franz-go/pkg/sr/srfake"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/internal/tools/doctor"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

func run(t *testing.T, checks ...doctor.Check) string {
	t.Helper()
	return lines(doctor.Run(t.Context(), checkTimeout, checks...))
}

func TestRegistry_ReportsSchemasAndSettings(t *testing.T) {
	const older = `{"type":"record","name":"PinEvent","namespace":"smartfeed","fields":[{"name":"id","type":"long"}]}`
	for _, c := range []struct {
		name   string
		before func(t *testing.T, ours *schemas.Registry, theirs *sr.Client)
		want   []string
	}{
		{"empty", func(*testing.T, *schemas.Registry, *sr.Client) {}, []string{"registry note ", "registry ok 0 schemas registered, compatibility BACKWARD"}},
		{"after a first start", open, []string{"registry ok "}},
		{"compatibility NONE", set(sr.CompatNone), []string{"registry warning the registry accepts incompatible schemas"}},
		{"compatibility FORWARD", set(sr.CompatForward), []string{"registry warning the compatibility is FORWARD"}},
		{"read only", func(t *testing.T, _ *schemas.Registry, theirs *sr.Client) {
			must.OK(t, theirs.SetMode(t.Context(), sr.ModeReadOnly)[0].Err)
		}, []string{"registry problem "}},
		{"incompatible schema", func(t *testing.T, _ *schemas.Registry, theirs *sr.Client) {
			must.Get(theirs.CreateSchema(t.Context(), topics.SubjectOf(topics.Pins), sr.Schema{Schema: older}))(t)
		}, []string{"registry problem open streams: register pins-value: the schema cannot read"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			fake := srfake.New()
			defer fake.Close()
			theirs := must.Get(sr.NewClient(sr.URLs(fake.URL())))(t)
			ours := must.Get(schemas.NewRegistry(fake.URL()))(t)
			defer ours.Close()
			c.before(t, ours, theirs)
			defer http.DefaultClient.CloseIdleConnections()
			before := must.Get(theirs.Subjects(t.Context()))(t)
			want(t, run(t, doctor.Registry(ours, false)), c.want...)
			expect.NoDiff(t, must.Get(theirs.Subjects(t.Context()))(t), before, "subjects after the check")
		})
	}
}

// open registers all schemas.
func open(t *testing.T, ours *schemas.Registry, _ *sr.Client) {
	t.Helper()
	must.Get(topics.Open(t.Context(), ours))(t)
}

func set(level sr.CompatibilityLevel) func(*testing.T, *schemas.Registry, *sr.Client) {
	return func(t *testing.T, _ *schemas.Registry, theirs *sr.Client) {
		t.Helper()
		must.OK(t, theirs.SetCompatibility(t.Context(), sr.SetCompatibility{Level: level})[0].Err)
	}
}

func TestRegistry_ReportsUnreachableRegistry(t *testing.T) {
	unreachable := must.Get(schemas.NewRegistry("127.0.0.1:1"))(t)
	want(t, run(t, doctor.Registry(unreachable, false)), "registry problem list subjects at schema registry")
	want(t, run(t, doctor.Registry(unreachable, true)), "registry note no registry responds: ")
}

func TestProcess_ReportsReadinessAndVersion(t *testing.T) {
	const status = `{"version":"v1","components":[{"name":"pools","restarts":0}]}`
	for _, c := range []struct {
		name        string
		code        int
		ready, kind string
		status      string
		want        string
	}{
		{"well", 200, `{"ready":true,"missing":[]}`, "application/json", status, "process ok "},
		{"not ready", 503, `{"ready":false,"missing":["pools is waiting"]}`, "application/json", `{"version":"v1","missing":["pools is waiting"]}`, "process problem http://"},
		{"another version", 200, `{"ready":true}`, "application/json", `{"version":"v0"}`, "process warning http://"},
		{"restarted", 200, `{"ready":true}`, "application/json", `{"version":"v1","components":[{"name":"pools","restarts":3,"last_error":"disk"}]}`, "process warning http://"},
		{"another program", 200, `<html>`, "text/html", "", "process problem http://"},
		{"JSON of another program", 200, `{}`, "application/json", "", "process problem http://"},
		{"authentication required", 401, `{}`, "application/json", "", "process note the process at http://"},
	} {
		t.Run(c.name, func(t *testing.T) {
			server := process(t, c.code, c.kind, c.ready, c.status)
			got := run(t, doctor.Process(server.Client(), server.URL, "v1"))
			want(t, got, c.want)
			expect.Omits(t, got, "\n", "one finding")
		})
	}
	want(t, run(t, doctor.Process(&http.Client{}, "http://127.0.0.1:1", "v1")), "process note no process listens on http://127.0.0.1:1")
}

// process responds to /v1/status with one text, and to everything else with another.
func process(t *testing.T, code int, kind, ready, status string) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", kind)
		if r.URL.Path == "/v1/status" {
			_, _ = w.Write([]byte(status))
			return
		}
		w.WriteHeader(code)
		_, _ = w.Write([]byte(ready))
	}))
	t.Cleanup(server.Close)
	return server
}

// The responding process reports the state of the others, and the check reports their problems.
func TestProcess_ReportsOtherProcesses(t *testing.T) {
	const (
		this       = `{"address":"a:1","version":"v1","ready":true,"missing":[],"components":[{"name":"http","restarts":0}]}`
		older      = `{"address":"b:1","version":"v0","ready":true,"missing":[],"components":[]}`
		restarted  = `{"address":"c:1","version":"v1","ready":true,"missing":[],"components":[{"name":"pools","restarts":2,"last_error":"disk"}]}`
		notReady   = `{"address":"d:1","version":"v1","ready":false,"missing":["pools is waiting","no Kafka broker responds"],"components":[]}`
		oneVersion = "\n  → run one version"
		reached    = "\n  → check its log, and that other processes reach it at that address (--advertise)"
		brokers    = "\n  → see the checks kafka and access"
		wait       = "\n  → wait if it has just started; otherwise check its log and docs/operations/runbooks.md#componentnotready"
	)
	for _, c := range []struct{ name, version, rest, want string }{
		{"none", "v1", "", "ok URL is ready, 1 component running"},
		{"only itself", "v1", `"processes":[` + this + `]`, "ok URL is ready, 1 component running"},
		{"healthy", "v1", `"processes":[` + this + `,{"address":"b:1","version":"v1","ready":true}]`, "ok URL is ready, 1 component running; no problem with 1 other"},
		{"another version", "v1", `"processes":[` + this + "," + older + `]`, "warning b:1 runs version v0, this is v1" + oneVersion},
		{"two versions", "v0", `"processes":[` + this + "," + restarted + "," + older + `]`,
			"warning URL runs version v0, this is v1" + oneVersion + "\nwarning c:1 runs version v1, URL runs v0" + oneVersion +
				"\nwarning c:1: pools was restarted 2 times: disk\n  → check its log\nwarning b:1 runs version v0, this is v1" + oneVersion},
		{"not ready", "v1", `"processes":[` + this + "," + notReady + `]`,
			"problem d:1 is not ready: pools is waiting" + wait + "\nproblem d:1 is not ready: no Kafka broker responds" + wait},
		{"unavailable", "v1", `"processes":[` + this + `],"unavailable":[{"source":"e:1","reason":"no response"},{"source":"the lag of pools, fanout","reason":"not allowed"}]`,
			"warning URL could not get the state of e:1: no response" + reached + "\nwarning URL could not get the state of the lag of pools, fanout: not allowed" + brokers},
	} {
		t.Run(c.name, func(t *testing.T) {
			status := `{"version":"` + c.version + `","ready":true,"missing":[],"components":[{"name":"http","restarts":0}]`
			if c.rest != "" {
				status += "," + c.rest
			}
			server := process(t, 200, "application/json", `{"ready":true,"missing":[]}`, status+"}")
			var got []string
			for _, f := range doctor.Run(t.Context(), checkTimeout, doctor.Process(server.Client(), server.URL, "v1"))[0].Findings {
				line := f.Level.String() + " " + f.Message
				if f.Advice != "" {
					line += "\n  → " + f.Advice
				}
				got = append(got, line)
			}
			expect.NoDiff(t, strings.ReplaceAll(strings.Join(got, "\n"), server.URL, "URL"), c.want, "result")
		})
	}
}

func TestFeedStore_ReportsEachDifference(t *testing.T) {
	two := errors.Join(errors.New("table feeds: missing"), errors.New("table edges: missing"))
	want(t, run(t, doctor.FeedStore("standby", func(context.Context) error { return two })),
		"standby problem table feeds: missing", "standby problem table edges: missing")
	want(t, run(t, doctor.FeedStore("standby", func(context.Context) error { return nil })), "standby ok reachable")
}

func TestPinot_ReportsUnreachableServers(t *testing.T) {
	well := doctor.Pinot{
		Verify:  func(context.Context) ([]string, error) { return nil, nil },
		Answers: func(context.Context) (int, []error) { return 2, nil },
	}
	for _, c := range []struct {
		name, want string
		damage     func(*doctor.Pinot)
	}{
		{"well", "pinot ok answers queries", func(*doctor.Pinot) {}},
		{"no table", "pinot problem table: missing", func(p *doctor.Pinot) {
			p.Verify = func(context.Context) ([]string, error) { return []string{"table: missing"}, nil }
		}},
		{"no controller", "pinot warning the controller does not respond: down", func(p *doctor.Pinot) {
			p.Verify = func(context.Context) ([]string, error) { return nil, errors.New("down") }
		}},
		{"no broker", "pinot problem no broker answers queries: down", func(p *doctor.Pinot) {
			p.Answers = func(context.Context) (int, []error) { return 0, []error{errors.New("down")} }
		}},
		{"one of two brokers", "pinot warning a broker does not answer queries: broker b: down", func(p *doctor.Pinot) {
			p.Answers = func(context.Context) (int, []error) { return 1, []error{errors.New("broker b: down")} }
		}},
	} {
		p := well
		c.damage(&p)
		t.Run(c.name, func(t *testing.T) { want(t, run(t, p.Check()), c.want) })
	}
}
