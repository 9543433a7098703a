package cli

import (
	"errors"
	"io"
	"net/http"
	"testing"
)

// deadletters runs a command line of deadletters.
func deadletters(t *testing.T, addr string, args ...string) (string, error) {
	t.Helper()
	return at(t, addr, append([]string{"deadletters"}, args...)...)
}

func TestRetriesAsTables(t *testing.T) {
	addr := newServer(t)
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"kinds": {[]string{"kinds"}, table(
			"KIND               WAITING  SENT  DONE  PARKED  NEXT                 RATE     PRIORITY  SET BY",
			"actions/objects/a  3        0     1     0       2026-11-20 12:00:00  2.5/s    0         the configuration",
			"actions/objects/b  3        0     1     0       –                    stopped  0         ann")},
		"states": {[]string{"states", "--limit", "7", "--kind", "actions/objects/a"}, table(
			"STATE    ATTEMPTS  SINCE                NEXT                 TOPIC    PARTITION  OFFSET  GROUP    REASON",
			"waiting  7         2026-11-20 12:00:00  2026-11-20 12:00:00  actions  0          7       objects  odd",
			"parked   0         2026-11-20 12:00:00  –                    actions  0          0       objects  bad (parked: because)")},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := deadletters(t, addr, c.args...)
			if err != nil || got != c.want {
				t.Errorf("got %v\n%s\nwant\n%s", err, got, c.want)
			}
		})
	}
	if _, err := deadletters(t, addr, "states", "--state", "lost"); err == nil {
		t.Error("a state that there is not is taken")
	}
}

func TestRetriesAsJSON(t *testing.T) {
	addr := newServer(t)
	for path, args := range map[string][]string{
		"/v1/deadletters/kinds":                                   {"kinds", "-o", "json"},
		"/v1/deadletters/retries?kind=a/b/c&state=parked&limit=9": {"states", "-o", "json", "--kind", "a/b/c", "--state", "parked", "--limit", "9"},
	} {
		res, err := http.Get(addr + path)
		if err != nil {
			t.Fatal(err)
		}
		want, err := io.ReadAll(res.Body)
		if err := errors.Join(err, res.Body.Close()); err != nil {
			t.Fatal(err)
		}
		if got, err := deadletters(t, addr, args...); err != nil || got != string(want) {
			t.Errorf("%v: got %v %s, want %s", args, err, got, want)
		}
	}
}
